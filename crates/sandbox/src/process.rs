//! A server's process, known by the id it left in its folder.
//!
//! The id is read from the file each time, so that a process which only attached can stop, kill
//! and pause the servers too. A process counts as the server only while its command line names the
//! sandbox's folder: ids are used again.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The running process whose id is in a file, if its command line names the folder.
pub(crate) fn running(pid_file: &Path, folder: &Path) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(pid_file).ok()?.trim().parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command);
    (command.contains(folder.to_str()?) && !is_dead(pid)).then_some(Pid::from_raw(pid))
}

/// The children of a process, and theirs.
pub(crate) fn descendants(parent: Pid) -> Vec<Pid> {
    let mut found = vec![parent.as_raw()];
    let family = family();
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            family
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.into_iter().skip(1).map(Pid::from_raw).collect()
}

/// Sends a signal; a process that is gone already is fine.
pub(crate) fn send(pid: Pid, signal: Signal) -> std::io::Result<()> {
    match kill(pid, signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a process is gone or only waits to be reaped.
pub(crate) fn is_dead(pid: i32) -> bool {
    stat(pid).is_none_or(|(state, _)| state == 'Z' || state == 'X')
}

/// Whether a process is stopped by a signal.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    stat(pid.as_raw()).is_some_and(|(state, _)| state == 'T')
}

fn family() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| Some((pid, stat(pid)?.1)))
        .collect()
}

/// State and parent of a process. The name before them may hold anything, so read after its end.
fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(") ")?;
    let mut fields = after.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some((state, parent))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::unistd::Pid;

    use super::{descendants, is_dead, running};

    #[test]
    fn a_process_is_ours_only_if_it_names_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(&pid_file, child.id().to_string()).unwrap();
        assert_eq!(running(&pid_file, folder.path()), None);
        // Until the child has become the program, its command line is ours.
        while running(&pid_file, std::path::Path::new("sleep")).is_none() {
            std::thread::yield_now();
        }
        let me = Pid::from_raw(i32::try_from(std::process::id()).unwrap());
        let pid = i32::try_from(child.id()).unwrap();
        assert!(descendants(me).contains(&Pid::from_raw(pid)));
        child.kill().unwrap();
        while !is_dead(pid) {
            std::thread::yield_now();
        }
        assert_eq!(running(&pid_file, std::path::Path::new("sleep")), None);
        child.wait().unwrap();
    }
}
