//! The operator's tool: one command a file, each a few statements and what is printed.
//!
//! Every command reads the database as role `ticketflow_operator`; one that changes something
//! leaves a row in `operator_actions`, in the same transaction where it is one. Reports are tables
//! for people, JSON with `--json`. The status tells a script what happened: see
//! [`Failure::status`].

mod action;
mod broker;
mod cli;
mod commands;
mod context;
mod environment;
mod failure;
mod listing;
mod render;
mod report;

use std::process::ExitCode;

pub use cli::Cli;
pub use failure::Failure;

/// The status for a command line or an environment that cannot be understood.
const MISUSED: u8 = 2;

/// Runs one command and prints what it reports.
pub async fn run(cli: Cli) -> ExitCode {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    if let Some(problem) = environment::unknown(names) {
        render::complain(&problem);
        return ExitCode::from(MISUSED);
    }
    let json = cli.global.json;
    match commands::run(cli).await {
        Ok(report) => {
            let ending = report.ending();
            report.print(json).map_or(ExitCode::FAILURE, |()| ending)
        }
        Err(failure) => {
            render::complain(&failure.to_string());
            ExitCode::from(failure.status())
        }
    }
}
