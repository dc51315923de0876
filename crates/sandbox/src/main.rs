//! The binary `sandbox`: private servers that stay up between runs.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::{Parser, Subcommand};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::{ATTACH_VARIABLE, BINARIES_VARIABLE, DATABASE, Sandbox, SandboxOptions, VHOST};
use tokio::signal::unix::{SignalKind, signal};

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
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
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
    match arguments.action {
        Action::Up => print_addresses(&sandbox::up(at).await?),
        Action::Down => sandbox::down(at).await.context(NONE_UP)?,
        Action::Status => return status(at),
        Action::Run { program } => {
            let mut command = command(lasting_urls(at)?, &program)?;
            // Tests have them beside themselves, in whichever target directory they were built.
            if let Some(folder) = std::env::current_exe()?.parent()
                && std::env::var_os(BINARIES_VARIABLE).is_none()
            {
                command.env(BINARIES_VARIABLE, folder);
            }
            return Err(become_program(command));
        }
        Action::With { program } => {
            let sandbox = Sandbox::start(SandboxOptions::default()).await?;
            let folder = sandbox.path().display().to_string();
            return run(command(vec![(ATTACH_VARIABLE, folder)], &program)?).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What to do where there are no servers.
const NONE_UP: &str = "`just up` starts private servers";

fn status(at: &Path) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::look(at).context(NONE_UP)?;
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

/// The program to run, with further variables and with nothing of a `cargo run` that runs us: its
/// account of our package would make the next cargo build everything again.
fn command(variables: Vec<(&str, String)>, program: &[String]) -> anyhow::Result<Command> {
    let (name, arguments) = program.split_first().context("no program given")?;
    let mut command = Command::new(name);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text == "CARGO"
            || ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"]
                .iter()
                .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command.envs(variables);
    Ok(command)
}

/// Becomes the program: signals reach it without our doing. Comes back only if it cannot.
fn become_program(mut command: Command) -> anyhow::Error {
    let name = command.get_program().to_owned();
    anyhow::Error::from(command.exec()).context(format!("cannot run {}", name.display()))
}

/// Runs a program to its end, with the signals that ask us to stop; its exit code becomes ours.
async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let name = command.get_program().to_owned();
    let [mut interrupt, mut terminate, mut hang_up] = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let mut child = tokio::process::Command::from(command)
        .spawn()
        .with_context(|| format!("cannot run {}", name.display()))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let pass_on = |signal| _ = id.map(|id| kill(Pid::from_raw(id), signal));
    loop {
        tokio::select! {
            // A Ctrl-C at the terminal is for the program's group already; it decides when to end.
            _ = interrupt.recv() => {}
            // These are for us alone. The child is not reaped before the last arm: its id is its own.
            _ = terminate.recv() => pass_on(Signal::SIGTERM),
            _ = hang_up.recv() => pass_on(Signal::SIGHUP),
            ended = child.wait() => {
                let code = ended?.code().and_then(|code| u8::try_from(code).ok());
                return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
            }
        }
    }
}
