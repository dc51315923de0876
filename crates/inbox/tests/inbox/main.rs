//! The inbox against a real PostgreSQL: what is applied once, deferred, parked, and in order.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at its first surprise"
)]

mod apply;
mod conflicts;
mod keeping;
mod order;
mod own_effect;
mod races;
mod support;
mod suspects;
