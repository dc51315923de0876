//! Tasks whose outcome is not known: asked for, or sent again under the same key; never given up.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outside::provider::Target;
use outside::{Outcome, Provider, Task};
use sandbox::{Receiver, Reply, Request};
use tokio::sync::Semaphore;

use crate::world::{World, at_first, config, endpoint, everyone, target, to, until, webhook};

fn methods(receiver: &Receiver) -> Vec<String> {
    let requests = receiver.requests();
    requests.into_iter().map(|request| request.method).collect()
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_and_not_sent_again() {
    let world = World::new("lost_answer").await;
    world.tasks("acme", 1).await;
    let receiver = at_first(Reply::take_and_close).await;
    let running = world.run(to(&receiver));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(methods(&receiver), ["POST", "GET"]);
}

#[tokio::test]
async fn what_the_provider_does_not_know_is_sent_again() {
    let world = World::new("not_known").await;
    world.tasks("acme", 1).await;
    let receiver = at_first(Reply::close).await;
    let running = world.run(to(&receiver));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(methods(&receiver), ["POST", "GET", "POST"]);
}

#[tokio::test]
async fn a_provider_that_cannot_be_asked_gets_the_same_key_again() {
    let world = World::new("not_asked").await;
    world.tasks("acme", 1).await;
    let receiver = at_first(Reply::take_and_close).await;
    let target = Target {
        status_url: String::new(),
        ..target(&receiver)
    };
    let running = world.run(config(vec![endpoint("hook", everyone(), webhook(target))]));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    let requests = receiver.requests();
    assert_eq!(methods(&receiver), ["POST", "POST"]);
    assert_eq!(requests[0].key(), requests[1].key());
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_asked_for() {
    let world = World::new("too_late").await;
    world.tasks("acme", 1).await;
    let receiver = at_first(|| Reply::take_late(Duration::from_secs(3600))).await;
    let target = Target {
        timeout: Duration::from_millis(300),
        ..target(&receiver)
    };
    let running = world.run(config(vec![endpoint("hook", everyone(), webhook(target))]));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(methods(&receiver), ["POST", "GET"]);
}

#[tokio::test]
async fn nothing_is_sent_while_the_question_is_not_answered() {
    let world = World::new("no_answer").await;
    world.tasks("acme", 1).await;
    let receiver = Receiver::start(|request: &Request| {
        Some(match request.method.as_str() {
            "POST" => Reply::take_and_close(),
            _ => Reply::answer(500),
        })
    })
    .await
    .unwrap();
    let mut config = to(&receiver);
    config.policy.max_attempts = 4;
    let running = world.run(config);
    world.until_all("parked").await;
    running.stop().await.unwrap();
    assert_eq!(methods(&receiver), ["POST", "GET", "GET", "GET"]);
    assert_eq!(
        world.only("parked_reason").await.as_deref(),
        Some("unknown")
    );
}

#[tokio::test]
async fn a_loop_killed_between_the_written_try_and_the_answer_leaves_a_task_in_doubt() {
    let world = World::new("killed").await;
    let tasks = world.tasks("acme", 8).await;
    let receiver = at_first(Reply::take_in_silence).await;
    let mut brief = to(&receiver);
    brief.lease = Duration::from_secs(21);
    let killed = world.run(brief);
    until("the probe is out", async || receiver.taken().len() == 1).await;
    killed.kill().await;
    assert_eq!(world.count("sending").await, 1);
    let tried = "select attempts from ticketflow.business_tasks where status = 'sending'";
    let attempts: i64 = world.client.query_one(tried, &[]).await.unwrap().get(0);
    assert_eq!(attempts, 1, "written down before it went out");
    // The lease ends, by the database's clock.
    let end = "update ticketflow.business_tasks set leased_until = clock_timestamp(),
               next_attempt_at = clock_timestamp() where status = 'sending'";
    world.execute(end).await;
    let taken_unheard = receiver.taken().into_iter().next().unwrap();
    let next = Receiver::start(move |request: &Request| {
        let known = request.method == "GET" && request.key() == taken_unheard;
        known.then(Reply::take)
    })
    .await
    .unwrap();
    let running = world.run(to(&next));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    let all = receiver.taken().union(&next.taken()).cloned().collect();
    assert_eq!(tasks, all);
    assert!(
        receiver.taken().is_disjoint(&next.taken()),
        "the one in doubt went out once"
    );
}

/// Answers so, but only when it is let.
#[derive(Debug)]
struct Held(Arc<Semaphore>, Outcome);

impl Provider for Held {
    fn send<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, Outcome> {
        Box::pin(async {
            self.0.acquire().await.unwrap().forget();
            self.1.clone()
        })
    }

    fn longest(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn a_slow_loop_cannot_settle_a_task_that_was_claimed_anew() {
    let world = World::new("fenced").await;
    world.tasks("acme", 1).await;
    let (slow_gate, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let too_late = Outcome::Refused {
        whose: outside::Whose::Task,
        told: "too late".to_owned(),
    };
    let slow = Held(Arc::clone(&slow_gate), too_late);
    let mut slow = config(vec![endpoint("slow", everyone(), slow)]);
    slow.endpoints[0].concurrency = 1;
    slow.lease = Duration::from_millis(300);
    let slow = world.run(slow);
    world.until_all("sending").await;
    let first = world.only("lease_token").await;
    // It holds its only request, so what claims the task once the lease ran out is the other.
    let other = Held(Arc::clone(&gate), Outcome::Delivered);
    let mut only_slot = config(vec![endpoint("other", everyone(), other)]);
    only_slot.endpoints[0].concurrency = 1;
    let other = world.run(only_slot);
    until("it is claimed anew", async || {
        let token = world.only("lease_token").await;
        token.is_some() && token != first
    })
    .await;
    slow_gate.add_permits(1);
    slow.stop().await.unwrap();
    assert_eq!(
        world.count("sending").await,
        1,
        "the late refusal changed nothing"
    );
    gate.add_permits(1);
    world.until_all("delivered").await;
    other.stop().await.unwrap();
}
