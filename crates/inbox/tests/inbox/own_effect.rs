//! The example's effect: another crate's own, used as its documentation says.

use inbox::{Delivery, Outcome, Reason};

use crate::support::{World, delivered, event};

#[allow(dead_code, reason = "the example's main is not run here")]
#[path = "../../examples/totals.rs"]
mod totals;

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_effect_counts_each_payment_once() {
    let world = World::new("example").await;
    world.run(totals::TABLE).await;
    world
        .run("grant select, insert, update on customer_totals to ticketflow_consumer")
        .await;
    let effect = totals::Totals::new().unwrap();
    let pool = event::PoolName::parse("shared").unwrap();
    let paid = |aggregate: &str, body: &'static str| {
        let mut paid = event(aggregate, 1);
        paid.payload = body.into();
        Delivery::read(pool.clone(), delivered(&paid))
    };
    let set = [
        paid("1", r#"{"customer":"b","cents":100}"#),
        paid("2", r#"{"customer":"a","cents":5}"#),
        paid("3", r#"{"customer":"b","cents":20}"#),
        paid("4", "not JSON"),
    ];
    let wanted = [
        Outcome::Applied,
        Outcome::Applied,
        Outcome::Applied,
        Outcome::Parked(Reason::Never),
    ];
    assert_eq!(world.inbox.apply_set(&effect, &set).await.unwrap(), wanted);
    world.inbox.apply_set(&effect, &set).await.unwrap();
    let total = "select cents from customer_totals where customer = 'b'";
    assert_eq!(world.count(total).await, 120);
}
