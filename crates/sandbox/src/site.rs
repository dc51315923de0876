//! A database and a virtual host of a test's own.

use std::sync::Arc;

use tokio_postgres::Client;

use crate::broker_node::{self, binary};
use crate::database;
use crate::error::SandboxError;
use crate::pair::Sandbox;
use crate::process;

/// How the names of sites and templates start. The process id follows, so that what a killed
/// test run left in long-lived servers can be told from what is in use.
const SITE: &str = "site";
const TEMPLATE: &str = "template";

/// A migrated database and an empty virtual host, dropped when this is.
#[derive(Debug)]
pub struct Site {
    /// The name of both.
    pub name: String,
    /// Where the database is; the login is a superuser, processes take their role by an option.
    pub database_url: String,
    /// Where the virtual host is.
    pub amqp_url: String,
    sandbox: Arc<Sandbox>,
}

/// How many messages one queue holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    /// The queue's name.
    pub name: String,
    /// Messages waiting in it.
    pub ready: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Consumers subscribed to it.
    pub consumers: u64,
}

impl Site {
    pub(crate) async fn create(sandbox: &Arc<Sandbox>, name: &str) -> Result<Self, SandboxError> {
        let name = unique(SITE, name);
        let template = sandbox.template().await?;
        let server = sandbox.database("postgres").await?;
        let site = Self {
            database_url: sandbox.database_url(&name),
            amqp_url: sandbox.amqp_url(&name),
            sandbox: Arc::clone(sandbox),
            name,
        };
        let database = async {
            server
                .batch_execute(&format!(
                    "create database \"{}\" template \"{template}\"",
                    site.name
                ))
                .await
                .map_err(SandboxError::database("make a site's database"))
        };
        tokio::try_join!(database, add_vhost(sandbox, &site.name))?;
        Ok(site)
    }

    /// A superuser's session in the site's database.
    ///
    /// # Errors
    /// [`SandboxError::Database`] if it does not answer.
    pub async fn database(&self) -> Result<Client, SandboxError> {
        self.sandbox.database(&self.name).await
    }

    /// The servers the site is in.
    #[must_use]
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// The database's URL through a port that leads there, such as a [`crate::FaultProxy`]'s.
    #[must_use]
    pub fn database_url_through(&self, port: u16) -> String {
        database::url(self.sandbox.state(), port, &self.name)
    }

    /// The virtual host's URL through a port that leads there.
    #[must_use]
    pub fn amqp_url_through(&self, port: u16) -> String {
        broker_node::url(self.sandbox.state(), port, &self.name)
    }

    /// The queues of the virtual host, by name.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the node does not answer.
    pub async fn queues(&self) -> Result<Vec<QueueCount>, SandboxError> {
        let vhost = binary(&self.name);
        let answer = self
            .sandbox
            .evaluate(&format!(
                "[begin \
                   [{{name, {{resource, _, queue, N}}}}, {{_, R}}, {{_, U}}, {{_, C}}] = \
                     rabbit_amqqueue:info(Q, [name, messages_ready, messages_unacknowledged, consumers]), \
                   io_lib:format(\"~w ~w ~w ~ts~n\", [R, U, C, N]) \
                 end || Q <- rabbit_amqqueue:list({vhost})]"
            ))
            .await?;
        let mut queues: Vec<QueueCount> = answer.lines().filter_map(read_count).collect();
        queues.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(queues)
    }

    /// Closes every connection to the virtual host from the broker's side.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the node does not answer.
    pub async fn close_connections(&self) -> Result<(), SandboxError> {
        let vhost = binary(&self.name);
        self.sandbox
            .evaluate(&format!(
                "[rabbit_networking:close_connection(P, \"closed by a test\") \
                  || P <- rabbit_networking:connections(), \
                     catch rabbit_networking:connection_info(P, [vhost]) =:= [{{vhost, {vhost}}}]], \
                 \"\""
            ))
            .await
            .map(drop)
    }

    /// Deletes a queue with all that is in it.
    ///
    /// # Errors
    /// [`SandboxError::Broker`] if the node does not answer or has no such queue.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), SandboxError> {
        let name = format!(
            "rabbit_misc:r({}, queue, {})",
            binary(&self.name),
            binary(queue)
        );
        self.sandbox
            .evaluate(&format!(
                "{{ok, Q}} = rabbit_amqqueue:lookup({name}), \
                 {{ok, _}} = rabbit_amqqueue:delete(Q, false, false, <<\"sandbox\">>), \"\""
            ))
            .await
            .map(drop)
    }

    async fn drop_both(sandbox: &Sandbox, name: &str) -> Result<(), SandboxError> {
        let server = sandbox.database("postgres").await?;
        drop_database(&server, name).await?;
        delete_vhost(sandbox, name).await
    }
}

