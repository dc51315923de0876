//! The queues of a pool against real servers: made, lost, made again, refilled.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod generations;
mod refilling;
mod support;
mod watching;
