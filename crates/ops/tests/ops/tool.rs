//! The binary, run as a person would, on a site of the test's own.

use std::process::Stdio;
use std::time::Duration;

use sandbox::Site;
use serde_json::Value;
use tokio::process::Command;
use tokio_postgres::Client;
use uuid::Uuid;

/// A site and the binary on it.
pub(crate) struct Tool {
    pub(crate) site: Site,
    pub(crate) client: Client,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Tool {
    pub(crate) async fn on(name: &str) -> Self {
        let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
        let client = site.database().await.unwrap();
        Self { site, client }
    }

    /// Runs a command, whatever comes of it.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        run_with(arguments, &self.environment()).await
    }

    /// Runs a command that must succeed, and gives its JSON.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let ran = self.run(&arguments).await;
        assert_eq!(ran.status, 0, "{arguments:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    /// Runs a command that must fail with this status, and gives what it says.
    pub(crate) async fn refused(&self, status: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert_eq!(ran.status, status, "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        ran.stderr
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("DATABASE_URL", self.site.database_url.clone()),
            ("AMQP_URL", self.site.amqp_url.clone()),
            ("TICKETFLOW_OPS_ACTOR", "tester".to_owned()),
        ]
    }

    /// Records an event of an aggregate and answers its id.
    pub(crate) async fn record(&self, tenant: &str, aggregate: &str) -> Uuid {
        let text = "select ticketflow.record_event($1, 'ticket', $2, 'ticket.updated', '{}'::text)";
        let row = self.client.query_one(text, &[&tenant, &aggregate]).await;
        row.unwrap().get(0)
    }

    /// One number that a statement gives.
    pub(crate) async fn number(&self, text: &str) -> i64 {
        self.client.query_one(text, &[]).await.unwrap().get(0)
    }

    /// What was noted of an action: target, reason, result and tenant of each.
    pub(crate) async fn actions(&self, name: &str) -> Vec<(Value, String, Value)> {
        let text = "select target, reason, result, actor from ticketflow.operator_actions \
                    where action = $1 order by action_id";
        let rows = self.client.query(text, &[&name]).await.unwrap();
        let actions = rows.iter().map(|row| {
            assert_eq!(row.get::<_, String>(3), "tester");
            (row.get(0), row.get(1), row.get(2))
        });
        actions.collect()
    }
}

/// Runs the binary in this environment and no other.
pub(crate) async fn run_with(arguments: &[&str], environment: &[(&str, String)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ticketflow"));
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(120), command.output());
    let output = output.await.expect("it ends").unwrap();
    Ran {
        status: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
