//! Private PostgreSQL and RabbitMQ for the demo, the tests and the benches, and ways to break them.
//!
//! [`shared`] gives every test of one process the same pair of servers; [`Sandbox::site`] gives
//! each test a database and a virtual host of its own in them. A test that breaks a server starts
//! its own pair with [`Sandbox::start`]; one that breaks a connection goes through a
//! [`FaultProxy`].
//!
//! The servers run from the installed programs in a folder of their own under the temporary
//! directory, on free loopback ports, beside whatever else runs on the machine. A watchdog process
//! holds the reading end of a pipe: when its owner ends, for whatever reason, the pipe closes and
//! the watchdog kills the servers and removes the folder (`watchdog.sh`).

mod broker_node;
pub mod chaos;
mod database;
pub mod demo;
mod error;
mod folder;
mod lasting;
mod launch;
pub mod ledger;
mod options;
mod pair;
mod ports;
mod process;
mod program;
mod programs;
mod proxy;
mod receiver;
mod server;
mod site;
mod watchdog;

pub use error::SandboxError;
pub use lasting::{DATABASE, VHOST, down, up};
pub use options::SandboxOptions;
pub use pair::{ATTACH_VARIABLE, Sandbox, shared};
pub use program::{BINARIES_VARIABLE, Program, binary, output};
pub use proxy::{Direction, FaultProxy, Then, Trap};
pub use receiver::{Receiver, Reply, Request};
pub use server::Server;
pub use site::{QueueCount, Site};
