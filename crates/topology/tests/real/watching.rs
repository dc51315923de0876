//! Looking after the queues while a process runs.

use std::time::Duration;

use event::PoolName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use topology::Verified;

use crate::support::{PATIENCE, SEARCH, Stage, eventually, shared};

async fn until(verified: &mut watch::Receiver<Verified>, pool: &PoolName, wanted: bool) {
    let reached = verified.wait_for(|all| all.is_verified(pool) == wanted);
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    reached.expect("in time").expect("a keeper");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_pool_in_use_is_looked_after_and_the_broker_being_away_is_doubt() {
    let stage = Stage::set("watch").await;
    stage
        .execute("insert into ticketflow.tenants (tenant_id, pool) values ('acme', 'own')")
        .await;
    let (sender, mut verified) = watch::channel(Verified::default());
    let stop = CancellationToken::new();
    let keeping = topology::keep(stage.topology.clone(), None, sender, stop.clone());
    let keeping = tokio::spawn(keeping);
    let own = PoolName::parse("own").expect("valid");
    until(&mut verified, &shared(), true).await;
    until(&mut verified, &own, true).await;
    assert_eq!(stage.waiting("ticketflow.own.search").await, 0);

    stage.published("ticket.created", 5).await;
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    eventually("it is back with what it had", async || {
        let queues = stage.site.queues().await.expect("queues");
        queues
            .iter()
            .any(|queue| queue.name == SEARCH && queue.ready == 5)
    })
    .await;

    stage.site.close_connections().await.expect("closed");
    until(&mut verified, &shared(), false).await;
    until(&mut verified, &shared(), true).await;
    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(5), keeping).await;
    ended.expect("it stops").expect("no panic");
}
