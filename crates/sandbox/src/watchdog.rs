//! The process that ends the servers when their owner ends: see `watchdog.sh`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::SandboxError;
use crate::folder::Folder;

/// Holds the pipe whose end the watchdog waits for.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts it before there is anything to clean up but the folder.
    pub(crate) fn start(folder: &Folder) -> Result<Self, SandboxError> {
        // As the owner, not as the servers' account: it must be able to kill and remove them.
        let mut child = Command::new("/bin/sh")
            .args(["-c", include_str!("watchdog.sh"), "watchdog"])
            .arg(folder.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(SandboxError::io("start the watchdog"))?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Leaves the servers running when this process ends.
    pub(crate) fn keep(mut self) -> Result<(), SandboxError> {
        if let Some(pipe) = &mut self.pipe {
            pipe.write_all(b"keep\n")
                .map_err(SandboxError::io("leave the servers running"))?;
        }
        Ok(())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It has only itself to kill if this fails.
        let _ = self.child.wait();
    }
}
