//! What the benches stand on, against real servers: rows that could have been recorded, raw
//! publishing that delivers them, a check that sees what is missing.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use bench::Report;
use bench::ceiling::Ceiling;
use bench::fill::{Fill, clear, messages};
use bench::rig::Rig;
use bench::wire::read;

const QUEUE: &str = "ticketflow.shared.search";

fn small() -> Fill {
    Fill {
        events: 1_000,
        tenants: 3,
        aggregates: 50,
        ..Fill::standard(7)
    }
}

#[tokio::test]
async fn filled_rows_go_on_where_recorded_ones_stopped_and_reach_the_queue_in_order() {
    let rig = Rig::start("ground", 7).await.expect("servers");
    rig.make_queues(&[("search", "ticket.#")])
        .await
        .expect("queues");
    small()
        .add_tenants(&rig.database, "active")
        .await
        .expect("tenants");
    small().write(&rig.database).await.expect("a fill");
    let more = Fill {
        first: 1_000,
        ..small()
    };
    more.write(&rig.database).await.expect("another fill");

    let agree = "select count(*) filter (where octet_length(payload) <> 500),
            count(*) filter (where e.version <> 1 + coalesce(before, 0)),
            count(*), bool_and(payload is not null and convert_from(payload, 'UTF8')::json is not null)
        from (select *, lag(version) over (
                partition by tenant_id, aggregate_id order by position) as before
              from ticketflow.outbox_events) as e";
    let row = rig.database.query_one(agree, &[]).await.expect("a row");
    let counts: (i64, i64, i64, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(counts, (0, 0, 2_000, true), "size, gaps, rows, JSON");

    let counter = "select tenant_id::text, aggregate_id::text, version
        from ticketflow.outbox_aggregates limit 1";
    let row = rig
        .database
        .query_one(counter, &[])
        .await
        .expect("a counter");
    let (tenant, aggregate, version): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
    rig.database
        .execute(
            "select ticketflow.record_event($1, 'ticket', $2, 'ticket.updated', '{}'::text)",
            &[&tenant, &aggregate],
        )
        .await
        .expect("recorded");
    let row = rig
        .database
        .query_one(
            "select max(version) from ticketflow.outbox_events
             where tenant_id = $1 and aggregate_id = $2",
            &[&tenant, &aggregate],
        )
        .await
        .expect("a row");
    assert_eq!(row.get::<_, i64>(0), version + 1);

    let all = messages(&rig.database, 10_000).await.expect("messages");
    assert_eq!(all.len(), 2_001);
    let mut ceiling = Ceiling::default();
    ceiling.round(&rig.broker, &all).await.expect("published");
    assert!(ceiling.rates().iter().all(|rate| *rate > 0.0));
    let arrivals = read(&rig.broker, QUEUE, 2_001).await.expect("read");
    let mut report = Report::new("ground");
    arrivals.judge(2_001, &mut report);
    assert!(report.is_sound(), "{report}");

    rig.purge(QUEUE).await.expect("purged");
    clear(&rig.database).await.expect("cleared");
    assert!(messages(&rig.database, 1).await.expect("none").is_empty());
}
