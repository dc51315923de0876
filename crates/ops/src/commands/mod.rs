//! One command a file.

mod doctor;
mod doctor_broker;
mod effect;
mod event;
mod held;
mod key;
mod lanes;
mod migrate;
mod move_tenant;
mod parked;
mod pool;
mod redrive;
mod replay;
mod retention;
mod skip;
mod status;
mod tail;
mod tenant;
mod topology;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

/// Runs the command that was asked for.
pub(crate) async fn run(cli: Cli) -> Result<Report, Failure> {
    if matches!(cli.command, Command::Migrate) {
        return migrate::run(&cli.global).await;
    }
    let context = Context::open(&cli.global).await?;
    match cli.command {
        Command::Migrate => migrate::run(&cli.global).await,
        Command::Tenant(command) => tenant::run(&context, &cli.global, command).await,
        Command::Effect(command) => effect::run(&context, command).await,
        Command::Pool(command) => pool::run(&context, &cli.global, command).await,
        Command::Topology(topology) => topology::run(&context, &cli.global, &topology).await,
        Command::Replay(replay) => replay::run(&context, &cli.global, &replay).await,
        Command::Status => status::run(&context).await,
        Command::Event { id } => event::run(&context, id).await,
        Command::Tail(tail) => tail::run(&context, &tail, cli.global.json).await,
        Command::Lanes { filter, all } => lanes::run(&context, &filter, all).await,
        Command::Held { filter, limit } => held::run(&context, &filter, limit).await,
        Command::Parked(command) => parked::run(&context, command).await,
        Command::Redrive(redrive) => redrive::run(&context, &redrive).await,
        Command::Skip(skip) => skip::run(&context, &skip).await,
        Command::Retention(retention) => retention::run(&context, &retention).await,
        Command::Doctor(doctor) => doctor::run(&context, &cli.global, &doctor).await,
    }
}
