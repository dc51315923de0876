//! Old days are removed while events are recorded: nobody waits for it, and nothing goes that is
//! still needed.

use std::time::Duration;

use sandbox::{Site, binary};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

/// The longest that a producer may wait for a lock.
const LONGEST_WAIT: &str = "200ms";
const OLD_ROWS: i32 = 200_000;

async fn site(name: &str) -> (Site, Client) {
    let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
    let client = site.database().await.unwrap();
    (site, client)
}

/// A partition of 20 days ago with so many published rows; its name.
async fn old_day(client: &Client) -> String {
    let day = "(clock_timestamp() at time zone 'UTC')::date - 20";
    let made = format!(
        "select ticketflow.make_partition('outbox_events', {day}), \
         ticketflow.partition_name('outbox_events', {day})"
    );
    let name = client.query_one(&made, &[]).await.unwrap().get(1);
    let fill = format!(
        "insert into ticketflow.outbox_events (event_id, position, tenant_id, source, aggregate_type,
           aggregate_id, version, previous_version, lane, event_type, content_type, payload, state,
           published_at)
         select overlay(ticketflow.uuid_v7_floor(({day})::timestamp at time zone 'UTC' + interval '1 hour')::text
             placing lpad(to_hex(n), 12, '0') from 25)::uuid,
           nextval('ticketflow.outbox_position'), 'default', 'ticketflow', 'thing', n::text, 1, 0, 0,
           'thing.changed', 'application/json', '', 'published', clock_timestamp()
         from generate_series(1, {OLD_ROWS}) as n"
    );
    client.batch_execute(&fill).await.unwrap();
    name
}

async fn exists(client: &Client, partition: &str) -> bool {
    let text = "select to_regclass('ticketflow.' || $1::text) is not null";
    client.query_one(text, &[&partition]).await.unwrap().get(0)
}

async fn retention(site: &Site) {
    let ran = Command::new(binary("ticketflow").unwrap())
        .arg("retention")
        .env("DATABASE_URL", &site.database_url)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Producers that fail as soon as one of them waits too long for a lock. Answers how many events
/// each has recorded once they are stopped.
async fn producers(site: &Site, stop: &CancellationToken) -> JoinSet<u32> {
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let client = site.database().await.unwrap();
        let limit = format!("set lock_timeout = '{LONGEST_WAIT}'");
        client.batch_execute(&limit).await.unwrap();
        let stop = stop.clone();
        producers.spawn(async move {
            let record = "select ticketflow.record_event('default', 'thing', $1, 'thing.changed', '{}'::text)";
            let mut recorded = 0;
            while !stop.is_cancelled() {
                let aggregate = format!("{producer}-{}", recorded % 50);
                client.query(record, &[&aggregate]).await.expect("no wait for a lock");
                recorded += 1;
                tokio::time::sleep(Duration::from_millis(8)).await;
            }
            recorded
        });
    }
    producers
}

async fn all(mut producers: JoinSet<u32>, stop: &CancellationToken) -> u32 {
    stop.cancel();
    let mut recorded = 0;
    while let Some(producer) = producers.join_next().await {
        recorded += producer.expect("it never waited too long");
    }
    recorded
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_goes_under_load_and_a_dump_and_no_producer_waits() {
    let (site, client) = site("day_goes").await;
    let partition = old_day(&client).await;
    let stop = CancellationToken::new();
    let producers = producers(&site, &stop).await;
    // What a dump does: a shared lock on every table, kept to its end.
    let dump = site.database().await.unwrap();
    let locks = "select string_agg(format('lock table only ticketflow.%I in access share mode', relname), ';')
                 from pg_class where relnamespace = 'ticketflow'::regnamespace and relkind in ('r', 'p')";
    let locks: String = dump.query_one(locks, &[]).await.unwrap().get(0);
    dump.batch_execute(&format!("begin isolation level repeatable read; {locks}"))
        .await
        .unwrap();
    let dumping = async {
        // Until the removal has met it, several times over.
        let met = "select count(*) > 0 from pg_stat_activity where datname = current_database() \
                   and application_name = 'ticketflow'";
        let mut looks = 0;
        while looks < 20 {
            let is_there: bool = client.query_one(met, &[]).await.unwrap().get(0);
            looks += u32::from(is_there);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(exists(&client, &partition).await, "it went under a dump");
        dump.batch_execute("commit").await.unwrap();
    };
    tokio::join!(retention(&site), dumping);
    assert!(!exists(&client, &partition).await);
    let recorded = all(producers, &stop).await;
    assert!(
        recorded > 50,
        "only {recorded} events were recorded meanwhile"
    );
    let left = "select count(*) from ticketflow.outbox_events";
    let left: i64 = client.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, i64::from(recorded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_with_one_pending_event_stays_whole() {
    let (site, client) = site("day_stays").await;
    let partition = old_day(&client).await;
    let wait = format!(
        "update ticketflow.{partition} set state = 'pending', published_at = null where aggregate_id = '7'"
    );
    assert_eq!(client.execute(&wait, &[]).await.unwrap(), 1);
    retention(&site).await;
    let count = format!("select count(*) from ticketflow.{partition}");
    let kept: i64 = client.query_one(&count, &[]).await.unwrap().get(0);
    assert_eq!(kept, i64::from(OLD_ROWS));
}
