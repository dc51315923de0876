//! What every process shares, so that each of them starts, logs, answers and stops alike.
//!
//! A process is a [`Process`] (its name and its table of settings) and a function
//! `run(config, shutdown)`; [`start()`] joins the two in a `main` of a few lines:
//!
//! 1. [`settings`] are read from flags, environment and file; all problems are told at once;
//! 2. [`telemetry`] sends logs to stderr and keeps the metrics that the admin port shows;
//! 3. [`admin`] answers whether the process lives and whether it makes progress ([`readiness`]);
//! 4. [`shutdown`] turns the first SIGTERM into a token and the second into an exit;
//! 5. [`supervise`] restarts what panics, or ends the process non-zero;
//! 6. [`database`] is the pool with deadlines, and errors sorted by what helps against them;
//! 7. [`backoff`] says how long to wait before the next try.

pub mod admin;
pub mod backoff;
pub mod database;
pub mod measure;
pub mod readiness;
pub mod settings;
pub mod shutdown;
pub mod start;
pub mod supervise;
pub mod telemetry;

pub use settings::{Problems, Process, Setting, Settings};
pub use start::start;
