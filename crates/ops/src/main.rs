//! `ticketflow`: the operator's tool.

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    ops::run(ops::Cli::parse()).await
}
