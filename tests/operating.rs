//! What an operator does reaches the running processes: parked work goes round again or is given
//! up, and order is kept through both.

use std::time::Duration;

use nix::sys::signal::Signal;
use sandbox::{Program, Site, binary};
use tokio::process::Command;
use tokio::time::Instant;
use tokio_postgres::Client;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    site: Site,
    client: Client,
}

impl Stage {
    /// A site with the audit effect alone, its queue, a relay and a consumer.
    async fn set(name: &str) -> (Self, [Program; 2]) {
        let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
        let client = site.database().await.unwrap();
        let only_audit = "delete from ticketflow.effect_queues where effect <> 'audit'";
        client.batch_execute(only_audit).await.unwrap();
        let stage = Self { site, client };
        stage.ticketflow(&["topology"]).await;
        let sandbox = stage.site.sandbox();
        let environment = stage.environment();
        let relay = Program::start(sandbox, "relay", &environment, &[]).await;
        let effects = ["--effects", "audit"];
        let consumer = Program::start(sandbox, "consumer", &environment, &effects).await;
        let programs = [relay.unwrap(), consumer.unwrap()];
        (stage, programs)
    }

    fn environment(&self) -> [(&'static str, &str); 2] {
        [
            ("DATABASE_URL", &self.site.database_url),
            ("AMQP_URL", &self.site.amqp_url),
        ]
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

    /// Three events of one aggregate, the first parked before a relay can see it.
    async fn parked_head(&self) -> [Uuid; 3] {
        let record =
            "select ticketflow.record_event('default', 'thing', 'a', 'thing.changed', '{}'::text)";
        let park = "with parked as (
            update ticketflow.outbox_events set state = 'parked', held = true, attempts = 1,
              first_refused_at = clock_timestamp(), last_error = 'for a test'
            where event_id = $1
            returning tenant_id, aggregate_type, aggregate_id, lane, position)
          insert into ticketflow.outbox_holds
            (tenant_id, aggregate_type, aggregate_id, lane, head_position, reason)
          select tenant_id, aggregate_type, aggregate_id, lane, position, 'for a test' from parked";
        self.client.batch_execute("begin").await.unwrap();
        let mut ids = [Uuid::nil(); 3];
        for id in &mut ids {
            *id = self.client.query_one(record, &[]).await.unwrap().get(0);
        }
        self.client.execute(park, &[&ids[0]]).await.unwrap();
        self.client.batch_execute("commit").await.unwrap();
        ids
    }

    /// The versions in the audit trail, in the order in which they were applied.
    async fn applied(&self) -> Vec<i64> {
        let text = "select version from ticketflow.audit_entries order by entry_id";
        let rows = self.client.query(text, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn until_applied(&self, versions: &[i64]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let applied = self.applied().await;
            if applied == versions {
                return;
            }
            assert!(
                Instant::now() < until,
                "{applied:?} are applied, not {versions:?}"
            );
            tokio::task::yield_now().await;
        }
    }

    async fn until_held(&self, number: i64) {
        let text = "select count(*) from ticketflow.outbox_events where state = 'pending' and held";
        let until = Instant::now() + PATIENCE;
        while self
            .client
            .query_one(text, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            != number
        {
            assert!(Instant::now() < until, "not {number} are held");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redriven_head_is_published_before_what_waited_behind_it() {
    let (stage, programs) = Stage::set("redriven").await;
    let [head, ..] = stage.parked_head().await;
    stage.until_held(2).await;
    assert_eq!(stage.applied().await, [0_i64; 0]);
    let id = head.to_string();
    stage.ticketflow(&["redrive", &id, "--stagger", "0s"]).await;
    stage.until_applied(&[1, 2, 3]).await;
    for program in programs {
        program.stop().await.expect("a clean stop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_head_lets_what_waited_behind_it_go_in_order() {
    let (stage, programs) = Stage::set("skipped").await;
    let [head, ..] = stage.parked_head().await;
    stage.until_held(2).await;
    let id = head.to_string();
    stage
        .ticketflow(&["skip", &id, "--because", "a test"])
        .await;
    // The effect keeps order: it waits for the skipped version as long as `order_wait` says.
    let published = "select count(*) from ticketflow.outbox_events where state = 'published'";
    let until = Instant::now() + PATIENCE;
    while stage
        .client
        .query_one(published, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        != 2
    {
        assert!(Instant::now() < until, "the others are not published");
        tokio::task::yield_now().await;
    }
    for program in programs {
        program.stop().await.expect("a clean stop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_tenant_records_and_is_published_once_resumed() {
    let (stage, programs) = Stage::set("paused").await;
    stage.ticketflow(&["tenant", "pause", "default"]).await;
    let record =
        "select ticketflow.record_event('default', 'thing', 'a', 'thing.changed', '{}'::text)";
    stage.client.query(record, &[]).await.unwrap();
    // Another tenant's event recorded later is applied: the paused one's had its chance.
    stage.ticketflow(&["tenant", "add", "acme"]).await;
    let other = "select ticketflow.record_event('acme', 'thing', 'b', 'thing.changed', '{}'::text)";
    stage.client.query(other, &[]).await.unwrap();
    stage.until_applied(&[1]).await;
    let whose = "select tenant_id::text from ticketflow.audit_entries";
    let tenant: String = stage.client.query_one(whose, &[]).await.unwrap().get(0);
    assert_eq!(tenant, "acme");
    stage.ticketflow(&["tenant", "resume", "default"]).await;
    stage.until_applied(&[1, 1]).await;
    for program in programs {
        program.stop().await.expect("a clean stop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_without_tenants_is_told_and_a_clean_stop_warns_of_nothing() {
    let (stage, [relay, consumer]) = Stage::set("told").await;
    for mut program in [relay, consumer] {
        program.signal(Signal::SIGTERM).unwrap();
        assert!(program.wait().await.unwrap().success());
        let log = program.log();
        assert!(log.contains("stopped") && !log.contains("WARN"), "{log}");
    }
    let sandbox = stage.site.sandbox();
    let environment = stage.environment();
    let of_slip = ["--pool", "slip", "--effects", "audit"];
    for (name, arguments) in [("relay", &of_slip[..2]), ("consumer", &of_slip)] {
        let program = Program::start(sandbox, name, &environment, arguments)
            .await
            .unwrap();
        let log = program.log();
        assert!(log.contains("no tenant is in this pool"), "{name}: {log}");
        program.stop().await.unwrap();
    }
}
