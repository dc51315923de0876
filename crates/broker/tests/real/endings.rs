//! How a subscription ends: always said, never silent (B16, B17, B18).

use broker::{Broker, BrokerError, Deliveries, Ended, Look};

use crate::support::{PATIENCE, Stage, connected, eventually, good, limits, publish, soon};

/// Takes and acknowledges everything until the subscription ends.
async fn end_of(mut deliveries: Deliveries) -> Ended {
    let ending = async {
        loop {
            match deliveries.batch(limits(10)).await {
                Ok(batch) => {
                    let _ = batch.ack().await;
                }
                Err(ended) => return ended,
            }
        }
    };
    tokio::time::timeout(PATIENCE, ending)
        .await
        .expect("it ends")
}

async fn subscribed(broker: &Broker, queue: &str) -> Deliveries {
    let deliveries = broker.deliveries(queue, 10).await;
    deliveries.expect("subscribed")
}

#[tokio::test(flavor = "multi_thread")]
async fn b16_a_deleted_queue_ends_the_subscription_and_a_new_one_works() {
    let stage = Stage::set("b16").await;
    let name = stage.queue.name();
    let deliveries = subscribed(&stage.broker, &name).await;
    stage.site.delete_queue(&name).await.expect("deleted");
    assert_eq!(end_of(deliveries).await, Ended::QueueGone);
    let missing = stage.broker.deliveries(&name, 10).await.map(drop);
    assert!(matches!(missing, Err(BrokerError::Refused(closed)) if closed.code == 404));
    stage.declare().await;
    let wave: Vec<_> = (0..10).map(good).collect();
    publish(&stage.broker, None, &wave, soon()).await;
    assert_eq!(stage.drain(&name, 10).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_ends_the_subscription() {
    let stage = Stage::set("endconn").await;
    let deliveries = subscribed(&stage.broker, &stage.queue.name()).await;
    stage.site.close_connections().await.expect("closed");
    let ended = end_of(deliveries).await;
    assert!(
        matches!(ended, Ended::Closed(_) | Ended::LinkLost { .. }),
        "{ended}"
    );
    stage
        .broker
        .connected(PATIENCE)
        .await
        .expect("connected again");
    subscribed(&stage.broker, &stage.queue.name()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b18_an_acknowledgement_on_a_dead_channel_fails_and_kills_no_other() {
    let stage = Stage::set("b18").await;
    let name = stage.queue.name();
    let wave: Vec<_> = (0..100).map(good).collect();
    publish(&stage.broker, None, &wave, soon()).await;
    let mut old = subscribed(&stage.broker, &name).await;
    let batch = old.batch(limits(10)).await.expect("a batch");
    stage.site.close_connections().await.expect("closed");
    eventually("connected again", async || {
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages: 100,
                consumers: 0,
            })
    })
    .await;
    let consumer = connected(&stage.site.amqp_url).await;
    let mut new = subscribed(&consumer, &name).await;
    let ended = batch.ack().await.expect_err("its channel is gone");
    assert!(
        matches!(ended, Ended::Closed(_) | Ended::LinkLost { .. }),
        "{ended}"
    );
    // The new channel is unharmed: all hundred come and are acknowledged.
    let mut seen = 0;
    while seen < 100 {
        let batch = new.batch(limits(10)).await.expect("a batch");
        seen += batch.deliveries().len();
        batch.ack().await.expect("acknowledged");
    }
    new.cancel().await;
    assert_eq!(end_of(new).await, Ended::Cancelled);
    assert_eq!(
        stage.broker.look_at(&name).await,
        Ok(Look::Present {
            messages: 0,
            consumers: 0
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b17_an_acknowledgement_that_took_too_long_is_said_with_its_code() {
    let terms = ["{consumer_timeout, 1000}", "{channel_tick_interval, 500}"];
    let stage = Stage::set_apart("b17", &terms).await;
    let name = stage.queue.name();
    publish(&stage.broker, None, &[good(1)], soon()).await;
    let mut deliveries = subscribed(&stage.broker, &name).await;
    let batch = deliveries.batch(limits(1)).await.expect("a batch");
    eventually("the broker takes it back", async || {
        stage.broker.look_at(&name).await
            == Ok(Look::Present {
                messages: 1,
                consumers: 0,
            })
    })
    .await;
    let ended = batch.ack().await.expect_err("too late");
    let next = deliveries
        .batch(limits(1))
        .await
        .map(|batch| batch.deliveries().len());
    assert_eq!(next, Err(ended));
    assert_eq!(stage.drain(&name, 1).await, ["1"]);
}
