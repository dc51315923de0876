//! Servers that outlive the process that started them (`just up`): a link says where they are.

use std::fs;
use std::path::Path;

use crate::error::SandboxError;
use crate::options::SandboxOptions;
use crate::pair::Sandbox;

/// The database of lasting servers; their virtual host is the broker's first.
pub const DATABASE: &str = "ticketflow";

/// The virtual host of lasting servers.
pub const VHOST: &str = "/";

/// Starts servers and links to their folder; if the link leads to some already, starts those of
/// them that do not run.
///
/// # Errors
/// Those of [`Sandbox::start`], and [`SandboxError::Io`] if the link cannot be made.
pub async fn up(link: &Path) -> Result<Sandbox, SandboxError> {
    if link.join("state.json").exists() {
        return Sandbox::attach(link).await;
    }
    let sandbox = Sandbox::start(SandboxOptions::default()).await?;
    sandbox.create_database(DATABASE).await?;
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent)
            .map_err(SandboxError::io(format!("make {}", parent.display())))?;
    }
    // A link to a folder that is gone, since the machine was started again.
    unlink(link)?;
    let tried = format!("link {}", link.display());
    std::os::unix::fs::symlink(sandbox.path(), link).map_err(SandboxError::io(tried))?;
    let folder = sandbox.keep()?;
    Sandbox::look(&folder)
}

/// Kills the servers a link leads to, removes their folder and the link.
///
/// # Errors
/// [`SandboxError::NoServers`] if it leads to none.
pub async fn down(link: &Path) -> Result<(), SandboxError> {
    Sandbox::look(link)?.remove().await?;
    unlink(link)
}

fn unlink(link: &Path) -> Result<(), SandboxError> {
    if link.is_symlink() {
        let tried = format!("remove the link {}", link.display());
        fs::remove_file(link).map_err(SandboxError::io(tried))?;
    }
    Ok(())
}
