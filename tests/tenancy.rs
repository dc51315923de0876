//! Tenants keep to themselves and can be moved: to a pool of their own and back, while their events
//! are recorded, published and applied.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{Program, Site, binary};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(90);
const WRITERS: i32 = 6;
const AGGREGATES: i32 = 20;

struct Stage {
    site: Site,
    client: Client,
}

impl Stage {
    /// A site whose shared pool has the audit effect alone: it keeps order, and takes all.
    async fn set(name: &str) -> Self {
        let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
        let client = site.database().await.unwrap();
        let only_audit = "delete from ticketflow.effect_queues where effect <> 'audit'";
        client.batch_execute(only_audit).await.unwrap();
        Self { site, client }
    }

    fn environment(&self) -> [(&'static str, &str); 2] {
        [
            ("DATABASE_URL", &self.site.database_url),
            ("AMQP_URL", &self.site.amqp_url),
        ]
    }

    async fn start(&self, name: &'static str, arguments: &[&str]) -> Program {
        let sandbox = self.site.sandbox();
        let started = Program::start(sandbox, name, &self.environment(), arguments).await;
        started.expect(name)
    }

    async fn ticketflow(&self, arguments: &[&str]) {
        let ran = Command::new(binary("ticketflow").unwrap())
            .args(arguments)
            .envs(self.environment())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{arguments:?}: {told}");
    }

    async fn number(&self, text: &str) -> i64 {
        self.client.query_one(text, &[]).await.unwrap().get(0)
    }

    async fn until_at_least(&self, text: &str, least: i64) {
        let until = Instant::now() + PATIENCE;
        while self.number(text).await < least {
            assert!(Instant::now() < until, "{text} stays below {least}");
            tokio::task::yield_now().await;
        }
    }

    /// Writers that record events of shared aggregates until they are told to stop.
    async fn writers(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let client = Arc::new(self.site.database().await.unwrap());
            let stop = stop.clone();
            writers.spawn(async move {
                let record = "select ticketflow.record_event('acme', 'thing', $1, 'thing.changed', '{}'::text)";
                for number in 0.. {
                    let aggregate = ((writer + number) % AGGREGATES).to_string();
                    client.query(record, &[&aggregate]).await.expect("it is recorded");
                    if stop.is_cancelled() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
        }
        writers
    }
}

const APPLIED: &str = "select count(*) from ticketflow.audit_entries";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_moves_to_a_pool_of_its_own_and_back_under_load_though_a_relay_is_killed() {
    let stage = Stage::set("moved").await;
    stage.ticketflow(&["tenant", "add", "acme"]).await;
    stage.ticketflow(&["topology"]).await;
    let killed = stage.start("relay", &[]).await;
    let relay = stage.start("relay", &[]).await;
    let audit = ["--effects", "audit"];
    let shared = stage.start("consumer", &audit).await;
    let stop = CancellationToken::new();
    let mut writers = stage.writers(&stop).await;
    stage.until_at_least(APPLIED, 200).await;

    stage.ticketflow(&["topology", "--pool", "own"]).await;
    let own = stage
        .start("consumer", &["--effects", "audit", "--pool", "own"])
        .await;
    let there = ["tenant", "move", "acme", "--pool", "own"];
    let (killing, ()) = tokio::join!(killed.kill9(), stage.ticketflow(&there));
    killing.expect("it was running");
    let published = "select count(*) from ticketflow.outbox_events where pool = 'own'";
    stage.until_at_least(published, 200).await;
    stage
        .ticketflow(&["tenant", "move", "acme", "--pool", "shared"])
        .await;
    let so_far = stage.number(APPLIED).await;
    stage.until_at_least(APPLIED, so_far + 200).await;

    stop.cancel();
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let recorded = stage
        .number("select count(*) from ticketflow.outbox_events")
        .await;
    stage.until_at_least(APPLIED, recorded).await;
    assert_eq!(stage.number(APPLIED).await, recorded);
    let unpublished = "select count(*) from ticketflow.outbox_events where state <> 'published'";
    stage
        .until_at_least(
            "select 0 - count(*) from ticketflow.outbox_events where state <> 'published'",
            0,
        )
        .await;
    assert_eq!(stage.number(unpublished).await, 0);
    let astray = "select count(*) from ticketflow.audit_entries where late or gap";
    assert_eq!(stage.number(astray).await, 0);
    let out_of_order = "select count(*) from (
        select version, lag(version, 1, 0::bigint) over (partition by aggregate_id order by entry_id) as before
        from ticketflow.audit_entries) as entries
      where version <> before + 1";
    assert_eq!(stage.number(out_of_order).await, 0);
    for program in [relay, shared, own] {
        program.stop().await.expect("a clean stop");
    }
    stage.ticketflow(&["pool", "remove", "own"]).await;
}
