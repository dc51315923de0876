//! What TicketFlow promises, shown on real servers: a module per promise, in one binary, so that
//! all of them share one pair of servers.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

mod consuming;
mod contract;
mod crash;
mod delivery;
mod demo;
mod layering;
mod memory;
mod monitoring;
mod operating;
mod order;
mod outage;
mod poison;
mod queues;
mod relaying;
mod retention;
mod rights;
mod scripted;
mod tenancy;
