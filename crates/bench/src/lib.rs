//! The benchmarks. Each measures the real processes on servers of its own against a baseline
//! taken in the same run, prints a table and one line of JSON, and fails if an event was lost or
//! came out of order.
//!
//! - [`rig`] is the ground: servers, queues, a session; [`program`] the processes on it;
//! - [`fill`] writes rows to measure with, [`drain`] lets relays at them, [`wire`] checks what
//!   came out;
//! - [`ceiling`] and the other baselines do the same work with nothing around it;
//! - [`statistics`], [`cpu`] and [`report`] turn it into figures;
//! - [`benches`] has one file a bench.

pub mod bare;
pub mod benches;
pub mod ceiling;
pub mod cpu;
pub mod drain;
pub mod fill;
pub mod http;
pub mod load;
pub mod options;
pub mod pgbench;
pub mod program;
pub mod progress;
pub mod report;
pub mod rig;
pub mod statistics;
pub mod tap;
pub mod ticket;
pub mod wire;

pub use options::Options;
pub use report::Report;
