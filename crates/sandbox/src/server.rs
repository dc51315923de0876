//! One private server, and the ways to break it.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::error::SandboxError;
use crate::folder::{Folder, State};
use crate::{broker_node, database, launch, process};

/// How long a server may take to come up or to stop; a laden machine needs a while.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process that has not been seen for so long did end.
const GONE: Duration = Duration::from_secs(2);

/// How often the state of a server is looked at.
const LOOK: Duration = Duration::from_millis(25);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Rabbitmq,
}

/// PostgreSQL or RabbitMQ of a [`crate::Sandbox`]. Works from the folder alone, so also for
/// servers that another process started.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    folder: Folder,
    state: State,
}

impl Server {
    pub(crate) fn new(kind: Kind, folder: &Folder, state: &State) -> Self {
        Self {
            kind,
            folder: folder.clone(),
            state: state.clone(),
        }
    }

    /// The port it listens on; the same for as long as the sandbox lives.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self.kind {
            Kind::Postgres => self.state.postgres_port,
            Kind::Rabbitmq => self.state.amqp_port,
        }
    }

    /// Whether its process runs (or is paused).
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.pid().is_some()
    }

    /// Starts it and waits until it serves. Does nothing if it runs.
    ///
    /// # Errors
    /// [`SandboxError::Server`] with its last words if it ends or does not serve in time.
    pub async fn start(&self) -> Result<(), SandboxError> {
        if self.is_running() {
            return self.wait_until_ready().await;
        }
        match self.kind {
            Kind::Postgres => {
                let command = database::server_command(&self.folder)?;
                launch::start(&self.folder, "postgres", &command)?;
            }
            Kind::Rabbitmq => {
                if process::running(&self.folder.pid_file("epmd"), self.folder.path()).is_none() {
                    let epmd = broker_node::epmd_command(&self.folder, &self.state)?;
                    launch::start(&self.folder, "epmd", &epmd)?;
                }
                let command = broker_node::server_command(&self.folder, &self.state)?;
                launch::start(&self.folder, "rabbitmq", &command)?;
            }
        }
        self.wait_until_ready().await
    }

    /// Stops it as an operator would: PostgreSQL's fast shutdown, RabbitMQ's on SIGTERM.
    ///
    /// # Errors
    /// [`SandboxError::Server`] if it does not end in time.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        let signal = match self.kind {
            Kind::Postgres => Signal::SIGINT,
            Kind::Rabbitmq => Signal::SIGTERM,
        };
        if let Some(pid) = self.pid() {
            self.send(&[pid], signal)?;
            self.wait_until_dead(&[pid]).await?;
        }
        Ok(())
    }

    /// Stops it and starts it again.
    ///
    /// # Errors
    /// Those of [`Server::stop`] and [`Server::start`].
    pub async fn restart(&self) -> Result<(), SandboxError> {
        self.stop().await?;
        self.start().await
    }

    /// Kills all its processes with SIGKILL and waits until they are gone.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if they may not be killed.
    pub async fn kill9(&self) -> Result<(), SandboxError> {
        let Some(pid) = self.pid() else {
            return Ok(());
        };
        let family = self.freeze(pid)?;
        self.send(&family, Signal::SIGKILL)?;
        self.wait_until_dead(&family).await
    }

    /// Stops all its processes in their tracks with SIGSTOP: connections stay open, nothing
    /// answers.
    ///
    /// # Errors
    /// [`SandboxError::NoServers`] if it does not run.
    pub fn pause(&self) -> Result<(), SandboxError> {
        let family = self.freeze(self.running()?)?;
        // SIGSTOP takes effect a moment after kill() returns.
        let deadline = Instant::now() + PATIENCE;
        while !family
            .iter()
            .all(|pid| process::is_stopped(*pid) || process::is_dead(pid.as_raw()))
        {
            if Instant::now() > deadline {
                return Err(self.failed("pause"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Lets a paused server go on.
    ///
    /// # Errors
    /// [`SandboxError::NoServers`] if it does not run.
    pub fn resume(&self) -> Result<(), SandboxError> {
        let pid = self.running()?;
        let mut family = process::descendants(pid);
        family.push(pid);
        self.send(&family, Signal::SIGCONT)
    }

    /// Stops parent and children with SIGSTOP, so that no new ones come, and lists them.
    fn freeze(&self, pid: Pid) -> Result<Vec<Pid>, SandboxError> {
        self.send(&[pid], Signal::SIGSTOP)?;
        let mut family = process::descendants(pid);
        self.send(&family, Signal::SIGSTOP)?;
        family.push(pid);
        Ok(family)
    }

    fn pid(&self) -> Option<Pid> {
        process::running(&self.folder.pid_file(self.short_name()), self.folder.path())
    }

    fn running(&self) -> Result<Pid, SandboxError> {
        self.pid().ok_or_else(|| SandboxError::NoServers {
            folder: self.folder.path().to_owned(),
            reason: format!("{} does not run", self.name()),
        })
    }

    fn send(&self, family: &[Pid], signal: Signal) -> Result<(), SandboxError> {
        family
            .iter()
            .try_for_each(|pid| process::send(*pid, signal))
            .map_err(SandboxError::io(format!(
                "send {signal} to {}",
                self.name()
            )))
    }

    async fn wait_until_ready(&self) -> Result<(), SandboxError> {
        let deadline = Instant::now() + PATIENCE;
        // The launcher writes the id first thing; before that the server is not "dead". Nor is it
        // while it becomes another program: in that moment it has no command line.
        let mut missed_since = None;
        while !self.is_ready().await {
            let now = Instant::now();
            if self.is_running() {
                missed_since = None;
            } else if self.folder.pid_file(self.short_name()).exists() {
                missed_since.get_or_insert(now);
            }
            if missed_since.is_some_and(|since| now > since + GONE) || now > deadline {
                return Err(self.failed("start"));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn is_ready(&self) -> bool {
        match self.kind {
            Kind::Postgres => {
                let url = database::url(&self.state, self.state.postgres_port, "postgres");
                database::connect(&url).await.is_ok()
            }
            // Asking while the node boots costs little, but only a listener is worth asking.
            Kind::Rabbitmq => {
                let address = ("127.0.0.1", self.state.amqp_port);
                let question = "case rabbit:is_running() of true -> \"yes\"; false -> \"no\" end";
                tokio::net::TcpStream::connect(address).await.is_ok()
                    && broker_node::evaluate(&self.folder, &self.state, question)
                        .await
                        .is_ok_and(|answer| answer == "yes")
            }
        }
    }

    async fn wait_until_dead(&self, family: &[Pid]) -> Result<(), SandboxError> {
        let deadline = Instant::now() + PATIENCE;
        while !family.iter().all(|pid| process::is_dead(pid.as_raw())) {
            if Instant::now() > deadline {
                return Err(self.failed("end"));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    fn failed(&self, what: &'static str) -> SandboxError {
        SandboxError::Server {
            server: self.name(),
            what,
            words: self.folder.last_words(self.short_name()),
        }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "PostgreSQL",
            Kind::Rabbitmq => "RabbitMQ",
        }
    }

    fn short_name(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::Rabbitmq => "rabbitmq",
        }
    }
}
