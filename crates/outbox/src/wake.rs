//! The hint that there is something to claim, on the channel `ticketflow_outbox`. It carries no
//! payload: many in one transaction are one. Polling is the truth; a lost hint costs latency only.

use tokio_postgres::Client;

/// Makes this connection hear the hint.
///
/// # Errors
/// That of the database.
pub async fn listen(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("listen ticketflow_outbox").await
}

/// Sends the hint, outside any business transaction.
///
/// # Errors
/// That of the database.
pub async fn notify(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("notify ticketflow_outbox").await
}

/// Sends a notification that only its sender looks for: a test of whether it hears anything.
///
/// # Errors
/// That of the database.
pub async fn notify_oneself(client: &Client, text: &str) -> Result<(), tokio_postgres::Error> {
    let text = text.to_owned();
    client
        .execute("select pg_notify('ticketflow_outbox', $1)", &[&text])
        .await
        .map(drop)
}
