//! The hint that there is something to claim. Polling is the truth; a lost hint costs latency only.

use tokio_postgres::Client;

/// The channel of the hint. It carries no payload: many in one transaction are one.
pub const CHANNEL: &str = "ticketflow_outbox";

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
