//! Records an event in the transaction of a business change, from Rust.
//!
//! `DATABASE_URL=… cargo run -p outbox --example record`

use std::error::Error;

use event::NewEvent;
use tokio_postgres::NoTls;
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut client, connection) =
        tokio_postgres::connect(&std::env::var("DATABASE_URL")?, NoTls).await?;
    let driver = tokio::spawn(connection);
    client
        .batch_execute("create table if not exists invoices (id text primary key, paid boolean)")
        .await?;

    let mut event = NewEvent::json(
        "default",
        ("invoice", "2026-118"),
        "invoice.paid",
        r#"{"path":"C:\\temp"}"#,
    )?;
    event.source = "billing".parse()?;
    // Made once, before any retry: the same event again is then no second one.
    event.event_id = Some(Uuid::now_v7());

    let transaction = client.transaction().await?;
    transaction
        .execute(
            "insert into invoices values ($1, true) on conflict (id) do update set paid = true",
            &[&"2026-118"],
        )
        .await?;
    let id = outbox::record(&transaction, &event).await?;
    transaction.commit().await?;

    println!("{id}");
    drop(client);
    driver.await??;
    Ok(())
}
