//! Ticket and event as one, through the real producer, killed wherever it hurts.

use std::collections::BTreeSet;
use std::time::Duration;

use broker::{Publish as _, PublishOutcome, Publishers as _, Route};
use event::{Event, Message, NewEvent, PoolName};
use sandbox::{Direction, FaultProxy, Program, Site, Then};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::consuming::ticket_event;
use crate::relaying::{Rig, Running, config};

const PATIENCE: Duration = Duration::from_secs(60);
const KEY: &str = "acme-key";

struct Stage {
    site: Site,
    client: Client,
    listen: String,
}

impl Stage {
    async fn set(name: &str) -> Self {
        let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
        let client = site.database().await.unwrap();
        let tenant = "insert into ticketflow.tenants (tenant_id) values ('acme'); \
            insert into ticketflow.tenant_keys (tenant_id, key_hash) \
            values ('acme', sha256('acme-key'))";
        client.batch_execute(tenant).await.unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap().to_string();
        Self {
            site,
            client,
            listen,
        }
    }

    async fn producer(&self) -> Program {
        let environment = [("DATABASE_URL", self.site.database_url.as_str())];
        let arguments = ["--listen", &self.listen, "--no-hint"];
        let sandbox = self.site.sandbox();
        Program::start(sandbox, "producer", &environment, &arguments)
            .await
            .unwrap()
    }

    /// Sends a request and returns the status line, or nothing if the connection broke.
    async fn send(&self, line: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: producer\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        let exchange = async {
            let mut stream = TcpStream::connect(&self.listen).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = timeout(PATIENCE, exchange)
            .await
            .expect("an answer or an end");
        answer
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn until(&self, sql: &str, wanted: i64) {
        let since = Instant::now();
        while self.number(sql).await != wanted {
            assert!(since.elapsed() < PATIENCE, "never {wanted}: {sql}");
        }
    }

    async fn if_match(&self, id: Uuid) -> String {
        let version = "select version from ticketflow.tickets where ticket_id = $1";
        let row = self.client.query_one(version, &[&id]).await.unwrap();
        format!("if-match: \"{}\"\r\n", row.get::<_, i64>(0))
    }

    /// Kills a producer where it wants to write a table; its server's side, if asked, as well.
    async fn killed_at(&self, table: &str, line: &str, headers: &str, both: bool) {
        let producer = self.producer().await;
        let lock = format!("begin; lock table ticketflow.{table} in exclusive mode");
        self.client.batch_execute(&lock).await.unwrap();
        let sent = self.send(line, headers, BODY);
        tokio::pin!(sent);
        tokio::select! {
            answer = &mut sent => panic!("{line} at {table} was not stopped: {answer}"),
            () = self.until(WAITING, 1) => {}
        }
        producer.kill9().await.unwrap();
        assert_eq!(sent.await, "", "{line} at {table}");
        if both {
            self.number(END).await;
            self.until(WAITING, 0).await;
        }
        self.client.batch_execute("rollback").await.unwrap();
        // A server that is not ended finishes what it was given.
        self.until(SESSIONS, 0).await;
        self.ticket_and_event_agree().await;
    }

    /// Each ticket's version is that of its last event, and each event's ticket is there.
    async fn ticket_and_event_agree(&self) {
        let apart = "select count(*) from ticketflow.tickets as t \
            full join (select tenant_id, aggregate_id, max(version) as version \
                       from ticketflow.outbox_events group by 1, 2) as e \
              on e.tenant_id = t.tenant_id and e.aggregate_id = t.ticket_id::text \
            where t.version is distinct from e.version";
        assert_eq!(self.number(apart).await, 0);
    }
}

/// Not from `pg_stat_activity`, which stands still within a transaction.
const WAITING: &str = "select count(*) from pg_locks as l \
    join pg_database as d on d.oid = l.database \
    where not l.granted and d.datname = current_database()";
const SESSIONS: &str = "select count(*) from pg_stat_activity \
    where datname = current_database() and application_name like 'producer%'";

const END: &str = "select count(pg_terminate_backend(l.pid)) from pg_locks as l \
    join pg_database as d on d.oid = l.database \
    where not l.granted and d.datname = current_database()";
const REFUSE: &str = "create function refuse() returns trigger language plpgsql as \
      $$ begin raise exception 'no' using errcode = 'check_violation'; end $$; \
    create constraint trigger refuse after insert or update on ticketflow.tickets \
      deferrable initially deferred for each row execute function refuse()";
const BODY: &str = r#"{"subject":"killed"}"#;

/// The tables in the order in which a create writes them; an update writes the ticket first.
const TABLES: [&str; 3] = ["outbox_aggregates", "outbox_events", "tickets"];

#[tokio::test]
async fn k01_ticket_and_event_commit_together() {
    let stage = Stage::set("k01").await;
    let id = {
        let producer = stage.producer().await;
        let made = stage
            .send("POST /v1/tickets", "", r#"{"subject":"first"}"#)
            .await;
        assert_eq!(made, "HTTP/1.1 201 Created");
        drop(producer);
        let row = stage
            .client
            .query_one("select ticket_id from ticketflow.tickets", &[])
            .await;
        row.unwrap().get::<_, Uuid>(0)
    };
    let create = "POST /v1/tickets".to_owned();
    let change = format!("PATCH /v1/tickets/{id}");
    for (number, table) in TABLES
        .into_iter()
        .cycle()
        .take(2 * TABLES.len())
        .enumerate()
    {
        for line in [&create, &change] {
            // The second time the server's side is ended too, in the middle of what it does.
            stage
                .killed_at(
                    table,
                    line,
                    &stage.if_match(id).await,
                    number >= TABLES.len(),
                )
                .await;
        }
    }
    // Half of them were committed, both rows of each.
    assert_eq!(
        stage
            .number("select count(*) from ticketflow.tickets")
            .await,
        1 + 3
    );
    assert_eq!(
        stage
            .number("select count(*) from ticketflow.outbox_events")
            .await,
        1 + 3 + 3
    );
    let _producer = stage.producer().await;
    let refused = stage.send(&change, "if-match: \"99\"\r\n", BODY).await;
    assert_eq!(refused, "HTTP/1.1 412 Precondition Failed");
    // A change that the database rolls back at COMMIT leaves no event either.
    stage.client.batch_execute(REFUSE).await.unwrap();
    for line in [&create, &change] {
        let refused = stage.send(line, &stage.if_match(id).await, BODY).await;
        assert_eq!(refused, "HTTP/1.1 500 Internal Server Error");
    }
    assert_eq!(
        stage
            .number("select count(*) from ticketflow.outbox_events")
            .await,
        1 + 3 + 3
    );
    stage.ticket_and_event_agree().await;
}

const CHANGE: &str = "insert into changes values ($1)";

/// What a kill leaves of an order: what it has done up to its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    KilledInWindow,
}

/// The two orders of a change and its message that have no outbox.
struct Naive<'a> {
    rig: &'a Rig,
    client: Client,
}

impl Naive<'_> {
    async fn publish(&self, event: &Event) {
        let pool = PoolName::parse("shared").unwrap();
        let message = Message::of(event, &pool).unwrap();
        let publisher = self.rig.broker.publisher().await.unwrap();
        let deadline = Instant::now() + PATIENCE;
        let wave = std::slice::from_ref(&message);
        let done = publisher.publish_wave(Route::Events, wave, deadline).await;
        assert_eq!(done.outcomes, [PublishOutcome::Confirmed]);
    }

