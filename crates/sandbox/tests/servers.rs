//! The private servers: shared, broken, attached to, and gone afterwards.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::{Sandbox, SandboxOptions};

/// Sandbox processes that still run: their command lines name the folder.
fn processes_of(folder: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come true");
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_have_a_database_and_a_virtual_host_of_their_own() {
    let servers = sandbox::shared().await.unwrap();
    let (one, other) = tokio::join!(servers.site("one"), servers.site("one"));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.database_url, other.database_url);
    assert_ne!(one.amqp_url, other.amqp_url);
    let client = one.database().await.unwrap();
    client
        .batch_execute("create table only_here ()")
        .await
        .unwrap();
    let client = other.database().await.unwrap();
    client
        .batch_execute("select from only_here")
        .await
        .unwrap_err();
    assert_eq!(one.queues().await.unwrap(), []);

    let vhost = one.name.clone();
    let listed = || servers.rabbitmqctl(&["list_vhosts"]);
    assert!(listed().await.unwrap().contains(&vhost));
    drop(one);
    assert!(!listed().await.unwrap().contains(&vhost));
    servers.database(&vhost).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_can_be_killed_paused_and_restarted() {
    let servers = Sandbox::start(SandboxOptions::default()).await.unwrap();
    let folder = servers.path().to_str().unwrap().to_owned();
    let url = servers.database_url("postgres");
    let port = servers.postgres().port();

    servers.postgres().kill9().await.unwrap();
    assert!(!servers.postgres().is_running());
    servers.database("postgres").await.unwrap_err();
    servers.postgres().start().await.unwrap();
    assert_eq!(servers.postgres().port(), port);

    let client = servers.database("postgres").await.unwrap();
    servers.postgres().pause().unwrap();
    let asked = client.simple_query("select 1");
    let held = tokio::time::timeout(Duration::from_millis(300), asked).await;
    held.expect_err("a paused server does not answer");
    servers.postgres().resume().unwrap();
    client.simple_query("select 1").await.unwrap();
    servers.postgres().restart().await.unwrap();
    servers.database("postgres").await.unwrap();
    assert!(url.contains("127.0.0.1"));

    servers.rabbitmq().kill9().await.unwrap();
    servers.evaluate("\"up\"").await.unwrap_err();
    servers.rabbitmq().start().await.unwrap();
    assert_eq!(servers.evaluate("\"up\"").await.unwrap(), "up");
    servers.memory_alarm(true).await.unwrap();
    let alarms = "io_lib:format(\"~p\", [rabbit_alarm:get_alarms()])";
    assert!(servers.evaluate(alarms).await.unwrap().contains("memory"));
    servers.memory_alarm(false).await.unwrap();
    assert_eq!(servers.evaluate(alarms).await.unwrap(), "[]");
    servers.rabbitmq().stop().await.unwrap();
    assert!(!servers.rabbitmq().is_running());

    drop(servers);
    wait_until("the end of all processes", || {
        processes_of(&folder).is_empty()
    });
    assert!(!Path::new(&folder).exists());
}

/// `sandbox with cat` stands for any owner of servers; its child says where they are.
fn owner() -> (std::process::Child, String) {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args(["with", "sh", "-c", "echo $TICKETFLOW_SANDBOX; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let folder = line.trim().to_owned();
    assert!(
        !processes_of(&folder).is_empty(),
        "nothing runs in {folder:?}"
    );
    (owner, folder)
}

#[test]
fn nothing_is_left_when_the_owner_is_killed() {
    let (mut owner, folder) = owner();
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the end of all processes", || {
        processes_of(&folder).is_empty()
    });
    wait_until("the end of the folder", || !Path::new(&folder).exists());
}

#[test]
fn nothing_that_a_server_has_started_is_left() {
    let (mut owner, folder) = owner();
    // As Erlang does with a port mapper: a name, folder and session of its own.
    let mut started = Command::new("setsid")
        .args(["sleep", "600"])
        .env("HOME", &folder)
        .spawn()
        .unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(!started.wait().unwrap().success());
}

#[test]
fn nothing_is_left_when_the_owner_ends() {
    let (mut owner, folder) = owner();
    drop(owner.stdin.take());
    assert!(owner.wait().unwrap().success());
    assert_eq!(processes_of(&folder), Vec::<String>::new());
    assert!(!Path::new(&folder).exists());
}

#[test]
fn lasting_servers_stay_until_they_are_taken_down() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("deep/link");
    let sandbox = |command: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_sandbox"))
            .arg("--at")
            .arg(&link)
            .args(command)
            .env_remove("DATABASE_URL")
            .env_remove("AMQP_URL")
            .output()
            .unwrap()
    };
    let missing = sandbox(&["run", "true"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("just up"));

    let up = sandbox(&["up"]);
    let printed = String::from_utf8(up.stdout).unwrap();
    assert!(printed.contains("DATABASE_URL=postgres://"), "{printed:?}");
    assert!(printed.contains("AMQP_URL=amqp://"), "{printed:?}");
    let folder = link.read_link().unwrap().to_str().unwrap().to_owned();
    assert_eq!(String::from_utf8(sandbox(&["up"]).stdout).unwrap(), printed);
    assert!(sandbox(&["status"]).status.success());
    let shown = sandbox(&["run", "sh", "-c", "echo DATABASE_URL=$DATABASE_URL"]);
    assert!(printed.contains(String::from_utf8(shown.stdout).unwrap().trim()));
    assert!(sandbox(&["down"]).status.success());
    wait_until("the end of all processes", || {
        processes_of(&folder).is_empty()
    });
    assert!(!link.is_symlink());
}

#[test]
fn a_program_that_fails_fails_the_run() {
    let mut failed = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args(["run", "sh", "-c", "exit 7"])
        .envs([("DATABASE_URL", "postgres://x/y"), ("AMQP_URL", "amqp://x")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = String::new();
    failed
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut words)
        .unwrap();
    assert_eq!(failed.wait().unwrap().code(), Some(7), "{words}");
}

#[test]
fn a_request_to_stop_reaches_the_program() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args([
            "run",
            "sh",
            "-c",
            "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done",
        ])
        .envs([("DATABASE_URL", "postgres://x/y"), ("AMQP_URL", "amqp://x")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut owner = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args([
            "with",
            "sh",
            "-c",
            "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for program in [&mut run, &mut owner] {
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        let id = i32::try_from(program.id()).unwrap();
        kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
        assert_eq!(program.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_program_sees_nothing_of_the_cargo_that_runs_us() {
    let seen = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .args(["run", "env"])
        .envs([("DATABASE_URL", "postgres://x/y"), ("AMQP_URL", "amqp://x")])
        .envs([("CARGO_PKG_NAME", "sandbox"), ("CARGO_TARGET_DIR", "kept")])
        .output()
        .unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.contains("CARGO_TARGET_DIR=kept"), "{seen}");
    assert!(seen.contains("TICKETFLOW_BINARIES="), "{seen}");
    assert!(!seen.contains("CARGO_PKG_"), "{seen}");
    assert!(!seen.contains("CARGO_MANIFEST_"), "{seen}");
}
