//! The real processes, as children: started, asked for their health, stopped, killed.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::cpu;
use crate::rig::Rig;

/// How long a process may take to become ready, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A process that runs.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    child: Child,
    admin: SocketAddr,
    log: PathBuf,
}

impl Program {
    /// Starts a process with settings by name and waits until it is ready.
    ///
    /// # Errors
    /// If it ends or does not get ready; with the end of its log.
    pub async fn start(
        rig: &Rig,
        name: &'static str,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut program = Self::spawn(rig, name, settings)?;
        let deadline = Instant::now() + PATIENCE;
        while !program.is_ready().await {
            if let Some(status) = program.child.try_wait()? {
                bail!("{name} ended ({status}):\n{}", program.last_words());
            }
            if Instant::now() > deadline {
                bail!("{name} did not get ready:\n{}", program.last_words());
            }
            sleep(LOOK).await;
        }
        Ok(program)
    }

    fn spawn(rig: &Rig, name: &'static str, settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let binary = rig.binaries.join(name);
        let admin = free_address()?;
        let log = std::env::temp_dir().join(format!("bench-{name}-{}.log", admin.port()));
        let output = File::create(&log).with_context(|| format!("make {}", log.display()))?;
        let mut command = Command::new(&binary);
        command
            .env("DATABASE_URL", &rig.site.database_url)
            .env("AMQP_URL", &rig.site.amqp_url)
            .arg("--admin")
            .arg(admin.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        for (setting, value) in settings {
            command
                .arg(format!("--{}", setting.replace('_', "-")))
                .arg(value);
        }
        let child = command.spawn().with_context(|| {
            format!(
                "start {} (cargo build --release --bins makes it)",
                binary.display()
            )
        })?;
        Ok(Self {
            name,
            child,
            admin,
            log,
        })
    }

    /// Its process id; 0 once it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// The largest resident size it has had, in MiB.
    #[must_use]
    pub fn peak_memory_mib(&self) -> f64 {
        cpu::peak_memory_mib(self.pid())
    }

    /// Stops it cleanly.
    ///
    /// # Errors
    /// If it does not end in time, or not with 0; with the end of its log.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGTERM)?;
        let status = timeout(PATIENCE, self.child.wait()).await;
        let status = status.with_context(|| format!("{} does not stop", self.name))??;
        if !status.success() {
            bail!("{} ended ({status}):\n{}", self.name, self.last_words());
        }
        // Nobody needs the log of a process that ended well.
        let _ = std::fs::remove_file(&self.log);
        Ok(())
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    /// The system's.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        let _ = std::fs::remove_file(&self.log);
        Ok(())
    }

    /// Stops it in its tracks, or lets it go on.
    ///
    /// # Errors
    /// The system's.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid())?);
        kill(pid, signal).with_context(|| format!("send {signal} to {}", self.name))
    }

    async fn is_ready(&self) -> bool {
        let asked = timeout(Duration::from_secs(2), get(self.admin, "/readyz")).await;
        matches!(asked, Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200"))
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(15);
        lines[from..].join("\n")
    }
}

/// A loopback address that is free now.
///
/// # Errors
/// The system's.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("find a free port")?;
    Ok(listener.local_addr()?)
}

async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