impl Drop for Site {
    /// On a thread with a runtime of its own: the test's may be ending.
    fn drop(&mut self) {
        let (sandbox, name) = (Arc::clone(&self.sandbox), self.name.clone());
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let limit = std::time::Duration::from_secs(10);
            // A server that the test left dead or paused cannot answer; it ends with the sandbox.
            let cleaned =
                async { tokio::time::timeout(limit, Self::drop_both(&sandbox, &name)).await };
            let _ = runtime.block_on(cleaned);
            Ok::<(), std::io::Error>(())
        });
        let _ = cleaner.join();
    }
}

/// Makes and migrates the database that sites are copied from.
pub(crate) async fn create_template(sandbox: &Sandbox) -> Result<String, SandboxError> {
    let name = unique(TEMPLATE, "site");
    sandbox.create_database(&name).await?;
    let mut client = sandbox.database(&name).await?;
    schema::migrate(&mut client).await?;
    // A database is copied only while nobody is connected to it.
    let server = sandbox.database("postgres").await?;
    drop(client);
    wait_until_unused(&server, &name).await?;
    Ok(name)
}

/// Removes what test runs that were killed have left in long-lived servers.
pub(crate) async fn sweep(sandbox: &Sandbox) -> Result<(), SandboxError> {
    let server = sandbox.database("postgres").await?;
    let rows = server
        .query(
            "select datname::text from pg_database where not datistemplate",
            &[],
        )
        .await
        .map_err(SandboxError::database("list the databases"))?;
    for row in rows {
        let name: String = row.get(0);
        if is_left_over(&name) {
            drop_database(&server, &name).await?;
        }
    }
    let vhosts = sandbox
        .evaluate("lists:join(\"\\n\", rabbit_vhost:list_names())")
        .await?;
    for name in vhosts.lines().filter(|name| is_left_over(name)) {
        delete_vhost(sandbox, name).await?;
    }
    Ok(())
}

async fn wait_until_unused(server: &Client, name: &str) -> Result<(), SandboxError> {
    let sessions = "select count(*) from pg_stat_activity where datname = $1";
    loop {
        let row = server
            .query_one(sessions, &[&name])
            .await
            .map_err(SandboxError::database("look for sessions"))?;
        if row.get::<_, i64>(0) == 0 {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn drop_database(server: &Client, name: &str) -> Result<(), SandboxError> {
    server
        .batch_execute(&format!("drop database if exists \"{name}\" with (force)"))
        .await
        .map_err(SandboxError::database("drop a site's database"))
}

async fn add_vhost(sandbox: &Sandbox, name: &str) -> Result<(), SandboxError> {
    let (vhost, user) = (binary(name), binary(broker_node::USER));
    let all = "<<\".*\">>";
    sandbox
        .evaluate(&format!(
            "ok = rabbit_vhost:add({vhost}, {user}), \
             ok = rabbit_auth_backend_internal:set_permissions({user}, {vhost}, {all}, {all}, {all}, {user}), \
             \"\""
        ))
        .await
        .map(drop)
}

async fn delete_vhost(sandbox: &Sandbox, name: &str) -> Result<(), SandboxError> {
    let (vhost, user) = (binary(name), binary(broker_node::USER));
    sandbox
        .evaluate(&format!("rabbit_vhost:delete({vhost}, {user}), \"\""))
        .await
        .map(drop)
}

/// A name of at most 63 letters, digits and underscores that nobody else uses.
fn unique(kind: &str, name: &str) -> String {
    let name: String = name
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .take(30)
        .collect();
    let word: String = std::iter::repeat_with(fastrand::lowercase)
        .take(6)
        .collect();
    format!("{kind}_{}_{word}_{name}", std::process::id())
}

fn is_left_over(name: &str) -> bool {
    let mut parts = name.split('_');
    matches!(parts.next(), Some(SITE | TEMPLATE))
        && parts
            .next()
            .and_then(|pid| pid.parse().ok())
            .is_some_and(process::is_dead)
}

fn read_count(line: &str) -> Option<QueueCount> {
    let mut fields = line.splitn(4, ' ');
    let mut number = || fields.next()?.parse().ok();
    let (ready, unacked, consumers) = (number()?, number()?, number()?);
    Some(QueueCount {
        name: fields.next()?.to_owned(),
        ready,
        unacked,
        consumers,
    })
}

#[cfg(test)]
mod tests {
    use super::{QueueCount, is_left_over, read_count, unique};

    #[test]
    fn a_name_in_use_is_not_left_over() {
        assert!(!is_left_over(&unique("site", "Any test: name")));
        assert!(
            is_left_over("site_4194304999_abcdef_x") || is_left_over("site_2147483647_abcdef_x")
        );
        assert!(!is_left_over("template1"));
        assert!(!is_left_over("postgres"));
    }

    #[test]
    fn a_queue_name_may_hold_spaces() {
        let expected = QueueCount {
            name: "a b".to_owned(),
            ready: 3,
            unacked: 2,
            consumers: 1,
        };
        assert_eq!(read_count("3 2 1 a b"), Some(expected));
    }
}
