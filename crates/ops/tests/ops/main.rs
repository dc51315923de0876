//! The `ticketflow` binary against real servers.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod events;
mod moving;
mod parked;
mod queues;
mod refusals;
mod replay;
mod retention;
mod status;
mod tenants;
mod tool;
