//! Supervision: a task that panics is started again, one that keeps failing ends the process.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use runtime::supervise::{TaskFailed, Tasks};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn a_panicking_task_is_started_again() {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let mut tasks = Tasks::new(CancellationToken::new());
    tasks.spawn("panics twice", move || {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert!(run >= 2, "run {run}");
            Ok::<_, String>(())
        }
    });
    tasks
        .join(Duration::from_secs(1))
        .await
        .expect("it ended well");
    assert_eq!(runs.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn one_that_keeps_failing_stops_the_others_and_fails_the_process() {
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let mut tasks = Tasks::new(shutdown);
    tasks.spawn("waits", move || {
        let stop = stop.clone();
        async move {
            stop.cancelled().await;
            Ok::<_, String>(())
        }
    });
    tasks.spawn("fails", || async { Err::<(), _>("no luck".to_owned()) });
    let failed = tasks.join(Duration::from_secs(1)).await.unwrap_err();
    assert!(
        matches!(&failed, TaskFailed::TooOften { task: "fails", .. }),
        "{failed}"
    );
    assert!(failed.to_string().contains("no luck"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_stop_in_time_is_cut_off() {
    let shutdown = CancellationToken::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("deaf", || async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    });
    shutdown.cancel();
    let failed = tasks.join(Duration::from_secs(5)).await.unwrap_err();
    assert!(
        matches!(failed, TaskFailed::CutOff { tasks: 1, .. }),
        "{failed}"
    );
}
