//! The binary `sandbox`: private servers that stay up between runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use sandbox::{ATTACH_VARIABLE, DATABASE, Sandbox, SandboxOptions, VHOST};

#[derive(Debug, Parser)]
#[command(
    about = "Private PostgreSQL and RabbitMQ that stay up between runs",
    version
)]
struct Arguments {
    /// The link to the servers' folder.
    #[arg(long, env = ATTACH_VARIABLE, default_value = ".tools/sandbox")]
    at: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the servers (or those of them that do not run) and print where they are.
    Up,
    /// Kill the servers and remove their folder.
    Down,
    /// Print where the servers are; fails if one does not run.
    Status,
    /// Run a program with DATABASE_URL and AMQP_URL set to the servers that are up, unless they
    /// are set already.
    Run {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<String>,
    },
    /// Run a program, such as tests, with servers of its own, which end with it; it gets
    /// TICKETFLOW_SANDBOX.
    With {
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    obey(Arguments::parse()).await.unwrap_or_else(|error| {
        eprintln!("sandbox: {error:#}");
        ExitCode::FAILURE
    })
}

async fn obey(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let at = &arguments.at;
    match arguments.command {
        Command::Up => print_addresses(&sandbox::up(at).await?),
        Command::Down => sandbox::down(at).await?,
        Command::Status => return status(at),
        Command::Run { program } => return run(lasting_urls(at)?, &program).await,
        Command::With { program } => {
            let sandbox = Sandbox::start(SandboxOptions::default()).await?;
            let folder = sandbox.path().display().to_string();
            return run(vec![(ATTACH_VARIABLE, folder)], &program).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn status(at: &Path) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::look(at)?;
    print_addresses(&sandbox);
    let mut all_run = true;
    for (name, server) in [
        ("PostgreSQL", sandbox.postgres()),
        ("RabbitMQ", sandbox.rabbitmq()),
    ] {
        if !server.is_running() {
            eprintln!("{name} does not run; `just up` starts it");
            all_run = false;
        }
    }
    Ok(if all_run {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_addresses(sandbox: &Sandbox) {
    for (name, value) in urls(sandbox) {
        println!("{name}={value}");
    }
}

fn urls(sandbox: &Sandbox) -> Vec<(&'static str, String)> {
    vec![
        ("DATABASE_URL", sandbox.database_url(DATABASE)),
        ("AMQP_URL", sandbox.amqp_url(VHOST)),
    ]
}

/// The addresses that the caller has not set.
fn lasting_urls(at: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    if !unset("DATABASE_URL") && !unset("AMQP_URL") {
        return Ok(Vec::new());
    }
    let sandbox = Sandbox::look(at)
        .context("run `just up` first, or set DATABASE_URL and AMQP_URL to servers of your own")?;
    Ok(urls(&sandbox)
        .into_iter()
        .filter(|(name, _)| unset(name))
        .collect())
}

/// Runs a program to its end; its exit code becomes ours.
async fn run(variables: Vec<(&str, String)>, program: &[String]) -> anyhow::Result<ExitCode> {
    let (name, arguments) = program.split_first().context("no program given")?;
    let mut child = tokio::process::Command::new(name)
        .args(arguments)
        .envs(variables)
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    loop {
        tokio::select! {
            // The program gets the same Ctrl-C; it decides when to end.
            _ = tokio::signal::ctrl_c() => {}
            ended = child.wait() => {
                let code = ended?.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            }
        }
    }
}
