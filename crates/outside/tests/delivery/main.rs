//! The delivery loop between a real PostgreSQL and a scripted receiver: a module per promise, in
//! one binary, so that all share one server.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod answers;
mod doubt;
mod operators;
mod outages;
mod plans;
mod sending;
mod turns;
mod world;
