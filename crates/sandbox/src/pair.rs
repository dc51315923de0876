//! A pair of private servers: started, shared by a process, or attached to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::error::SandboxError;
use crate::folder::{Account, Folder, State};
use crate::options::SandboxOptions;
use crate::ports::free_ports;
use crate::server::{Kind, Server};
use crate::site::{self, Site};
use crate::watchdog::Watchdog;
use crate::{broker_node, database, process};

/// Names the folder of servers that run already: [`shared`] uses those instead of starting some.
pub const ATTACH_VARIABLE: &str = "TICKETFLOW_SANDBOX";

/// How often a start is tried: another process may take a port between the look and the use.
const TRIES: usize = 4;

static SHARED: OnceCell<Arc<Sandbox>> = OnceCell::const_new();

/// The pair of servers that this process shares: the one of [`ATTACH_VARIABLE`] if that is set,
/// else one that is started now and ends with the process.
///
/// # Errors
/// Those of [`Sandbox::start`] and [`Sandbox::attach`].
pub async fn shared() -> Result<Arc<Sandbox>, SandboxError> {
    let started = SHARED.get_or_try_init(|| async {
        let sandbox = match std::env::var_os(ATTACH_VARIABLE) {
            Some(folder) => Sandbox::attach(Path::new(&folder)).await?,
            None => Sandbox::start(SandboxOptions::default()).await?,
        };
        Ok::<_, SandboxError>(Arc::new(sandbox))
    });
    started.await.cloned()
}

/// A private PostgreSQL and a private RabbitMQ. Those it started end when it is dropped, or when
/// the process ends in any way; those it attached to go on.
#[derive(Debug)]
pub struct Sandbox {
    folder: Folder,
    state: State,
    postgres: Server,
    rabbitmq: Server,
    template: OnceCell<String>,
    watchdog: Option<Watchdog>,
}

