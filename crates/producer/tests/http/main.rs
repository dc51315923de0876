//! The producer over real HTTP and a real database: every row of the contract's section on it.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod contract;
mod generated;
mod idempotency;
mod import;
mod load;
mod overload;
mod raw;
mod running;
mod telling;
