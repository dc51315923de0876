//! Tenants take turns, and an endpoint that is dead or slow is nobody else's loss.

use std::time::{Duration, Instant};

use outside::Tenants;
use sandbox::{Receiver, Reply, Request};

use crate::world::{World, config, endpoint, everyone, target, to, until, webhook};

#[tokio::test]
async fn a_tenant_with_a_backlog_does_not_hold_up_a_quiet_one() {
    let world = World::new("fair").await;
    world.tasks("acme", 3_000).await;
    let quiet = world.tasks("zeta", 5).await;
    let receiver = Receiver::start(|_: &Request| None).await.unwrap();
    let running = world.run(to(&receiver));
    until("the quiet one is served", async || {
        receiver.taken().is_superset(&quiet)
    })
    .await;
    running.stop().await.unwrap();
    let requests = receiver.requests();
    let last = requests
        .iter()
        .rposition(|request| quiet.contains(request.key()));
    assert!(last.unwrap() < 50, "its last one was number {last:?}");
}

#[tokio::test]
async fn more_tenants_than_one_claim_looks_at_all_have_their_turn() {
    let world = World::new("many_tenants").await;
    for tenant in 0..150 {
        world.tasks(&format!("t{tenant}"), 1).await;
    }
    let receiver = Receiver::start(|_: &Request| None).await.unwrap();
    let running = world.run(to(&receiver));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn each_tenants_tasks_go_to_its_own_endpoint() {
    let world = World::new("own_endpoint").await;
    let own = world.tasks("acme", 20).await;
    let others = world.tasks("globex", 20).await;
    let acme = Receiver::start(|_: &Request| None).await.unwrap();
    let rest = Receiver::start(|_: &Request| None).await.unwrap();
    let named = vec!["acme".to_owned()];
    let running = world.run(config(vec![
        endpoint("acme", Tenants::Only(named.clone()), webhook(target(&acme))),
        endpoint("rest", Tenants::AllBut(named), webhook(target(&rest))),
    ]));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(acme.taken(), own);
    assert_eq!(rest.taken(), others);
}

#[tokio::test]
async fn paused_tenants_and_other_pools_are_left_alone() {
    let world = World::new("paused").await;
    let shared = world.tasks("acme", 3).await;
    world.tasks("globex", 3).await;
    world.tasks("initech", 3).await;
    world
        .execute(
            "update ticketflow.tenants set state = 'paused' where tenant_id = 'globex';
             update ticketflow.tenants set pool = 'big' where tenant_id = 'initech'",
        )
        .await;
    let receiver = Receiver::start(|_: &Request| None).await.unwrap();
    let mut only_shared = to(&receiver);
    only_shared.pools = vec!["shared".to_owned()];
    let running = world.run(only_shared);
    world.until_count("delivered", 3).await;
    assert_eq!(receiver.taken(), shared);
    world
        .execute("update ticketflow.tenants set state = 'active'")
        .await;
    world.until_count("delivered", 6).await;
    running.stop().await.unwrap();
    assert_eq!(world.count("pending").await, 3, "the other pool's");
}

#[tokio::test]
async fn a_dead_endpoint_is_probed_and_spends_nothing_else() {
    let world = World::new("dead").await;
    let waiting = world.tasks("acme", 200).await;
    world.tasks("globex", 200).await;
    let alive = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = std::sync::Arc::clone(&alive);
    let acme = Receiver::start(move |_: &Request| {
        let dead = !switch.load(std::sync::atomic::Ordering::SeqCst);
        dead.then(|| Reply::answer(503))
    })
    .await
    .unwrap();
    let rest = Receiver::start(|_: &Request| None).await.unwrap();
    let named = vec!["acme".to_owned()];
    let mut both = config(vec![
        endpoint("acme", Tenants::Only(named.clone()), webhook(target(&acme))),
        endpoint("rest", everyone(), webhook(target(&rest))),
    ]);
    both.endpoints[1].tenants = Tenants::AllBut(named);
    both.circuit_failures = 3;
    both.circuit_wait_max = Duration::from_secs(1);
    let begun = Instant::now();
    let running = world.run(both);
    world.until_count("delivered", 200).await;
    until("several probes", async || acme.requests().len() >= 4).await;
    let spent = "select sum(attempts)::bigint from ticketflow.business_tasks
                 where tenant_id = 'acme'";
    let spent: i64 = world.client.query_one(spent, &[]).await.unwrap().get(0);
    let requests = acme.requests().len();
    // Half a second at least between two probes; what was under way when it opened; one to begin.
    let most = begun.elapsed().as_millis() / 500 + 20;
    let most = usize::try_from(most).unwrap();
    assert!(requests <= most, "{requests} requests to a dead endpoint");
    assert!(spent <= i64::try_from(most).unwrap(), "{spent} tries spent");
    alive.store(true, std::sync::atomic::Ordering::SeqCst);
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(acme.taken(), waiting);
}
