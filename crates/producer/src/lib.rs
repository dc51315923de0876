//! The producer: tickets over HTTP, each change and its event in one transaction.
//!
//! A request's way: the envelope gives it an id and its answer a line in the log (`http/envelope`);
//! the gate decides whose it is and whether there is room (`http/gate`); its JSON is checked byte
//! by byte (`json`, `ticket`); ids are made, once; one call of the database writes ticket, event
//! and idempotency key, and finds out what became of a lost COMMIT (`store/write`). After the
//! commit, relays get a hint (`hint`).
//!
//! Beside it, `load` sends such requests and notes what became of each; `import` makes tickets
//! of a file's lines.
//!
//! Success is answered only after COMMIT; 503 only if nothing was written.

mod config;
mod hint;
mod house;
mod http;
mod import;
mod json;
mod keys;
mod load;
mod metrics;
mod mutant;
mod patient;
mod problem;
mod rates;
mod run;
mod server;
mod store;
mod ticket;

pub use config::{Config, Limits, PROCESS};
pub use http::document;
pub use import::{IMPORT, ImportConfig, ImportError, Imported, run as import};
pub use load::{LOAD, LoadConfig, LoadError, Totals, run as load};
pub use metrics::METRICS;
pub use run::{Addresses, ProducerError, run, run_and_tell};
pub use server::ListenError;
