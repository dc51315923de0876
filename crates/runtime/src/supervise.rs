//! Supervision: a task that panics or fails is started again, or the process ends non-zero.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backoff::Backoff;

const BASE: Duration = Duration::from_millis(200);
const CAP: Duration = Duration::from_secs(10);
/// A task that ran this long was well: its earlier failures no longer count.
const WELL: Duration = Duration::from_secs(60);
/// So many failures in a row are not bad luck; whatever restarts the process should know.
const FAILURES: u32 = 8;

/// Why a process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TaskFailed {
    /// A task kept failing.
    #[error("task {task} failed {FAILURES} times in a row, at last: {last}")]
    TooOften {
        /// Its name.
        task: &'static str,
        /// Its last failure.
        last: String,
    },
    /// Tasks that did not end in the time allowed for a clean stop, and were cut off.
    #[error("cut off after {grace:?}: {tasks}")]
    CutOff {
        /// The time allowed.
        grace: Duration,
        /// How many there were.
        tasks: usize,
    },
}

/// The tasks of a process, each supervised.
#[derive(Debug)]
pub struct Tasks {
    shutdown: CancellationToken,
    running: JoinSet<Result<(), TaskFailed>>,
}

/// A task that ends only when it is told to, or by a panic.
///
/// # Errors
/// None: the type is that of a task that may fail.
pub async fn done(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}

impl Tasks {
    /// None yet. `shutdown` is what they all stop by; it is cancelled if one fails for good.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            shutdown,
            running: JoinSet::new(),
        }
    }

    /// Starts a task. `make` is called again after each failure; a task that returns `Ok` is done.
    pub fn spawn<M, F, E>(&mut self, name: &'static str, make: M)
    where
        M: FnMut() -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let shutdown = self.shutdown.clone();
        self.running.spawn(supervise(name, shutdown, make));
    }

    /// Waits for all of them: until stopped, then for `grace` more. The first that fails for good
    /// stops the others.
    ///
    /// # Errors
    /// [`TaskFailed`]; the process should end non-zero.
    pub async fn join(mut self, grace: Duration) -> Result<(), TaskFailed> {
        let shutdown = self.shutdown.clone();
        let cut_off = async {
            shutdown.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::pin!(cut_off);
        let mut outcome = Ok(());
        loop {
            let ended = tokio::select! {
                ended = self.running.join_next() => ended,
                () = &mut cut_off => {
                    let tasks = self.running.len();
                    return outcome.and(Err(TaskFailed::CutOff { grace, tasks }));
                }
            };
            match ended {
                None => return outcome,
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(failed))) => {
                    shutdown.cancel();
                    outcome = outcome.and(Err(failed));
                }
                Some(Err(joined)) => {
                    shutdown.cancel();
                    outcome = outcome.and(Err(TaskFailed::TooOften {
                        task: "supervisor",
                        last: told(joined),
                    }));
                }
            }
        }
    }
}

/// Runs a task until it returns `Ok`, starting it again with backoff after a panic or an error.
///
/// # Errors
/// [`TaskFailed`] once it failed too often in a row.
pub async fn supervise<M, F, E>(
    name: &'static str,
    shutdown: CancellationToken,
    mut make: M,
) -> Result<(), TaskFailed>
where
    M: FnMut() -> F,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let mut backoff = Backoff::new(BASE, CAP);
    loop {
        let started = Instant::now();
        let task = AbortOnDropHandle::new(tokio::spawn(make()));
        let last = match task.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(joined) => told(joined),
        };
        if started.elapsed() >= WELL {
            backoff.reset();
        }
        let wait = backoff.next_delay();
        metrics::counter!("ticketflow_task_restarts_total", "task" => name).increment(1);
        tracing::error!(task = name, error = %last, ?wait, "task failed, starting it again");
        if shutdown.is_cancelled() || backoff.attempt() >= FAILURES {
            return Err(TaskFailed::TooOften { task: name, last });
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

/// What a panic said. Ours say nothing of a payload or a password.
fn told(joined: JoinError) -> String {
    let Ok(panic) = joined.try_into_panic() else {
        return "cancelled".to_owned();
    };
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}
