//! Deep stacks for the client's thread.
//!
//! lapin reads a header's tables and arrays by recursion, on a thread with the default stack of
//! 2 MiB. AMQP lets somebody with the right to publish nest 26,000 of them into one frame, which
//! overflows that stack and aborts the process; and again when the message comes from the dead
//! queue. The default can only be changed from the environment, before the program starts.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where Rust's threads take the size of their stacks from.
const VARIABLE: &str = "RUST_MIN_STACK";

/// Enough for a frame full of nested arrays, also in a build without optimisation. Only address
/// space: pages that are not touched take no memory.
const BYTES: &str = "268435456";

/// Starts the running program again, in its place and with the same arguments, with stacks for
/// its threads that no message overflows. Returns if it has them already.
///
/// To be called first thing in `main` by a process that consumes.
///
/// # Errors
/// What the system said when it could not start it.
pub fn deepen_stacks() -> io::Result<()> {
    if std::env::var_os(VARIABLE).is_some() {
        return Ok(());
    }
    let mut arguments = std::env::args_os();
    let mut again = Command::new(std::env::current_exe()?);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    Err(again.args(arguments).env(VARIABLE, BYTES).exec())
}
