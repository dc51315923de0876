//! Parked tasks: listed, sent round again once, given up; each with a trace.

use std::time::Duration;

use outside::operate::{self, Action, Which};
use sandbox::{Receiver, Reply, Request};
use tokio_postgres::Client;

use crate::world::{World, none, to};

fn action() -> Action {
    Action {
        actor: "ada".to_owned(),
        reason: "endpoint was moved".to_owned(),
    }
}

fn all() -> Which {
    Which {
        most: 100,
        ..Which::default()
    }
}

/// Parks ten tasks of acme and two of globex.
async fn parked(world: &World) {
    world.tasks("acme", 10).await;
    world.tasks("globex", 2).await;
    let refusing = Receiver::start(|_: &Request| Some(Reply::answer(400)))
        .await
        .unwrap();
    let running = world.run(to(&refusing));
    world.until_all("parked").await;
    running.stop().await.unwrap();
}

/// With the grants that an operator has.
async fn operator(world: &World) -> Client {
    let client = world.site.database().await.unwrap();
    client
        .batch_execute("set role ticketflow_operator")
        .await
        .unwrap();
    client
}

#[tokio::test]
async fn a_redrive_sends_parked_tasks_round_again_once() {
    let world = World::new("redrive").await;
    parked(&world).await;
    let (mut one, mut two) = (operator(&world).await, operator(&world).await);
    let listed = operate::parked(&one, &all()).await.unwrap();
    assert_eq!(listed.len(), 12);
    assert!(
        listed
            .iter()
            .all(|task| task.parked_reason.as_deref() == Some("refused"))
    );

    let elsewhere = Which {
        reason: Some("status 404".to_owned()),
        ..all()
    };
    none(&operate::parked(&one, &elsewhere).await.unwrap());
    let which = Which {
        tenant_id: Some("acme".to_owned()),
        reason: Some("refused: status 400".to_owned()),
        ..all()
    };
    let redrive = async |client: &mut Client| {
        let transaction = client.transaction().await.unwrap();
        let (spread, action) = (Duration::from_millis(50), action());
        let ids = operate::redrive(&transaction, &which, spread, &action).await;
        let ids = ids.unwrap();
        transaction.commit().await.unwrap();
        ids.len()
    };
    let (first, second) = tokio::join!(redrive(&mut one), redrive(&mut two));
    assert_eq!(first + second, 10, "twice at once does it once");
    let look = "select count(*) from ticketflow.business_tasks
                where status = 'pending' and attempts = 0 and tenant_id = 'acme'";
    let again: i64 = one.query_one(look, &[]).await.unwrap().get(0);
    assert_eq!(again, 10);

    let receiver = Receiver::start(|_: &Request| None).await.unwrap();
    let running = world.run(to(&receiver));
    world.until_count("delivered", 10).await;
    running.stop().await.unwrap();
    assert_eq!(world.count("parked").await, 2);
    let noted = "select actor, reason, (result->>'redriven')::bigint
                 from ticketflow.operator_actions where action = 'redrive'";
    let rows = one.query(noted, &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, &str>(0), "ada");
    assert_eq!(rows[0].get::<_, &str>(1), "endpoint was moved");
    assert_eq!(rows[0].get::<_, i64>(2), 10);
}

#[tokio::test]
async fn a_skip_gives_up_only_what_is_parked_and_says_why() {
    let world = World::new("skip").await;
    parked(&world).await;
    let mut client = operator(&world).await;
    let first = operate::parked(&client, &Which { most: 1, ..all() })
        .await
        .unwrap();
    let which = Which {
        task_ids: Some(vec![first[0].task_id]),
        ..all()
    };
    for expected in [1, 0] {
        let transaction = client.transaction().await.unwrap();
        let ids = operate::skip(&transaction, &which, &action())
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(ids.len(), expected);
    }
    let shown = operate::task(&client, first[0].task_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(shown.status, "skipped");
    assert_eq!(shown.last_error.as_deref(), Some("status 400"));
    assert_eq!(world.count("parked").await, 11);
}

#[tokio::test]
async fn a_redriven_task_of_unknown_outcome_is_still_in_doubt() {
    let world = World::new("redrive_doubt").await;
    world.tasks("acme", 1).await;
    let lost = Receiver::start(|_: &Request| Some(Reply::take_and_close()))
        .await
        .unwrap();
    let mut config = to(&lost);
    config.policy.max_attempts = 1;
    let running = world.run(config);
    world.until_all("parked").await;
    running.stop().await.unwrap();

    let mut client = operator(&world).await;
    let transaction = client.transaction().await.unwrap();
    let ids = operate::redrive(&transaction, &all(), Duration::ZERO, &action()).await;
    assert_eq!(ids.unwrap().len(), 1);
    transaction.commit().await.unwrap();
    assert_eq!(world.count("unknown").await, 1);
}
