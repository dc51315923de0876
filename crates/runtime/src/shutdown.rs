//! Stopping: the first SIGTERM or SIGINT asks, the second insists.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The status of a program that was interrupted, as shells report it.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled by the first SIGTERM or SIGINT; a second signal ends the process at
/// once. The handlers are set by the call, so that it works as process 1 of a container, where
/// the system's default is to ignore both.
///
/// # Errors
/// The system's, if no handler can be set.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = CancellationToken::new();
    let asked = shutdown.clone();
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping; a second signal ends at once");
        asked.cancel();
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!("ended by a second signal");
        std::process::exit(INTERRUPTED);
    });
    Ok(shutdown)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
