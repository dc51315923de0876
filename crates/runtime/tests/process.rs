//! A whole process: how it starts, is stopped, and ends. The test's own binary is the process.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use runtime::settings::{LOG, Sources};
use runtime::{Process, Setting, Settings, start, telemetry};
use tokio_util::sync::CancellationToken;

const CHILD: &str = "RUNTIME_TEST_CHILD";

const OWN: &[Setting] = &[Setting::choice(
    "ending",
    "clean",
    &["clean", "deaf", "failing"],
    "How it ends.",
)];

const PROCESS: Process = Process {
    name: "idle",
    about: "waits to be stopped",
    version: "0.0.0",
    schema_version: 1,
    settings: &[OWN, LOG],
    checks: &[telemetry::check],
};

#[derive(Debug, thiserror::Error)]
#[error("it failed")]
struct Failing(#[source] std::io::Error);

async fn idle(settings: Settings, shutdown: CancellationToken) -> Result<(), Failing> {
    if settings.text("ending") == "failing" {
        return Err(Failing(std::io::Error::other("for a reason")));
    }
    tracing::info!("idle");
    shutdown.cancelled().await;
    if settings.text("ending") == "deaf" {
        tracing::info!("deaf");
        std::future::pending::<()>().await;
    }
    Ok(())
}

/// Not a test by itself: the process that the others start.
#[test]
fn child() {
    let Ok(arguments) = std::env::var(CHILD) else {
        return;
    };
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let ended = start::start_with(&PROCESS, &Sources::of(&arguments, &[]), idle);
    let status = (0..=255).find(|status| ended == ExitCode::from(*status));
    std::process::exit(i32::from(status.unwrap()));
}

fn spawn(arguments: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads the log until a line has the text.
fn wait_for(child: &mut Child, text: &str) {
    let stderr = child.stderr.take().unwrap();
    let mut reader = BufReader::new(stderr);
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(
            reader.read_line(&mut line).unwrap() > 0,
            "it ended without {text:?}"
        );
    }
    child.stderr = Some(reader.into_inner());
}

fn terminate(child: &Child) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
}

fn ended(mut child: Child) -> (i32, String, String) {
    let until = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::yield_now();
    }
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    (child.wait().unwrap().code().expect("no signal"), out, err)
}

#[test]
fn the_first_signal_stops_it_cleanly() {
    let mut child = spawn("");
    wait_for(&mut child, "idle");
    terminate(&child);
    let (status, _, log) = ended(child);
    assert_eq!(status, 0, "{log}");
    assert!(log.contains("a second signal ends at once"), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut child = spawn("--ending deaf");
    wait_for(&mut child, "idle");
    terminate(&child);
    wait_for(&mut child, "deaf");
    terminate(&child);
    assert_eq!(ended(child).0, 130);
}

#[test]
fn a_failure_is_logged_with_its_cause_and_ends_non_zero() {
    let (status, _, log) = ended(spawn("--ending failing --log-format json"));
    assert_eq!(status, 1, "{log}");
    let last: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).expect("JSON");
    assert_eq!(last["error"], "it failed: for a reason");
    assert_eq!(last["level"], "ERROR");
}

#[test]
fn wrong_settings_are_told_all_at_once() {
    let (status, _, told) = ended(spawn("--ending soon --log info,x=loud --nonsense"));
    assert_eq!(status, 2, "{told}");
    for wanted in [
        "idle cannot start",
        "\"soon\" is not one of",
        "--nonsense is unknown",
        "idle --help",
    ] {
        assert!(told.contains(wanted), "{wanted} is not in\n{told}");
    }
    let (status, _, told) = ended(spawn("--log info,x=loud"));
    assert!(
        status == 2 && told.contains("is not a log filter"),
        "{told}"
    );
}

#[test]
fn version_and_help_are_printed_and_end_well() {
    let (status, said, _) = ended(spawn("--version"));
    assert!(
        status == 0 && said.contains("idle 0.0.0 (schema 1)"),
        "{said}"
    );
    let (status, said, _) = ended(spawn("--help"));
    assert!(
        status == 0 && said.contains("--ending <clean|deaf|failing>"),
        "{said}"
    );
}
