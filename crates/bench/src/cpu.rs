//! Who used how much CPU: read from `/proc`, in nanoseconds, thread by thread.

use std::fs;
use std::time::Duration;

use tokio_postgres::Client;

/// Processes whose CPU time is added up.
#[derive(Debug, Clone)]
pub struct Meter {
    pids: Vec<u32>,
    used: Duration,
}

impl Meter {
    /// Begins with some processes.
    #[must_use]
    pub fn start(pids: Vec<u32>) -> Self {
        let used = pids.iter().copied().map(used_by).sum();
        Self { pids, used }
    }

    /// What they have used since. A process or thread that has ended counts with nothing, so the
    /// processes must outlive the measurement.
    #[must_use]
    pub fn read(&self) -> Duration {
        let now: Duration = self.pids.iter().copied().map(used_by).sum();
        now.saturating_sub(self.used)
    }
}

/// The server processes behind the sessions whose application name starts with `name`.
///
/// # Errors
/// Those of the query.
pub async fn sessions(database: &Client, name: &str) -> Result<Vec<u32>, tokio_postgres::Error> {
    let rows = database
        .query(include_str!("sql/sessions.sql"), &[&name])
        .await?;
    let pids = rows.iter().map(|row| row.get::<_, i32>(0));
    Ok(pids.filter_map(|pid| u32::try_from(pid).ok()).collect())
}

/// The largest resident size a process has had, in MiB.
#[must_use]
pub fn peak_memory_mib(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib: f64 = kib.and_then(|kib| kib.trim().parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

fn used_by(pid: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Duration::ZERO;
    };
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_and_another_process_does_not() {
        let own = Meter::start(vec![std::process::id()]);
        let nobody = Meter::start(vec![u32::MAX]);
        let until = std::time::Instant::now() + Duration::from_millis(200);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        assert!(own.read() > Duration::from_millis(5));
        assert_eq!(nobody.read(), Duration::ZERO);
        assert!(peak_memory_mib(std::process::id()) > 0.5);
    }
}
