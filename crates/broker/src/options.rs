//! How to reach the broker.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

/// How long to wait between attempts to connect. Waits are jittered: between half and all of it.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// After the first failure; doubled after each further one.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// The wait when the broker does not let us in: a person has to act first.
    pub denied: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(2),
            denied: Duration::from_secs(15),
        }
    }
}

impl Retry {
    /// The wait after the given number of failures in a row.
    pub(crate) fn wait(&self, failures: u32, denied: bool) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << failures.saturating_sub(1).min(16));
        let whole = if denied {
            self.denied
        } else {
            doubled.min(self.most)
        };
        whole.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

/// Where the broker is and how long to wait for it.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// `amqp://` or `amqps://`, see [`crate::InvalidAddress`] for what is refused.
    pub url: SecretString,
    /// A file with the URL in its first line, read again at each attempt, so that the password can
    /// be rotated. `url` is then only what it held at the start.
    pub url_file: Option<PathBuf>,
    /// A PEM file with the certificates to trust for `amqps`; the system's otherwise.
    pub ca_file: Option<PathBuf>,
    /// The name shown in the broker's list of connections.
    pub name: String,
    /// For all of TCP, TLS and the AMQP handshake.
    pub connect_timeout: Duration,
    /// For each call on a connection that is up.
    pub call_timeout: Duration,
    /// Between attempts.
    pub retry: Retry,
}

impl ConnectOptions {
    /// The default waits: 10 s to connect, 10 s a call.
    #[must_use]
    pub fn new(url: impl Into<SecretString>, name: &str) -> Self {
        Self {
            url: url.into(),
            url_file: None,
            ca_file: None,
            name: name.to_owned(),
            connect_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            retry: Retry::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_their_bound_and_never_overflow() {
        let retry = Retry::default();
        let bounds = [
            (1, 100),
            (2, 200),
            (3, 400),
            (6, 2000),
            (7, 2000),
            (u32::MAX, 2000),
        ];
        for (failures, most) in bounds {
            let wait = retry.wait(failures, false);
            let most = Duration::from_millis(most);
            assert!(wait >= most / 2 && wait <= most, "{failures}: {wait:?}");
        }
        assert!(retry.wait(1, true) >= retry.denied / 2);
    }
}
