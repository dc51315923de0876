//! What a connection is made of, from the settings and the URL.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::settings::{Problems, SecretUrl, Settings};

/// A silent peer is noticed after about 20 s, long before the system's two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 2;
/// The same for a connection with unacknowledged bytes, where keepalives do not run.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);

/// How a process reaches its database.
#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// The URL.
    pub url: SecretUrl,
    /// Certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The role each connection takes.
    pub role: Option<String>,
    /// What the server lists the connections as.
    pub application_name: String,
    /// Connections in the pool.
    pub pool_size: usize,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long to wait for a free one.
    pub wait_timeout: Duration,
    /// How long one statement may take, by the server's clock.
    pub statement_timeout: Duration,
    /// How long a statement may wait for a lock.
    pub lock_timeout: Duration,
    /// After how long the server ends a transaction that nobody continues.
    pub idle_in_transaction_timeout: Duration,
}

impl DatabaseConfig {
    /// What the group of settings for the database says; none if there is no URL.
    #[must_use]
    pub fn of(settings: &Settings, application_name: &str) -> Option<Self> {
        let role = settings.text("database_role");
        Some(Self {
            url: SecretUrl::of(settings, "database_url")?,
            ca_file: settings.path("database_ca_file"),
            role: (!role.is_empty()).then(|| role.to_owned()),
            application_name: application_name.to_owned(),
            pool_size: settings.size("database_pool_size"),
            connect_timeout: settings.duration("database_connect_timeout"),
            wait_timeout: settings.duration("database_wait_timeout"),
            statement_timeout: settings.duration("database_statement_timeout"),
            lock_timeout: settings.duration("database_lock_timeout"),
            idle_in_transaction_timeout: settings.duration("database_idle_in_transaction_timeout"),
        })
    }

    /// For one URL, everything else as by default.
    #[must_use]
    pub fn for_url(url: &str, application_name: &str) -> Self {
        Self {
            url: SecretUrl::Given(SecretString::from(url)),
            ca_file: None,
            role: None,
            application_name: application_name.to_owned(),
            pool_size: 8,
            connect_timeout: Duration::from_secs(5),
            wait_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            idle_in_transaction_timeout: Duration::from_secs(30),
        }
    }

    /// The client's configuration with the URL as it is now.
    pub(super) fn client(&self) -> Result<Config, String> {
        let mut config = parse(&self.url.read()?)?;
        config
            .application_name(&self.application_name)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(self.connect_timeout);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_USER_TIMEOUT);
        }
        let options = self.options(config.get_options());
        config.options(options);
        Ok(config)
    }

    /// Set by the start-up packet, they hold for whatever the connection does and cost no round
    /// trip. Those of the URL come last and win.
    fn options(&self, of_url: Option<&str>) -> String {
        let mut options = vec![
            format!(
                "-c statement_timeout={}",
                self.statement_timeout.as_millis()
            ),
            format!("-c lock_timeout={}", self.lock_timeout.as_millis()),
            format!(
                "-c idle_in_transaction_session_timeout={}",
                self.idle_in_transaction_timeout.as_millis()
            ),
        ];
        if let Some(role) = &self.role {
            // A space would end the option.
            let escaped = role.replace('\\', "\\\\").replace(' ', "\\ ");
            options.push(format!("-c role={escaped}"));
        }
        options.extend(of_url.map(str::to_owned));
        options.join(" ")
    }
}

/// What the URL looks like, for messages.
const FORM: &str = "postgres://user:password@host:port/database";

/// A check for a process's table: there must be a URL, and it must be one.
pub fn check(settings: &Settings, problems: &mut Problems) {
    SecretUrl::check(settings, "database_url", problems, |url| {
        parse(url).map(drop)
    });
    if let Some(path) = settings.path("database_ca_file") {
        problems.note(
            super::tls::certificates(&path)
                .map(drop)
                .map_err(|problem| format!("{}: {problem}", settings.origin("database_ca_file"))),
        );
    }
}

fn parse(url: &SecretString) -> Result<Config, String> {
    let text = url.expose_secret();
    if !text.contains("://") && !text.contains('=') {
        return Err(format!("not a PostgreSQL URL: it must look like {FORM}"));
    }
    let text = with_known_sslmode(text);
    let config: Config = text.parse().map_err(|error| not_a_url(&error))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("not a PostgreSQL URL: it names no host".to_owned());
    }
    Ok(config)
}

/// Says which option has a bad value; anything else the client says may quote the password.
fn not_a_url(error: &tokio_postgres::Error) -> String {
    let told = error.source().map(ToString::to_string);
    let told = told.filter(|told| told.starts_with("invalid value for option"));
    let told = told.unwrap_or_else(|| error.to_string());
    format!("not a PostgreSQL URL: {told}; it must look like {FORM}")
}

/// The client knows disable, prefer and require. With rustls `require` verifies chain and name,
/// which is what `verify-full` asks for and more than `verify-ca` does.
fn with_known_sslmode(text: &str) -> String {
    let (before, options) = match text.contains("://") {
        true => text.split_once('?').unwrap_or((text, "")),
        false => ("", text),
    };
    let options = options
        .replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require")
        .replace("sslmode=allow", "sslmode=prefer");
    match (before.is_empty(), options.is_empty()) {
        (true, _) => options,
        (false, true) => before.to_owned(),
        (false, false) => format!("{before}?{options}"),
    }
}

/// Whether the URL asks for TLS. With `prefer`, the default, it is left out: a server's
/// self-made certificate could not be verified, and unverified it protects against nobody.
pub(super) fn wants_tls(config: &Config) -> bool {
    config.get_ssl_mode() == SslMode::Require
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Result<Config, String> {
        DatabaseConfig::for_url(url, "test").client()
    }

    #[test]
    fn every_sslmode_of_libpq_is_understood() {
        for (mode, tls) in [
            ("disable", false),
            ("allow", false),
            ("prefer", false),
            ("require", true),
            ("verify-ca", true),
            ("verify-full", true),
        ] {
            for url in [
                format!("postgres://u:sslmode=verify-full@h/d?sslmode={mode}"),
                format!("host=h user=u password=p sslmode={mode}"),
            ] {
                assert_eq!(client(&url).map(|c| wants_tls(&c)), Ok(tls), "{url}");
            }
        }
        let config = client("postgres://u:p@h/d").expect("a URL");
        assert_eq!(config.get_password(), Some(&b"p"[..]));
    }

    #[test]
    fn a_bad_url_is_refused_without_showing_its_password() {
        for url in [
            "postgres://user:hunter2@host:port/db",
            "postgres://user:hunter2@/db?nonsense=1",
            "hunter2",
            "",
        ] {
            let problem = client(url).expect_err(url);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn limits_and_role_go_with_the_start_up_packet() {
        let mut config = DatabaseConfig::for_url("postgres://h/d?options=-c%20x.y%3D1", "test");
        config.role = Some("ticketflow_relay".to_owned());
        let client = config.client().expect("a URL");
        let options = client.get_options().unwrap_or_default();
        for wanted in [
            "statement_timeout=30000",
            "role=ticketflow_relay",
            "-c x.y=1",
        ] {
            assert!(options.contains(wanted), "{options}");
        }
    }
}
