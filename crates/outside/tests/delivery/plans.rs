//! The loop's statements stay on the index of what is to be sent, however much was sent before.

use crate::world::World;

const DUE: &str = "business_tasks_due";
const SETTLED: &str = "('{acme}', array[gen_random_uuid()], array[gen_random_uuid()],
    '{delivered}', '{0}', '{null}', '{null}', '{0}')";

async fn plan(world: &World, statement: &str, arguments: &str) -> String {
    let prepare = format!("prepare looked_at as {statement}");
    world.execute(&prepare).await;
    let explain = format!("explain execute looked_at {arguments}");
    let rows = world.client.query(&explain, &[]).await.unwrap();
    world.execute("deallocate looked_at").await;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

#[tokio::test]
async fn a_million_delivered_tasks_are_never_looked_at() {
    let world = World::new("plans").await;
    world.tasks("acme", 2_000).await;
    world.tasks("globex", 2_000).await;
    // Whatever the statistics say: none yet, all waiting, or nearly all delivered.
    for change in [
        "set plan_cache_mode = force_generic_plan",
        "analyze ticketflow.business_tasks",
        "update ticketflow.business_tasks set status = 'delivered', delivered_at = now()
         where tenant_id = 'acme'",
        "analyze ticketflow.business_tasks",
    ] {
        world.execute(change).await;
        let walk = plan(&world, include_str!("../../src/sql/walk.sql"), "('', 64)").await;
        assert_eq!(walk.matches(DUE).count(), 2, "{change}: {walk}");
        let values = "('{acme,globex}', '{}', 16, gen_random_uuid(), 'x', 90000, true)";
        let claim = plan(&world, include_str!("../../src/sql/claim.sql"), values).await;
        assert_eq!(claim.matches(DUE).count(), 1, "{change}: {claim}");
        let settle = plan(&world, include_str!("../../src/sql/settle.sql"), SETTLED).await;
        assert_eq!(settle.matches(DUE).count(), 0, "{change}: {settle}");
        for plan in [walk, claim, settle] {
            assert!(
                !plan.contains("Seq Scan on business_tasks"),
                "{change}: {plan}"
            );
        }
    }
}
