//! Tickets from a file: `producer import tickets.jsonl --tenant acme`.
//!
//! Each line is the body of a POST. A line's ticket gets an id made from the tenant, the line's
//! number and its bytes, so that the same file may be imported again, after a kill or a lost
//! COMMIT, without a second ticket. What is in memory is one batch, whatever the file's size.

mod batch;
mod config;
mod lines;
mod run;

pub use config::{IMPORT, ImportConfig};
pub use run::{ImportError, Imported, run};
