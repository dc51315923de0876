//! PostgreSQL for the processes: a pool whose transactions have deadlines, connections outside
//! it, and errors sorted by what helps against them.
//!
//! What is wrong with a connection stays with that connection: after a time-out, a read-only or a
//! dying server, or a stale plan it is taken out of the pool instead of being handed out again.

mod again;
mod call;
mod config;
mod connect;
mod error;
mod lent;
mod pool;
mod session;
mod start;
mod tls;

pub use again::Again;
pub use config::{DatabaseConfig, check};
pub use deadpool_postgres::Transaction;
pub use error::{DatabaseError, Remedy, Told, remedy_of};
pub use pool::Database;
pub use session::Session;
pub use start::StartError;
