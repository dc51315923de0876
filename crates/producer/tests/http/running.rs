//! A producer on a database of its own, and a client of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use producer::{Addresses, Config, PROCESS, ProducerError};
use reqwest::{Client, Method, RequestBuilder, Response};
use runtime::settings::{Invocation, Sources};
use sandbox::{Sandbox, Site};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The key of tenant `acme` in every test.
pub(crate) const ACME: &str = "acme-key";
/// The key of tenant `globex`.
pub(crate) const GLOBEX: &str = "globex-key";

/// A producer that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) site: Site,
    pub(crate) at: Addresses,
    pub(crate) client: Client,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: Option<JoinHandle<Result<(), ProducerError>>>,
    pub(crate) database: tokio_postgres::Client,
    _sandbox: Arc<Sandbox>,
}

impl Running {
    /// With the settings' defaults.
    pub(crate) async fn start(name: &str) -> Self {
        Self::start_with(name, &[], None).await
    }

    /// With some flags, and reaching the database through another port.
    pub(crate) async fn start_with(name: &str, flags: &[&str], port: Option<u16>) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let sandbox = sandbox::shared().await.expect("the sandbox starts");
        let site = sandbox.site(name).await.expect("a site");
        let database = site.database().await.expect("its database");
        add_tenant(&database, "acme", ACME).await;
        add_tenant(&database, "globex", GLOBEX).await;
        let url = port.map_or_else(
            || site.database_url.clone(),
            |port| site.database_url_through(port),
        );
        let (at, shutdown, task) = spawn(&url, flags).await;
        Self {
            site,
            at,
            client: Client::new(),
            shutdown,
            task: Some(task),
            database,
            _sandbox: sandbox,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str, key: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.at.http);
        self.client.request(method, url).bearer_auth(key)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path, ACME)
    }

    pub(crate) fn post(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.request(Method::POST, "/v1/tickets", ACME)
            .header("content-type", "application/json")
            .body(body)
    }

    pub(crate) fn patch(&self, id: &str, etag: &str, body: &'static str) -> RequestBuilder {
        self.request(Method::PATCH, &format!("/v1/tickets/{id}"), ACME)
            .header("content-type", "application/json")
            .header("if-match", etag)
            .body(body)
    }

    /// A ticket of acme's with this subject.
    pub(crate) async fn ticket(&self, subject: &str) -> Value {
        let body = serde_json::json!({ "subject": subject }).to_string();
        let answer = self.post(body).send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        answer.json().await.expect("JSON")
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        let sql = format!("select count(*) from ticketflow.{table}");
        self.database
            .query_one(&sql, &[])
            .await
            .expect(table)
            .get(0)
    }

    /// Waits until so many sessions of the producer wait for a lock.
    pub(crate) async fn waiting_for_locks(&self, sessions: i64) {
        // Not from pg_stat_activity, which stands still within a transaction.
        let waiting = "select count(*) from pg_locks as l \
            join pg_database as d on d.oid = l.database \
            where not l.granted and d.datname = current_database()";
        let since = Instant::now();
        while self
            .database
            .query_one(waiting, &[])
            .await
            .expect("sessions")
            .get::<_, i64>(0)
            < sessions
        {
            assert!(since.elapsed() < Duration::from_secs(30), "nobody waits");
        }
    }

    /// Nothing was written at all.
    pub(crate) async fn nothing_written(&self) {
        for table in [
            "tickets",
            "outbox_events",
            "outbox_aggregates",
            "idempotency_keys",
        ] {
            assert_eq!(self.count(table).await, 0, "{table}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Starts a producer and waits until it serves.
pub(crate) async fn spawn(
    url: &str,
    flags: &[&str],
) -> (
    Addresses,
    CancellationToken,
    JoinHandle<Result<(), ProducerError>>,
) {
    let mut arguments = vec!["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    arguments.extend(flags);
    let sources = Sources::of(&arguments, &[("DATABASE_URL", url)]);
    let Ok(Invocation::Run(settings)) = PROCESS.read(&sources) else {
        panic!("settings: {:?}", PROCESS.read(&sources));
    };
    let config = Config::from_settings(&settings).expect("a configuration");
    let shutdown = CancellationToken::new();
    let (sender, receiver) = oneshot::channel();
    let task = tokio::spawn(producer::run_and_tell(config, shutdown.clone(), sender));
    let at = receiver.await.expect("it serves");
    (at, shutdown, task)
}

pub(crate) async fn add_tenant(database: &tokio_postgres::Client, tenant: &str, key: &str) {
    database
        .execute(
            "insert into ticketflow.tenants (tenant_id) values ($1::text)",
            &[&tenant],
        )
        .await
        .expect("a tenant");
    database
        .execute(
            "insert into ticketflow.tenant_keys (tenant_id, key_hash) \
             values ($1::text, sha256(convert_to($2, 'UTF8')))",
            &[&tenant, &key],
        )
        .await
        .expect("a key");
}

/// The problem an answer is, checked for what every problem has.
pub(crate) async fn problem(answer: Response, status: u16, kind: &str) -> Value {
    let headers = answer.headers().clone();
    let got = answer.status().as_u16();
    let text = answer.text().await.expect("a body");
    assert_eq!(got, status, "{text}");
    assert_eq!(
        headers["content-type"], "application/problem+json",
        "{text}"
    );
    let body: Value = serde_json::from_str(&text).expect(&text);
    assert_eq!(
        body["type"],
        format!("urn:ticketflow:problem:{kind}"),
        "{text}"
    );
    assert_eq!(body["status"], status, "{text}");
    assert_eq!(
        body["request_id"],
        headers["x-request-id"].to_str().unwrap(),
        "{text}"
    );
    body
}
