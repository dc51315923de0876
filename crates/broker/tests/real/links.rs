//! Links that break, and come back by themselves (B09).

use std::time::Duration;

use broker::{
    Broker, ConnectOptions, Doubt, LinkState, Publish, PublishOutcome, Publishers, Route,
};
use sandbox::{Direction, FaultProxy};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::support::{
    PATIENCE, Stage, client_threads, connected, eventually, good, is_down, options, publish, soon,
    state_where,
};

/// Publishes until a whole wave is confirmed: the link resumed without anybody's help.
async fn resumes(broker: &Broker) {
    eventually("publishing resumes", async || {
        let Ok(publisher) = broker.publisher().await else {
            return false;
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        let wave = publisher
            .publish_wave(Route::Events, &[good("again")], deadline)
            .await;
        wave.outcomes == [PublishOutcome::Confirmed]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b09_publishing_resumes_each_time_the_broker_closes_the_connections() {
    let stage = Stage::set("b09").await;
    for round in 0..20 {
        let wave: Vec<_> = (0..100).map(good).collect();
        let publishing = async {
            let Ok(publisher) = stage.broker.publisher().await else {
                return;
            };
            let wave = publisher.publish_wave(Route::Events, &wave, soon()).await;
            let silent = PublishOutcome::Unknown(Doubt::TimedOut);
            assert!(
                !wave.outcomes.contains(&silent),
                "round {round}: all resolved, none waited for"
            );
        };
        let closing = stage.site.close_connections();
        let (_, closed) = tokio::join!(publishing, closing);
        closed.expect("closed");
        resumes(&stage.broker).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_cut_under_load_leaves_doubt_and_resumes() {
    let stage = Stage::set("cut").await;
    let proxy = FaultProxy::start(stage.site.sandbox().rabbitmq().port())
        .await
        .expect("a proxy");
    let broker = connected(&stage.site.amqp_url_through(proxy.port())).await;
    for _ in 0..20 {
        let publisher = loop {
            broker.connected(PATIENCE).await.expect("connected again");
            // A cut may show only now.
            if let Ok(publisher) = broker.publisher().await {
                break publisher;
            }
        };
        let wave: Vec<_> = (0..400).map(good).collect();
        let cutting = async {
            tokio::time::sleep(Duration::from_millis(some_ms())).await;
            proxy.cut_once();
        };
        let publishing = publisher.publish_wave(Route::Events, &wave, soon());
        let (wave, ()) = tokio::join!(publishing, cutting);
        for outcome in &wave.outcomes {
            let fits = matches!(
                outcome,
                PublishOutcome::Confirmed
                    | PublishOutcome::Unknown(Doubt::LinkLost { .. } | Doubt::NotSent { .. })
            );
            assert!(fits, "{outcome}");
        }
    }
    resumes(&broker).await;
}

/// A moment within the time that a wave takes.
fn some_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::from(now.unwrap_or_default().subsec_micros() % 40)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_link_is_found_out_by_its_heartbeat() {
    let stage = Stage::set("silent").await;
    let proxy = FaultProxy::start(stage.site.sandbox().rabbitmq().port())
        .await
        .expect("a proxy");
    let broker = connected(&stage.site.amqp_url_through(proxy.port())).await;
    let publisher = broker.publisher().await.expect("a publisher");
    proxy.blackhole();
    let start = Instant::now();
    let wave = publisher
        .publish_wave(Route::Events, &[good(1)], soon())
        .await;
    let lost = matches!(
        wave.outcomes[..],
        [PublishOutcome::Unknown(Doubt::LinkLost { .. })]
    );
    assert!(lost, "{}", wave.outcomes[0]);
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "heartbeats of 2 s: {:?}",
        start.elapsed()
    );
    state_where(&broker, "down", is_down).await;
    proxy.restore();
    resumes(&broker).await;
}

/// As when the broker no longer reads a connection and still sends its heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_on_which_no_channel_opens_is_given_up_whatever_its_heartbeat() {
    let stage = Stage::set("unread").await;
    let proxy = FaultProxy::start(stage.site.sandbox().rabbitmq().port())
        .await
        .expect("a proxy");
    let url = stage.site.amqp_url_through(proxy.port());
    let mut options = ConnectOptions::new(format!("{url}?heartbeat=600"), "broker test");
    options.call_timeout = Duration::from_secs(1);
    let broker = Broker::start(options).expect("an address");
    broker.connected(PATIENCE).await.expect("a connection");
    proxy.blackhole_one_way(Direction::ToServer);
    broker.publisher().await.expect_err("no channel opens");
    state_where(&broker, "down", is_down).await;
    proxy.restore();
    resumes(&broker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirm_that_never_comes_is_waited_for_to_the_deadline_only() {
    let stage = Stage::set("deadline").await;
    let proxy = FaultProxy::start(stage.site.sandbox().rabbitmq().port())
        .await
        .expect("a proxy");
    let broker = connected(&stage.site.amqp_url_through(proxy.port())).await;
    let publisher = broker.publisher().await.expect("a publisher");
    proxy.blackhole();
    let deadline = Instant::now() + Duration::from_millis(300);
    let wave = publisher
        .publish_wave(Route::Events, &[good(1), good(2)], deadline)
        .await;
    assert_eq!(
        wave.outcomes,
        vec![PublishOutcome::Unknown(Doubt::TimedOut); 2]
    );
    assert!(
        wave.publisher.is_none(),
        "late answers would be taken for the next wave's"
    );
    assert!(deadline.elapsed() < Duration::from_secs(5));
    proxy.restore();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_stopped_and_started_or_killed_or_frozen_is_survived() {
    let stage = Stage::set_apart("outages", &[]).await;
    let server = stage.site.sandbox().rabbitmq();
    let sandbox = stage.site.sandbox();

    sandbox.rabbitmqctl(&["stop_app"]).await.expect("stopped");
    state_where(&stage.broker, "down", is_down).await;
    let away = stage.broker.publisher().await.map(drop);
    assert!(matches!(
        away,
        Err(broker::BrokerError::Unavailable(_) | broker::BrokerError::Denied(_))
    ));
    sandbox.rabbitmqctl(&["start_app"]).await.expect("started");
    resumes(&stage.broker).await;

    server.kill9().await.expect("killed");
    state_where(&stage.broker, "down", is_down).await;
    // A link may also be started while the broker is away.
    let late = Broker::start(options(&stage.site.amqp_url)).expect("an address");
    let early = late.connected(Duration::from_millis(500)).await;
    assert!(
        matches!(early, Err(broker::BrokerError::Unavailable(_))),
        "{early:?}"
    );
    server.start().await.expect("started");
    resumes(&stage.broker).await;
    resumes(&late).await;

    server.pause().expect("paused");
    state_where(&stage.broker, "down", is_down).await;
    server.resume().expect("resumed");
    resumes(&stage.broker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_nothing_costs_an_attempt_and_no_thread() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let silent = tokio::spawn(async move {
        let mut peers = Vec::new();
        loop {
            let Ok((mut peer, _)) = listener.accept().await else {
                return;
            };
            // Half of them begin a frame and never end it.
            if peers.len() % 2 == 1 {
                let _ = peer.write_all(&[1, 0, 0]).await;
            }
            peers.push(peer);
        }
    });
    let mut options = options(&format!("amqp://127.0.0.1:{port}"));
    options.connect_timeout = Duration::from_millis(100);
    options.retry.first = Duration::from_millis(1);
    options.retry.most = Duration::from_millis(1);
    let before = client_threads();
    let broker = Broker::start(options).expect("an address");
    let mut attempts = 0;
    let mut state = broker.state();
    while attempts < 10 {
        let settled = tokio::time::timeout(Duration::from_millis(150), state.changed()).await;
        attempts += usize::from(settled.is_err());
    }
    assert!(
        matches!(&*broker.state().borrow(), LinkState::Down { permanent: false, error, .. } if error.contains("no answer"))
    );
    broker.close().await;
    eventually("no thread is left over", async || {
        client_threads() <= before + 2
    })
    .await;
    silent.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wave_on_a_link_that_is_down_is_not_sent_at_all() {
    let stage = Stage::set("notsent").await;
    let proxy = FaultProxy::start(stage.site.sandbox().rabbitmq().port())
        .await
        .expect("a proxy");
    let broker = connected(&stage.site.amqp_url_through(proxy.port())).await;
    let publisher = broker.publisher().await.expect("a publisher");
    proxy.cut();
    state_where(&broker, "down", is_down).await;
    let (outcomes, back) = publish(&broker, Some(publisher), &[good(1)], soon()).await;
    assert!(
        matches!(
            &outcomes[..],
            [PublishOutcome::Unknown(Doubt::NotSent { .. })]
        ),
        "{}",
        outcomes[0]
    );
    assert!(back.is_none(), "its channel is gone");
}
