//! Traffic for tests and benches: `producer load`.
//!
//! An *intent* is one ticket to be made or changed. It is sent under an idempotency key of its own
//! and, while its outcome is not known, sent again under the same key, so it happens once or not at
//! all. The history has a line for each intent with its outcome: what `ok` names must be found
//! later, what `refused` names must not, and `unknown` may be either.

mod call;
mod config;
mod history;
mod traffic;

pub use config::{LOAD, LoadConfig};
pub use traffic::{LoadError, Totals, run};
