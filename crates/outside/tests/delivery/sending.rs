//! What goes out: each task once, signed, under its own key, to nowhere but where it may.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use outside::provider::{Local, Target};
use sandbox::{Receiver, Reply, Request};
use serde_json::Value;
use sha2::Sha256;

use crate::world::{SECRET, World, config, endpoint, everyone, none, target, to, webhook};

async fn taking() -> Receiver {
    Receiver::start(|_: &Request| None).await.unwrap()
}

#[tokio::test]
async fn each_task_goes_out_once_under_its_own_key() {
    let world = World::new("once").await;
    let tasks = world.tasks("acme", 200).await;
    let receiver = taking().await;
    let running = world.run(to(&receiver));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    assert_eq!(receiver.taken(), tasks);
    assert!(receiver.posts().values().all(|posts| *posts == 1));
    assert_eq!(world.only("max(attempts)").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn two_loops_at_once_send_each_task_once() {
    let world = World::new("two_loops").await;
    let mut tasks = world.tasks("acme", 200).await;
    tasks.append(&mut world.tasks("globex", 200).await);
    let receiver = taking().await;
    let loops = [
        world.run(to(&receiver)),
        world.run(to(&receiver)),
        world.run(to(&receiver)),
    ];
    world.until_all("delivered").await;
    for running in loops {
        running.stop().await.unwrap();
    }
    assert_eq!(receiver.taken(), tasks);
    assert!(receiver.posts().values().all(|posts| *posts == 1));
}

#[tokio::test]
async fn a_receiver_can_verify_what_it_gets() {
    let world = World::new("signed").await;
    world.tasks("acme", 1).await;
    let receiver = taking().await;
    let running = world.run(to(&receiver));
    world.until_all("delivered").await;
    running.stop().await.unwrap();

    let requests = receiver.requests();
    let request = &requests[0];
    let header = |name: &str| request.headers[name].as_str();
    let task_id = world.only("task_id").await.unwrap();
    assert_eq!(header("idempotency-key"), task_id);
    assert_eq!(header("webhook-id"), task_id);
    assert_eq!(header("content-type"), "application/json");
    let key = STANDARD
        .decode(SECRET.trim_start_matches("whsec_"))
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{task_id}.{}.", header("webhook-timestamp")).as_bytes());
    mac.update(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), expected);
    let age = "abs(extract(epoch from clock_timestamp()) - $)::int < 60";
    let age = age.replace('$', header("webhook-timestamp"));
    assert_eq!(
        world.only(&format!("({age})")).await.as_deref(),
        Some("true")
    );

    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["type"], "ticket.created");
    assert_eq!(body["data"]["task_id"], task_id);
    assert_eq!(body["data"]["tenant_id"], "acme");
    for column in ["ticket_id", "event_id"] {
        assert_eq!(body["data"][column], world.only(column).await.unwrap());
    }
    let text = String::from_utf8(request.body.clone()).unwrap();
    assert!(
        text.contains(r#""payload":{"z":1.10,"path":"C:\\temp"}"#),
        "{text}"
    );
}

#[tokio::test]
async fn the_local_provider_completes_every_task() {
    let world = World::new("local").await;
    world.tasks("acme", 2_000).await;
    let running = world.run(config(vec![endpoint("local", everyone(), Local)]));
    world.until_all("delivered").await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let world = World::new("redirect").await;
    world.tasks("acme", 1).await;
    let elsewhere = taking().await;
    let location = elsewhere.url();
    let receiver = Receiver::start(move |_: &Request| {
        Some(Reply::answer(307).header("location", location.clone()))
    })
    .await
    .unwrap();
    let running = world.run(to(&receiver));
    world.until_all("parked").await;
    running.stop().await.unwrap();
    none(&elsewhere.requests());
    assert_eq!(
        world.only("parked_reason").await.as_deref(),
        Some("endpoint")
    );
    let told = world.only("last_error").await.unwrap();
    assert!(
        told.contains("307") && told.contains("not followed"),
        "{told}"
    );
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_called() {
    let world = World::new("inside").await;
    world.tasks("acme", 1).await;
    let receiver = taking().await;
    // A name of our own machine, as a tenant's DNS could give any.
    let target = Target {
        url: format!("https://localhost:{}/hook", receiver.port()),
        status_url: String::new(),
        allow_private: false,
        ..target(&receiver)
    };
    let running = world.run(config(vec![endpoint("hook", everyone(), webhook(target))]));
    world.until_all("parked").await;
    running.stop().await.unwrap();
    none(&receiver.requests());
    assert_eq!(
        world.only("parked_reason").await.as_deref(),
        Some("endpoint")
    );
    let told = world.only("last_error").await.unwrap();
    assert!(told.contains("localhost has no public address"), "{told}");
}

#[tokio::test]
async fn an_endpoints_rate_is_kept() {
    let world = World::new("rate").await;
    world.tasks("acme", 40).await;
    let receiver = taking().await;
    let mut config = to(&receiver);
    config.endpoints[0].rate_per_second = 20;
    let begun = std::time::Instant::now();
    let running = world.run(config);
    world.until_all("delivered").await;
    running.stop().await.unwrap();
    // 20 at once from the full bucket, the others a twentieth of a second each.
    assert!(
        begun.elapsed() >= Duration::from_millis(950),
        "{:?}",
        begun.elapsed()
    );
}
