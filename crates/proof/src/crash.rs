//! Crash points: named places at the protocol's seams where a test kills or stops the process.
//! Without the feature `crash-points` there is nothing here.
//!
//! `TICKETFLOW_CRASH_POINT` names one, with `:stop` behind it to stop the process (SIGSTOP) instead
//! of killing it, and with `:<number>` to let it pass so many times before.

/// Kills or stops the process here if this point was chosen.
#[cfg(not(feature = "crash-points"))]
#[inline]
pub fn point(_: &str) {}

#[cfg(feature = "crash-points")]
pub use chosen::point;

#[cfg(feature = "crash-points")]
mod chosen {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use nix::sys::signal::{Signal, raise};

    struct Chosen {
        name: String,
        signal: Signal,
        passes: AtomicU64,
    }

    static CHOSEN: LazyLock<Option<Chosen>> = LazyLock::new(|| {
        let value = std::env::var("TICKETFLOW_CRASH_POINT").ok()?;
        let mut parts = value.split(':');
        let mut chosen = Chosen {
            name: parts.next()?.to_owned(),
            signal: Signal::SIGKILL,
            passes: AtomicU64::new(0),
        };
        for part in parts {
            match part.parse() {
                Ok(passes) => chosen.passes = AtomicU64::new(passes),
                Err(_) => chosen.signal = Signal::SIGSTOP,
            }
        }
        Some(chosen)
    });

    /// Kills or stops the process here if this point was chosen.
    pub fn point(name: &str) {
        let Some(chosen) = CHOSEN.as_ref().filter(|chosen| chosen.name == name) else {
            return;
        };
        let passed = chosen
            .passes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        // A stopped process goes on here when it is continued, and does not stop again.
        if passed.is_err() {
            chosen.passes.store(u64::MAX, Ordering::Relaxed);
            // To this thread: sent to the process, it would go on until another one is scheduled.
            let _ = raise(chosen.signal);
        }
    }
}
