//! The loop's configuration: from the settings, and a file of endpoints for tenants of their own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use event::{PoolName, TenantId};
use runtime::{Problems, Settings};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

use crate::circuit::Limits;
use crate::decide::Policy;
use crate::endpoint::{Endpoint, Tenants};
use crate::provider::{Local, Secrets, Target, Webhook};

/// How outside tasks are sent.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where they go. No two of them may have a tenant in common; none at all sends nothing.
    pub endpoints: Vec<Endpoint>,
    /// Only tasks of tenants in these pools; none is all.
    pub pools: Vec<String>,
    /// What the lease of a task is signed with, for people.
    pub leased_by: String,
    /// When a task is tried again.
    pub policy: Policy,
    /// How long a claimed task is left alone; longer than any request may take.
    pub lease: Duration,
    /// So many failures in a row open an endpoint's circuit.
    pub circuit_failures: u32,
    /// The longest wait between two probes of an open circuit.
    pub circuit_wait_max: Duration,
    /// The longest wait before looking again when nothing is due.
    pub idle_poll: Duration,
    /// How long a clean stop may take.
    pub grace: Duration,
}

/// The file of endpoints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    endpoint: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    tenants: Vec<String>,
    url: String,
    #[serde(default)]
    status_url: String,
    #[serde(deserialize_with = "hidden")]
    secrets: Vec<SecretString>,
    #[serde(default)]
    rate_per_second: u32,
}

/// From here on nothing can print them.
fn hidden<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SecretString>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    Ok(texts.into_iter().map(SecretString::from).collect())
}

impl Config {
    /// What the settings say, for the tenants of `pools` (none is all).
    ///
    /// # Errors
    /// [`Problems`] with everything that is wrong.
    pub fn of(settings: &Settings, pools: &[PoolName], leased_by: &str) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let endpoints = endpoints(settings, &mut problems);
        let number = |name| i64::try_from(settings.number(name)).unwrap_or(i64::MAX);
        let config = Self {
            endpoints,
            pools: pools.iter().map(|pool| pool.as_str().to_owned()).collect(),
            leased_by: leased_by.to_owned(),
            policy: Policy {
                base: settings.duration("outside_backoff"),
                cap: settings.duration("outside_backoff_max"),
                max_attempts: number("outside_max_attempts"),
                retry_after_max: settings.duration("outside_retry_after_max"),
            },
            lease: settings.duration("outside_lease"),
            circuit_failures: u32::try_from(settings.number("outside_circuit_failures"))
                .unwrap_or(u32::MAX),
            circuit_wait_max: settings.duration("outside_circuit_wait_max"),
            idle_poll: settings.duration("outside_idle_poll"),
            grace: settings.duration("grace"),
        };
        match problems.is_empty() {
            true => Ok(config),
            false => Err(problems),
        }
    }

    pub(crate) fn circuit_limits(&self) -> Limits {
        Limits {
            failures: self.circuit_failures,
            wait_max: self.circuit_wait_max,
            retry_after_max: self.policy.retry_after_max,
        }
    }
}

fn endpoints(settings: &Settings, problems: &mut Problems) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    let mut named = HashSet::new();
    for entry in entries(settings, problems) {
        let shown = format!(
            "{}, endpoint {}",
            settings.origin("webhook_endpoints_file"),
            entry.name
        );
        if endpoints
            .iter()
            .any(|known: &Endpoint| known.name == entry.name)
        {
            problems.push(format!("{shown}: another one has this name"));
        }
        for tenant in &entry.tenants {
            problems.note(
                TenantId::parse(tenant)
                    .map(drop)
                    .map_err(|e| format!("{shown}: {e}")),
            );
            if !named.insert(tenant.clone()) {
                problems.push(format!("{shown}: tenant {tenant} has an endpoint already"));
            }
        }
        match of_entry(settings, entry) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(problem) => problems.push(format!("{shown}: {problem}")),
        }
    }
    let others = Tenants::AllBut(named.into_iter().collect());
    match of_others(settings, others) {
        Ok(endpoint) => endpoints.extend(endpoint),
        Err(problem) => problems.push(format!("{}: {problem}", settings.origin("outside"))),
    }
    endpoints
}

fn entries(settings: &Settings, problems: &mut Problems) -> Vec<Entry> {
    let Some(path) = settings.path("webhook_endpoints_file") else {
        return Vec::new();
    };
    let shown = || {
        format!(
            "{} {}",
            settings.origin("webhook_endpoints_file"),
            path.display()
        )
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(format!("{}: {error}", shown()));
            return Vec::new();
        }
    };
    match toml::from_str::<File>(&text) {
        Ok(file) => file.endpoint,
        // Its message alone: the whole error quotes the line, which may hold a secret.
        Err(error) => {
            problems.push(format!("{}: {}", shown(), error.message()));
            Vec::new()
        }
    }
}

fn of_entry(settings: &Settings, entry: Entry) -> Result<Endpoint, String> {
    let secrets = Secrets::parse(entry.secrets.iter().map(|secret| secret.expose_secret()))?;
    webhook(
        settings,
        (entry.name, Tenants::Only(entry.tenants)),
        (entry.url, entry.status_url),
        (secrets, entry.rate_per_second),
    )
}

fn of_others(settings: &Settings, tenants: Tenants) -> Result<Option<Endpoint>, String> {
    match settings.text("outside") {
        "off" => Ok(None),
        "local" => Ok(Some(Endpoint {
            name: "local".to_owned(),
            tenants,
            provider: Arc::new(Local),
            concurrency: LOCAL_CONCURRENCY,
            rate_per_second: 0,
        })),
        _ => {
            let secret = settings.secret("webhook_secret");
            let secret = secret.ok_or("webhook needs webhook_secret")?;
            let secrets = Secrets::parse(secret.expose_secret().split_whitespace())?;
            let text = |name| settings.text(name).to_owned();
            let rate = u32::try_from(settings.number("webhook_rate")).unwrap_or(u32::MAX);
            webhook(
                settings,
                ("webhook".to_owned(), tenants),
                (text("webhook_url"), text("webhook_status_url")),
                (secrets, rate),
            )
            .map(Some)
        }
    }
}

/// A local task costs nothing but its claim and settle, so it is the size of their batch.
const LOCAL_CONCURRENCY: usize = 256;

fn webhook(
    settings: &Settings,
    (name, tenants): (String, Tenants),
    (url, status_url): (String, String),
    (secrets, rate_per_second): (Secrets, u32),
) -> Result<Endpoint, String> {
    let target = Target {
        url,
        status_url,
        secrets,
        connect_timeout: settings.duration("webhook_connect_timeout"),
        timeout: settings.duration("webhook_timeout"),
        allow_private: settings.flag("webhook_allow_private"),
    };
    Ok(Endpoint {
        name,
        tenants,
        provider: Arc::new(Webhook::new(target).map_err(|error| error.to_string())?),
        concurrency: settings.size("webhook_concurrency"),
        rate_per_second,
    })
}