impl Sandbox {
    /// Starts a pair of servers of one's own.
    ///
    /// # Errors
    /// [`SandboxError::NotInstalled`] if a program is missing; [`SandboxError::Server`] with the
    /// server's last words if one does not come up.
    pub async fn start(options: SandboxOptions) -> Result<Self, SandboxError> {
        let mut tries = 1;
        loop {
            match Self::try_start(&options).await {
                Err(SandboxError::Server { words, .. })
                    if tries < TRIES && is_port_taken(&words) =>
                {
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// Uses servers that run in a folder already (`just up`), starting those that do not.
    ///
    /// # Errors
    /// [`SandboxError::NoServers`] if the folder holds none.
    pub async fn attach(path: &Path) -> Result<Self, SandboxError> {
        let (folder, state) = Folder::open(path)?;
        let sandbox = Self::of(folder, state, None);
        tokio::try_join!(sandbox.postgres.start(), sandbox.rabbitmq.start())?;
        site::sweep(&sandbox).await?;
        Ok(sandbox)
    }

    /// The servers of a folder, whether they run or not.
    ///
    /// # Errors
    /// [`SandboxError::NoServers`] if the folder holds none.
    pub fn look(path: &Path) -> Result<Self, SandboxError> {
        let (folder, state) = Folder::open(path)?;
        Ok(Self::of(folder, state, None))
    }

    /// Leaves the servers running when this process ends, and says in which folder.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if the watchdog cannot be told.
    pub fn keep(mut self) -> Result<PathBuf, SandboxError> {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.keep()?;
        }
        Ok(self.folder.path().to_owned())
    }

    /// Kills the servers, kept ones too, and removes their folder.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if they may not be killed or the folder not be removed.
    pub async fn remove(mut self) -> Result<(), SandboxError> {
        if let Some(watchdog) = self.watchdog.take() {
            return tokio::task::spawn_blocking(|| drop(watchdog))
                .await
                .map_err(|error| SandboxError::io("await the watchdog")(error.into()));
        }
        tokio::try_join!(self.postgres.kill9(), self.rabbitmq.kill9())?;
        if let Some(pid) = process::running(&self.folder.pid_file("epmd"), self.folder.path()) {
            process::send(pid, nix::sys::signal::Signal::SIGKILL)
                .map_err(SandboxError::io("kill epmd"))?;
        }
        let path = self.folder.path();
        std::fs::remove_dir_all(path)
            .map_err(SandboxError::io(format!("remove {}", path.display())))
    }

    /// The folder the servers live in; [`ATTACH_VARIABLE`] takes it.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The private PostgreSQL.
    #[must_use]
    pub fn postgres(&self) -> &Server {
        &self.postgres
    }

    /// The private RabbitMQ.
    #[must_use]
    pub fn rabbitmq(&self) -> &Server {
        &self.rabbitmq
    }

    /// The URL of one database.
    #[must_use]
    pub fn database_url(&self, database: &str) -> String {
        database::url(&self.state, self.state.postgres_port, database)
    }

    /// The URL of one virtual host.
    #[must_use]
    pub fn amqp_url(&self, vhost: &str) -> String {
        broker_node::url(&self.state, self.state.amqp_port, vhost)
    }

    /// The URL of one database through a port that leads there, such as a proxy's.
    #[must_use]
    pub fn database_url_through(&self, port: u16, database: &str) -> String {
        database::url(&self.state, port, database)
    }

    /// The URL of one virtual host through a port that leads there.
    #[must_use]
    pub fn amqp_url_through(&self, port: u16, vhost: &str) -> String {
        broker_node::url(&self.state, port, vhost)
    }

    /// A superuser's session in one database.
    ///
    /// # Errors
    /// [`SandboxError::Database`] if it is not there or does not answer.
    pub async fn database(&self, database: &str) -> Result<Client, SandboxError> {
        database::connect(&self.database_url(database))
            .await
            .map_err(SandboxError::database(format!("connect to {database}")))
    }

    /// Makes an empty database.
    ///
    /// # Errors
    /// [`SandboxError::Database`] if it is there already.
    pub async fn create_database(&self, name: &str) -> Result<(), SandboxError> {
        self.database("postgres")
            .await?
            .batch_execute(&format!("create database \"{name}\""))
            .await
            .map_err(SandboxError::database(format!("make the database {name}")))
    }

    /// A migrated database and a virtual host of one's own, dropped with the [`Site`]. The name
    /// is for people who look at the servers; it need not be unique.
    ///
    /// # Errors
    /// [`SandboxError::Database`] and [`SandboxError::Broker`] if a server refuses.
    pub async fn site(self: &Arc<Self>, name: &str) -> Result<Site, SandboxError> {
        Site::create(self, name).await
    }

    /// Raises RabbitMQ's memory alarm, which blocks every publisher, or clears it.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the node does not answer.
    pub async fn memory_alarm(&self, on: bool) -> Result<(), SandboxError> {
        self.alarm("memory", on).await
    }

    /// Raises RabbitMQ's disk alarm, which blocks every publisher, or clears it.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the node does not answer.
    pub async fn disk_alarm(&self, on: bool) -> Result<(), SandboxError> {
        self.alarm("disk", on).await
    }

    /// Runs RabbitMQ's own tool and gives back what it prints. Takes about a second.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] with its words if it fails.
    pub async fn rabbitmqctl(&self, arguments: &[&str]) -> Result<String, SandboxError> {
        let mut tool = broker_node::rabbitmqctl_command(&self.folder, &self.state)?;
        tool.args(["--quiet", "-n", &self.state.node])
            .args(arguments);
        let output = tokio::process::Command::from(tool)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(SandboxError::io("run rabbitmqctl"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(SandboxError::Broker {
            what: format!("run rabbitmqctl {}", arguments.join(" ")),
            words: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Evaluates Erlang expressions on RabbitMQ's node; the last one must yield text.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] with the node's words if it refuses.
    pub async fn evaluate(&self, expressions: &str) -> Result<String, SandboxError> {
        broker_node::evaluate(&self.folder, &self.state, expressions).await
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The database that sites are copied from, made and migrated at the first call.
    pub(crate) async fn template(&self) -> Result<&str, SandboxError> {
        let template = self
            .template
            .get_or_try_init(|| site::create_template(self));
        template.await.map(String::as_str)
    }

    async fn alarm(&self, resource: &str, on: bool) -> Result<(), SandboxError> {
        let source = format!("{{resource_limit, {resource}, node()}}");
        let order = if on {
            format!("rabbit_alarm:set_alarm({{{source}, []}})")
        } else {
            format!("rabbit_alarm:clear_alarm({source})")
        };
        self.evaluate(&format!("{order}, \"\"")).await.map(drop)
    }

    async fn try_start(options: &SandboxOptions) -> Result<Self, SandboxError> {
        let folder = Folder::create(Account::for_servers()?)?;
        let watchdog = Watchdog::start(&folder)?;
        let [postgres_port, amqp_port, distribution_port, epmd_port] = free_ports()?;
        let word = |length| -> String {
            std::iter::repeat_with(fastrand::alphanumeric)
                .take(length)
                .collect()
        };
        let state = State {
            account: folder.account(),
            password: word(24),
            postgres_port,
            amqp_port,
            distribution_port,
            epmd_port,
            node: format!("ticketflow-{}@localhost", word(8)),
        };
        folder.write_state(&state)?;
        let sandbox = Self::of(folder, state, Some(watchdog));
        broker_node::create(&sandbox.folder, &sandbox.state, options)?;
        let postgres = async {
            let (folder, state) = (sandbox.folder.clone(), sandbox.state.clone());
            let options = options.clone();
            let made = move || database::create(&folder, &state, &options);
            tokio::task::spawn_blocking(made)
                .await
                .map_err(|error| SandboxError::io("await initdb")(error.into()))??;
            sandbox.postgres.start().await
        };
        tokio::try_join!(postgres, sandbox.rabbitmq.start())?;
        Ok(sandbox)
    }

    fn of(folder: Folder, state: State, watchdog: Option<Watchdog>) -> Self {
        Self {
            postgres: Server::new(Kind::Postgres, &folder, &state),
            rabbitmq: Server::new(Kind::Rabbitmq, &folder, &state),
            folder,
            state,
            template: OnceCell::new(),
            watchdog,
        }
    }
}

/// In the words of PostgreSQL, of RabbitMQ, and of epmd and Erlang's distribution.
fn is_port_taken(words: &str) -> bool {
    ["Address already in use", "eaddrinuse", "could not bind"]
        .iter()
        .any(|sign| words.contains(sign))
}
