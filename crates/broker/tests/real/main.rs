//! The broker crate against a real RabbitMQ, whole and broken.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod address;
mod blocked;
mod conformance;
mod deliveries;
mod endings;
mod links;
mod publishing;
mod queues;
mod support;
