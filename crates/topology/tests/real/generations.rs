//! The counters: what raises them, what does not, and who goes on when somebody died.

use broker::{DeclareError, EffectQueue, Look};
use event::{EffectName, PoolName};
use futures_util::future::join_all;
use topology::{Standing, TopologyError};

use crate::support::{Generations, NOTIFICATION, SEARCH, Stage, shared};

const fn all(generation: i64) -> Generations {
    Generations {
        generation,
        declared: generation,
        ready: generation,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_queues_come_up_once_and_stay_as_they_are() {
    let stage = Stage::set("comeup").await;
    for _ in 0..3 {
        stage.verified().await;
        assert_eq!(stage.generations("search").await, all(2));
        assert_eq!(stage.generations("notification").await, all(2));
    }
    for queue in [SEARCH, NOTIFICATION, "ticketflow.shared.dead"] {
        assert_eq!(stage.waiting(queue).await, 0);
    }
    let stale = "select count(*) from ticketflow.effect_queues where verified_at is null";
    let stale: i64 = stage.sql.query_one(stale, &[]).await.unwrap().get(0);
    assert_eq!(stale, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_queue_comes_back_in_a_new_generation_and_the_other_stays() {
    let stage = Stage::set("comeback").await;
    stage.verified().await;
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    stage.verified().await;
    assert_eq!(stage.generations("search").await, all(3));
    assert_eq!(stage.generations("notification").await, all(2));
    assert_eq!(stage.waiting(SEARCH).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_binding_is_made_again_at_the_next_look() {
    let stage = Stage::set("binding").await;
    stage.verified().await;
    let vhost = &stage.site.name;
    let unbind = format!(
        "[rabbit_binding:remove(B, <<\"test\">>) || B <- rabbit_binding:list_for_destination(\
         rabbit_misc:r(<<\"{vhost}\">>, queue, <<\"{SEARCH}\">>)), \
         element(4, element(2, B)) =:= <<\"ticketflow.events\">>], \"\""
    );
    stage
        .site
        .sandbox()
        .evaluate(&unbind)
        .await
        .expect("unbound");
    let bound = async || {
        let list = [
            "list_bindings",
            "-p",
            vhost,
            "destination_name",
            "routing_key",
        ];
        let listing = stage
            .site
            .sandbox()
            .rabbitmqctl(&list)
            .await
            .expect("bindings");
        listing
            .lines()
            .any(|line| line.contains(SEARCH) && line.contains("shared.*.*.ticket.#"))
    };
    assert!(!bound().await);
    stage.verified().await;
    assert!(bound().await);
    assert_eq!(
        stage.generations("search").await,
        all(2),
        "the queue was there all the time"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_other_arguments_is_told_and_nothing_is_changed() {
    let stage = Stage::set("otherwise").await;
    let declare = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"{}\">>, queue, <<\"{SEARCH}\">>), true, false, [], none, <<\"test\">>), \"\"",
        stage.site.name
    );
    stage
        .site
        .sandbox()
        .evaluate(&declare)
        .await
        .expect("a classic queue");
    for _ in 0..3 {
        let error = stage
            .topology
            .verify(&shared())
            .await
            .expect_err("made otherwise");
        let text = error.to_string();
        assert!(
            matches!(
                error,
                TopologyError::Declare(DeclareError::OtherArguments { .. })
            ),
            "{text}"
        );
        assert!(text.contains(SEARCH), "{text}");
    }
    let untouched = Generations {
        generation: 1,
        declared: 0,
        ready: 0,
    };
    assert_eq!(stage.generations("search").await, untouched);
    assert_eq!(
        stage.generations("notification").await,
        all(2),
        "the other queue is brought up"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_arguments_are_seen_by_every_look_once_a_queue_is_used_and_by_a_check_before() {
    let stage = Stage::set("check").await;
    stage.verified().await;
    assert_eq!(
        stage.topology.check(&shared()).await.expect("checked"),
        Standing::Verified
    );
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    let declare = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"{}\">>, queue, <<\"{SEARCH}\">>), true, false, [], none, <<\"test\">>), \"\"",
        stage.site.name
    );
    stage
        .site
        .sandbox()
        .evaluate(&declare)
        .await
        .expect("a classic queue");
    // Empty and not consumed, it may have just been made: only a person's question is worth a new
    // generation.
    stage.verified().await;
    let told = |error: TopologyError| {
        assert!(
            matches!(
                &error,
                TopologyError::Declare(DeclareError::OtherArguments { .. })
            ),
            "{error}"
        );
    };
    told(
        stage
            .topology
            .check(&shared())
            .await
            .expect_err("made otherwise"),
    );
    // Once anybody uses it, every look sees it.
    let _subscribed = stage
        .broker
        .deliveries(SEARCH, 1)
        .await
        .expect("subscribed");
    told(
        stage
            .topology
            .verify(&shared())
            .await
            .expect_err("made otherwise"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_began_is_left_to_finish_for_a_while_and_then_followed() {
    let stage = Stage::set("followed").await;
    stage.verified().await;
    // Somebody has raised the generation and died before declaring.
    stage.broker.delete_queue(SEARCH).await.expect("deleted");
    stage.execute("update ticketflow.effect_queues set generation = 3, generation_at = clock_timestamp() where effect = 'search'").await;
    let standing = stage.topology.verify(&shared()).await.expect("looked at");
    assert!(matches!(standing, Standing::Unverified { .. }));
    assert_eq!(stage.broker.look_at(SEARCH).await, Ok(Look::Missing));
    let later = "update ticketflow.effect_queues set generation_at = clock_timestamp() - interval '16 s' where effect = 'search'";
    stage.execute(later).await;
    stage.verified().await;
    assert_eq!(
        stage.generations("search").await,
        all(4),
        "under a new generation"
    );

    // Somebody has declared it and died while refilling.
    stage.execute("update ticketflow.effect_queues set generation = 5, declared_generation = 5, generation_at = clock_timestamp() where effect = 'search'").await;
    let standing = stage.topology.verify(&shared()).await.expect("looked at");
    assert!(matches!(standing, Standing::Unverified { .. }));
    stage.execute(later).await;
    stage.verified().await;
    assert_eq!(
        stage.generations("search").await,
        all(5),
        "the refilling goes on in the same one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_find_a_queue_missing_one_makes_it() {
    let stage = Stage::set("several").await;
    stage.verified().await;
    stage.published("ticket.created", 50).await;
    let relays: Vec<_> = (0..6)
        .map(|_| Stage::another(&stage.site, &stage.broker))
        .collect();
    for round in 3..8 {
        stage.broker.delete_queue(SEARCH).await.expect("deleted");
        let pool = shared();
        let looks = join_all(relays.iter().map(|relay| relay.verify(&pool))).await;
        assert!(
            looks
                .iter()
                .any(|look| matches!(look, Ok(Standing::Verified))),
            "{looks:?}"
        );
        assert_eq!(
            stage.generations("search").await,
            all(round),
            "one generation each time"
        );
        assert_eq!(stage.waiting(SEARCH).await, 50, "refilled by one of them");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_gets_the_effects_of_the_shared_one() {
    let stage = Stage::set("newpool").await;
    let pool = PoolName::parse("acme").expect("valid");
    assert_eq!(
        stage.topology.verify(&pool).await.expect("verified"),
        Standing::Verified
    );
    for effect in ["search", "notification"] {
        let queue = EffectQueue {
            pool: pool.clone(),
            effect: EffectName::parse(effect).expect("valid"),
            patterns: Vec::new(),
        };
        assert_eq!(stage.waiting(&queue.name()).await, 0);
    }
    assert_eq!(stage.waiting("ticketflow.acme.dead").await, 0);
}
