//! The folder a pair of servers lives in, and the account it belongs to.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;

/// How every sandbox folder's name starts.
pub(crate) const PREFIX: &str = "ticketflow-";

/// Accounts that may run the servers when the owner is root, which PostgreSQL refuses to run as.
const ACCOUNTS: [&str; 3] = ["postgres", "rabbitmq", "nobody"];

/// The account the servers run under, where it is not the caller's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// `None` for an ordinary user: the servers run as that user.
    pub(crate) fn for_servers() -> Result<Option<Self>, SandboxError> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(None);
        }
        let known = ACCOUNTS
            .iter()
            .find_map(|name| nix::unistd::User::from_name(name).ok().flatten());
        let user = known.ok_or_else(|| SandboxError::NotInstalled {
            program: "an account for the servers",
            hint: format!("root cannot run them, and none of {ACCOUNTS:?} is there"),
        })?;
        Ok(Some(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        }))
    }
}

/// What a process needs to know to use or break the servers; kept in the folder, so that other
/// processes can attach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) account: Option<Account>,
    pub(crate) password: String,
    pub(crate) postgres_port: u16,
    pub(crate) amqp_port: u16,
    pub(crate) distribution_port: u16,
    pub(crate) epmd_port: u16,
    pub(crate) node: String,
}

/// The folder of one pair of servers.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    account: Option<Account>,
}

impl Folder {
    /// A new, empty folder that only the servers' account (and root) can enter.
    pub(crate) fn create(account: Option<Account>) -> Result<Self, SandboxError> {
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(base(account)?)
            .map_err(SandboxError::io("make a folder for the servers"))?
            .keep();
        let folder = Self { path, account };
        folder.give(&folder.path)?;
        folder.subfolder("run")?;
        folder.subfolder("log")?;
        Ok(folder)
    }

    /// The folder of servers that another process started.
    pub(crate) fn open(path: &Path) -> Result<(Self, State), SandboxError> {
        let missing = |reason: String| SandboxError::NoServers {
            folder: path.to_owned(),
            reason,
        };
        let path = path
            .canonicalize()
            .map_err(|error| missing(error.to_string()))?;
        let text = fs::read_to_string(path.join("state.json"))
            .map_err(|error| missing(format!("state.json: {error}")))?;
        let state: State =
            serde_json::from_str(&text).map_err(|error| missing(format!("state.json: {error}")))?;
        let account = state.account;
        Ok((Self { path, account }, state))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn account(&self) -> Option<Account> {
        self.account
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the process id of a server is.
    pub(crate) fn pid_file(&self, server: &str) -> PathBuf {
        self.path.join(format!("run/{server}.pid"))
    }

    /// Where what a server prints goes.
    pub(crate) fn output_file(&self, server: &str) -> PathBuf {
        self.path.join(format!("log/{server}.out"))
    }

    pub(crate) fn subfolder(&self, name: &str) -> Result<(), SandboxError> {
        let path = self.at(name);
        fs::create_dir(&path).map_err(SandboxError::io(format!("make {}", path.display())))?;
        self.give(&path)
    }

    /// Writes a file that only the servers' account can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), SandboxError> {
        let path = self.at(name);
        let tried = || format!("write {}", path.display());
        let file =
            tempfile::NamedTempFile::new_in(&self.path).map_err(SandboxError::io(tried()))?;
        fs::write(file.path(), text).map_err(SandboxError::io(tried()))?;
        self.give(file.path())?;
        file.persist(&path).map_err(|error| SandboxError::Io {
            what: tried(),
            source: error.error,
        })?;
        Ok(())
    }

    pub(crate) fn write_state(&self, state: &State) -> Result<(), SandboxError> {
        self.write("state.json", &serde_json::json!(state).to_string())
    }

    /// The end of what a server printed, for an error message.
    pub(crate) fn last_words(&self, server: &str) -> String {
        let bytes = fs::read(self.output_file(server)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn give(&self, path: &Path) -> Result<(), SandboxError> {
        let Some(account) = self.account else {
            return Ok(());
        };
        chown(path, Some(account.uid), Some(account.gid)).map_err(SandboxError::io(format!(
            "give {} to the servers",
            path.display()
        )))
    }
}

/// A folder for temporary files that the servers' account can enter: the usual one, unless it is
/// below a folder closed to others.
fn base(account: Option<Account>) -> Result<PathBuf, SandboxError> {
    let usual = std::env::temp_dir();
    if account.is_none() {
        return Ok(usual);
    }
    [
        usual.clone(),
        PathBuf::from("/tmp"),
        PathBuf::from("/var/tmp"),
    ]
    .into_iter()
    .filter_map(|path| path.canonicalize().ok())
    .find(|path| path.ancestors().all(open_to_others))
    .ok_or_else(|| SandboxError::Io {
        what: format!(
            "find a temporary folder open to others ({})",
            usual.display()
        ),
        source: std::io::Error::from(std::io::ErrorKind::PermissionDenied),
    })
}

fn open_to_others(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| {
        data.is_dir() && data.permissions().mode() & 0o001 != 0 && data.nlink() > 0
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::open_to_others;

    #[test]
    fn a_closed_folder_is_not_open_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        create_dir(&closed).unwrap();
        set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        assert!(!open_to_others(&closed));
        set_permissions(&closed, Permissions::from_mode(0o711)).unwrap();
        assert!(open_to_others(&closed));
    }
}
