//! The broker out of memory: it takes nothing, and nothing here hangs (B08).

use std::time::Duration;

use broker::{Doubt, LinkState, Publish, PublishOutcome, Publishers, Route};
use tokio::time::Instant;

use crate::support::{
    PATIENCE, Stage, client_threads, eventually, good, publish, soon, state_where,
};

fn is_blocked(state: &LinkState) -> bool {
    matches!(state, LinkState::Blocked { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn b08_a_blocked_link_says_so_sends_nothing_more_and_resumes() {
    let stage = Stage::set_apart("blocked", &[]).await;
    let sandbox = stage.site.sandbox();
    let idle = stage.broker.publisher().await.expect("a publisher");
    sandbox.memory_alarm(true).await.expect("an alarm");

    // The broker says that it blocks only once something is published.
    let deadline = Instant::now() + Duration::from_secs(2);
    let (outcomes, back) = publish(&stage.broker, None, &[good("late")], deadline).await;
    assert!(
        matches!(
            &outcomes[..],
            [PublishOutcome::Unknown(Doubt::Blocked { .. })]
        ),
        "{}",
        outcomes[0]
    );
    assert!(back.is_none());
    state_where(&stage.broker, "blocked", is_blocked).await;

    // From now on nothing is handed to the client, and no call waits for what cannot come.
    let start = Instant::now();
    let wave = idle
        .publish_wave(Route::Events, &[good("never")], soon())
        .await;
    assert!(matches!(
        &wave.outcomes[..],
        [PublishOutcome::Unknown(Doubt::NotSent { .. })]
    ));
    let idle = wave.publisher.expect("it was not used");
    assert!(stage.broker.publisher().await.is_err());
    assert!(stage.broker.lone_publisher().await.is_err());
    assert!(stage.broker.look_at("any").await.is_err());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );

    closes_at_once_and_leaves_no_thread(&stage).await;

    sandbox.memory_alarm(false).await.expect("no alarm");
    stage.broker.connected(PATIENCE).await.expect("unblocked");
    let wave = idle
        .publish_wave(Route::Events, &[good("after")], soon())
        .await;
    assert_eq!(wave.outcomes, [PublishOutcome::Confirmed]);
    let arrived = stage.drain(&stage.queue.name(), 2).await;
    let came = |id: &str| arrived.iter().any(|other| other == id);
    assert!(
        came("after") && came("late"),
        "what was sent came late: {arrived:?}"
    );
    assert!(!came("never"), "what was held back was not sent");
}

async fn closes_at_once_and_leaves_no_thread(stage: &Stage) {
    let before = client_threads();
    let broker = crate::support::connected(&stage.site.amqp_url).await;
    let deadline = Instant::now() + Duration::from_millis(500);
    publish(&broker, None, &[good("second late one")], deadline).await;
    state_where(&broker, "blocked", is_blocked).await;
    let start = Instant::now();
    broker.close().await;
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    eventually("its thread ends", async || client_threads() <= before).await;
}