    async fn commit_then_publish(mut self, event: &Event, end: End) {
        let transaction = self.client.transaction().await.unwrap();
        transaction
            .execute(CHANGE, &[&event.identity.event_id])
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        if end == End::KilledInWindow {
            return;
        }
        self.publish(event).await;
    }

    async fn publish_then_commit(self, event: &Event, end: End) {
        self.client.batch_execute("begin").await.unwrap();
        let id = event.identity.event_id;
        self.client.execute(CHANGE, &[&id]).await.unwrap();
        self.publish(event).await;
        if end == End::KilledInWindow {
            // The session goes with the process, and its transaction with the session.
            return;
        }
        self.client.batch_execute("commit").await.unwrap();
    }
}

/// The method frame of `basic.publish`: class 60, method 40.
const PUBLISH: [u8; 4] = [0, 60, 0, 40];

const CLAIMS: &str = "select count(*) from ticketflow.outbox_lanes where unsettled_claims > 0";

#[tokio::test(flavor = "multi_thread")]
async fn k02_both_wrong_orders_lose() {
    let rig = Rig::start("k02").await;
    rig.queue("tap", &["ticket.#"]).await;
    rig.database
        .batch_execute("create table changes (id uuid)")
        .await
        .unwrap();
    let naive = async || Naive {
        rig: &rig,
        client: rig.site.database().await.unwrap(),
    };
    let [whole, whole_too, lost, invented] =
        [(); 4].map(|()| ticket_event("acme", Uuid::now_v7(), 1));
    naive().await.commit_then_publish(&whole, End::Whole).await;
    naive()
        .await
        .publish_then_commit(&whole_too, End::Whole)
        .await;
    let killed = End::KilledInWindow;
    naive().await.commit_then_publish(&lost, killed).await;
    naive().await.publish_then_commit(&invented, killed).await;

    // Ours, killed before the commit and right after it.
    let mut ours = Vec::new();
    for commits in [false, true] {
        let mut client = rig.site.database().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        let event = NewEvent::json("default", ("ticket", "one"), "ticket.created", "{}").unwrap();
        let id = outbox::record(&transaction, &event).await.unwrap();
        transaction.execute(CHANGE, &[&id]).await.unwrap();
        if commits {
            transaction.commit().await.unwrap();
        }
        ours.push(id);
    }
    // And the relay killed with its message on the way, which another one makes good.
    let port = rig.site.sandbox().rabbitmq().port();
    let proxy = FaultProxy::start(port).await.unwrap();
    let amqp_url = rig.site.amqp_url_through(proxy.port());
    let unsent = proxy.trap(Direction::ToServer, &PUBLISH, 1, Then::CutBefore);
    let relay = Running::start(config(&rig.site.database_url, &amqp_url, &[]));
    assert!(unsent.closed().await);
    proxy.cut();
    rig.until(CLAIMS, 0).await;
    relay.kill();
    let relay = rig.relay(&[]);
    rig.until_published(1).await;
    relay.stop().await;

    let told: BTreeSet<Uuid> = rig
        .wire("ticketflow.shared.tap")
        .await
        .into_iter()
        .map(|event| event.identity.event_id)
        .collect();
    let changed = rig.database.query("select id from changes", &[]).await;
    let changed: BTreeSet<Uuid> = changed.unwrap().iter().map(|row| row.get(0)).collect();
    let fate = |id: Uuid| (changed.contains(&id), told.contains(&id));
    let fate_of = |event: &Event| fate(event.identity.event_id);
    assert_eq!(
        fate_of(&whole),
        (true, true),
        "right, as long as nobody dies"
    );
    assert_eq!(fate_of(&whole_too), (true, true));
    assert_eq!(fate_of(&lost), (true, false), "changed, and told to nobody");
    assert_eq!(
        fate_of(&invented),
        (false, true),
        "told, and never happened"
    );
    assert_eq!(fate(ours[0]), (false, false), "rolled back as a whole");
    assert_eq!(fate(ours[1]), (true, true), "neither lost nor invented");
}
