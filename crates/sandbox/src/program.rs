//! The real processes as children: started, asked for their health, stopped, killed, paused.
//!
//! A child is registered in its sandbox's folder, so that the watchdog ends it with the servers
//! when the owner is killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::error::SandboxError;
use crate::folder::Folder;
use crate::pair::Sandbox;
use crate::ports::free_ports;
use crate::process;

/// How long a process may take to become ready, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// How long an answer of the admin port may take.
const ANSWER: Duration = Duration::from_secs(5);

/// Names the folder of the workspace's programs, if they are not beside the running one.
pub const BINARIES_VARIABLE: &str = "TICKETFLOW_BINARIES";

/// The path of one of the workspace's programs. They must have been built:
/// `cargo build --workspace --bins`.
///
/// # Errors
/// [`SandboxError::NotBuilt`] if it is not there.
pub fn binary(name: &'static str) -> Result<PathBuf, SandboxError> {
    let own = std::env::current_exe().map_err(SandboxError::io("find the running program"))?;
    let named = std::env::var_os(BINARIES_VARIABLE).map(PathBuf::from);
    // A test is in the folder `deps` beside them.
    let near = own.ancestors().skip(1).take(2).map(Path::to_owned);
    named
        .into_iter()
        .chain(near)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or(SandboxError::NotBuilt { program: name })
}

/// A process that runs, with an admin port of its own. Killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    pid: Pid,
    admin: SocketAddr,
    log: PathBuf,
    registration: PathBuf,
}

impl Program {
    /// Starts one of the workspace's processes with further environment and arguments, and waits
    /// until it is ready. `DATABASE_URL`, `AMQP_URL` and the like come from the environment given.
    ///
    /// # Errors
    /// [`SandboxError::Program`] with its last words if it ends or does not become ready.
    pub async fn start(
        sandbox: &Sandbox,
        name: &'static str,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Self, SandboxError> {
        let mut program = Self::spawn(sandbox, name, environment, arguments)?;
        program.wait_until_ready().await?;
        Ok(program)
    }

    /// Starts one without waiting for anything.
    ///
    /// # Errors
    /// [`SandboxError::NotBuilt`] or [`SandboxError::Io`] if it cannot be started.
    pub fn spawn(
        sandbox: &Sandbox,
        name: &'static str,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Self, SandboxError> {
        let [port] = free_ports()?;
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut command = Command::new(binary(name)?);
        command
            .arg("--admin")
            .arg(admin.to_string())
            .args(arguments)
            .envs(environment.iter().copied());
        Self::spawn_command(sandbox.folder(), name, admin, command)
    }

