//! Starting a program as the servers' account, with its process id written before it runs.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::SandboxError;
use crate::folder::Folder;

/// Writes its own process id, then becomes the program; gives up if the watchdog has begun to
/// clean up. The watchdog marks first and reads the ids afterwards, so one of the two sees the
/// other whatever the timing.
const LAUNCHER: &str =
    r#"echo $$ >"$1.new" && mv "$1.new" "$1" && [ ! -e "$2" ] && shift 2 && exec "$@""#;

/// A program to be run in a sandbox's folder: as its account, with its environment only.
pub(crate) fn command(folder: &Folder, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        // A Ctrl-C at the terminal is for the owner; the watchdog ends the servers in order.
        .process_group(0);
    // Locale and connection settings of the caller must not reach the servers.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["LC_", "PG", "RABBITMQ_", "ERL_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command.env("HOME", folder.path()).env("LANG", "C.UTF-8");
    if let Some(account) = folder.account() {
        command.uid(account.uid).gid(account.gid);
    }
    command
}

/// Starts a server in the background: `command` as it is, its output to the server's log file.
pub(crate) fn start(
    folder: &Folder,
    server: &'static str,
    program: &Command,
) -> Result<(), SandboxError> {
    let tried = || format!("start {server}");
    let output = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.output_file(server))
        .map_err(SandboxError::io(tried()))?;
    let errors = output.try_clone().map_err(SandboxError::io(tried()))?;
    let mut launcher = command(folder, "/bin/sh");
    launcher
        .args(["-c", LAUNCHER, "launch"])
        .arg(folder.pid_file(server))
        .arg(folder.at("closing"))
        .arg(program.get_program())
        .args(program.get_args())
        .stdout(output)
        .stderr(errors);
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => launcher.env(name, value),
            None => launcher.env_remove(name),
        };
    }
    forget(&folder.pid_file(server));
    let mut child = launcher.spawn().map_err(SandboxError::io(tried()))?;
    // Reaped by a thread of its own: a test's runtime may be gone long before the server.
    std::thread::Builder::new()
        .name(format!("reap-{server}"))
        .spawn(move || child.wait())
        .map_err(SandboxError::io("watch a server"))?;
    Ok(())
}

fn forget(pid_file: &Path) {
    // It is not there at the first start.
    let _ = std::fs::remove_file(pid_file);
}
