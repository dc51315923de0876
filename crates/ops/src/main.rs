//! `ticketflow`: the operator's tool.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    ops::run(ops::Cli::read()).await
}