    fn spawn_command(
        folder: &Folder,
        name: &str,
        admin: SocketAddr,
        mut command: Command,
    ) -> Result<Self, SandboxError> {
        let tried = || format!("start {name}");
        let label = format!("{name}-{}", admin.port());
        let log = folder.output_file(&label);
        let output = File::create(&log).map_err(SandboxError::io(tried()))?;
        let errors = output.try_clone().map_err(SandboxError::io(tried()))?;
        let child = command
            // By this name the watchdog knows the process as one of the folder's.
            .arg0(format!("{name}@{}", folder.path().display()))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(SandboxError::io(tried()))?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = Pid::from_raw(id.ok_or_else(|| SandboxError::Io {
            what: tried(),
            source: std::io::Error::other("it ended at once"),
        })?);
        let registration = folder.pid_file(&label);
        fs::write(&registration, format!("{pid}\n")).map_err(SandboxError::io(tried()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            pid,
            admin,
            log,
            registration,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Its admin port.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Everything it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until `/readyz` says yes.
    ///
    /// # Errors
    /// [`SandboxError::Program`] with its last words if it ends or does not become ready.
    pub async fn wait_until_ready(&mut self) -> Result<(), SandboxError> {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_ready().await {
            let ended = self.child.try_wait().map_err(self.io("look at"))?;
            if let Some(status) = ended {
                return Err(self.failed(format!("ended before it was ready ({status})")));
            }
            if Instant::now() > deadline {
                return Err(self.failed("did not become ready".to_owned()));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether `/readyz` says yes now.
    pub async fn is_ready(&self) -> bool {
        self.get("/readyz")
            .await
            .is_some_and(|(status, _)| status == 200)
    }

    /// The value of a metric, summed over its labels; none if it is not shown.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics").await?;
        let values: Vec<f64> = text
            .lines()
            .filter_map(|line| line.strip_prefix(name))
            .filter(|rest| rest.starts_with([' ', '{']))
            .filter_map(|rest| rest.rsplit(' ').next()?.parse().ok())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Asks its admin port; status and body, or none if it does not answer.
    pub async fn get(&self, path: &str) -> Option<(u16, String)> {
        let asked = async {
            let mut stream = TcpStream::connect(self.admin).await.ok()?;
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            let status = answer.split(' ').nth(1)?.parse().ok()?;
            let (_, body) = answer.split_once("\r\n\r\n")?;
            Some((status, body.to_owned()))
        };
        timeout(ANSWER, asked).await.ok().flatten()
    }

    /// Stops it with SIGTERM and waits for its end.
    ///
    /// # Errors
    /// [`SandboxError::Program`] with its last words if it does not end in time, or not with 0.
    pub async fn stop(mut self) -> Result<(), SandboxError> {
        self.signal(Signal::SIGTERM)?;
        match timeout(PATIENCE, self.child.wait()).await {
            Err(_) => Err(self.failed("did not stop".to_owned())),
            Ok(status) => match status.map_err(self.io("await"))? {
                status if status.success() => Ok(()),
                status => Err(self.failed(format!("did not stop well ({status})"))),
            },
        }
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it may not be killed.
    pub async fn kill9(mut self) -> Result<(), SandboxError> {
        self.child.kill().await.map_err(self.io("kill"))
    }

    /// Kills it with SIGKILL without giving it up.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it may not be killed.
    pub fn kill(&self) -> Result<(), SandboxError> {
        self.signal(Signal::SIGKILL)
    }

    /// Whether it has ended, by itself or by a signal.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it cannot be looked at.
    pub fn has_ended(&mut self) -> Result<bool, SandboxError> {
        let ended = self.child.try_wait().map_err(self.io("look at"))?;
        Ok(ended.is_some())
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// [`SandboxError::Program`] if it does not end in time.
    pub async fn wait(&mut self) -> Result<ExitStatus, SandboxError> {
        match timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.map_err(self.io("await")),
            Err(_) => Err(self.failed("did not end".to_owned())),
        }
    }

    /// Stops it in its tracks with SIGSTOP.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it may not be.
    pub fn pause(&self) -> Result<(), SandboxError> {
        self.signal(Signal::SIGSTOP)
    }

    /// Lets it go on after [`Program::pause`].
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it may not.
    pub fn resume(&self) -> Result<(), SandboxError> {
        self.signal(Signal::SIGCONT)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// [`SandboxError::Io`] if it may not be sent.
    pub fn signal(&self, signal: Signal) -> Result<(), SandboxError> {
        process::send(self.pid, signal).map_err(self.io("signal"))
    }

    fn failed(&self, what: String) -> SandboxError {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        SandboxError::Program {
            program: self.name.clone(),
            what,
            words: lines[lines.len().saturating_sub(15)..].join("\n"),
        }
    }

    fn io(&self, what: &str) -> impl FnOnce(std::io::Error) -> SandboxError + use<> {
        SandboxError::io(format!("{what} {}", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It stays only if the owner was killed, which is when it is needed.
        let _ = fs::remove_file(&self.registration);
    }
}

/// Runs one of the workspace's programs to its end and gives back what it prints.
///
/// # Errors
/// [`SandboxError::Program`] with its words if it does not end well.
pub async fn output(
    name: &'static str,
    environment: &[(&str, &str)],
    arguments: &[impl AsRef<OsStr>],
) -> Result<String, SandboxError> {
    let ran = Command::new(binary(name)?)
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = ran.await.map_err(SandboxError::io(format!("run {name}")))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    Err(SandboxError::Program {
        program: name.to_owned(),
        what: format!("failed ({})", ran.status),
        words: String::from_utf8_lossy(&ran.stderr).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping(folder: &Folder) -> Program {
        let mut command = Command::new("sleep");
        command.arg("600");
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Program::spawn_command(folder, "sleep", admin, command).unwrap()
    }

    #[tokio::test]
    async fn a_program_is_known_by_its_folder_and_can_be_paused_and_killed() {
        let folder = Folder::create(None).unwrap();
        let program = sleeping(&folder);
        let file = folder.pid_file("sleep-1");
        while process::running(&file, folder.path()).is_none() {
            tokio::task::yield_now().await;
        }
        program.pause().unwrap();
        while !process::is_stopped(program.pid) {
            tokio::task::yield_now().await;
        }
        program.resume().unwrap();
        let pid = program.pid();
        program.kill9().await.unwrap();
        assert!(process::is_dead(pid));
        assert!(!file.exists());
        fs::remove_dir_all(folder.path()).unwrap();
    }

    #[tokio::test]
    async fn the_watchdog_ends_programs_too() {
        let folder = Folder::create(None).unwrap();
        let watchdog = crate::watchdog::Watchdog::start(&folder).unwrap();
        let mut program = sleeping(&folder);
        while process::running(&folder.pid_file("sleep-1"), folder.path()).is_none() {
            tokio::task::yield_now().await;
        }
        let ended = tokio::task::spawn_blocking(|| drop(watchdog));
        assert!(!program.wait().await.unwrap().success());
        ended.await.unwrap();
        assert!(!folder.path().exists());
    }
}
