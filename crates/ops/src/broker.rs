//! The link to RabbitMQ, for the commands that ask it.

use std::time::Duration;

use broker::{Broker, ConnectOptions, Look};
use runtime::settings::SecretUrl;
use secrecy::ExposeSecret as _;

use crate::cli::Global;
use crate::failure::Failure;

const CONNECT: Duration = Duration::from_secs(10);

/// A connection for the time of a command.
pub(crate) struct Link {
    pub(crate) broker: Broker,
}

impl Link {
    pub(crate) async fn open(global: &Global) -> Result<Self, Failure> {
        let url = match (&global.amqp_url_file, &global.amqp_url) {
            (Some(file), _) => SecretUrl::File(file.clone()),
            (None, Some(url)) => SecretUrl::Given(url.clone()),
            (None, None) => {
                let told = "no broker: set AMQP_URL, or give --amqp-url";
                return Err(Failure::Refused(told.to_owned()));
            }
        };
        let url = url.read().map_err(Failure::Refused)?;
        // Both clients look for the program's provider; it may only be set once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = ConnectOptions::new(url.expose_secret().to_owned(), "ticketflow");
        options.ca_file.clone_from(&global.amqp_ca_file);
        let broker = Broker::start(options).map_err(|error| Failure::Refused(error.to_string()))?;
        broker.connected(CONNECT).await.map_err(away)?;
        Ok(Self { broker })
    }

    /// How many consumers a queue has; none if it is not there.
    pub(crate) async fn consumers(&self, queue: &str) -> Result<u32, Failure> {
        match self.broker.look_at(queue).await.map_err(away)? {
            Look::Present { consumers, .. } => Ok(consumers),
            Look::Missing => Ok(0),
        }
    }

    pub(crate) async fn close(self) {
        self.broker.close().await;
    }
}

/// What the broker said, or that it did not.
pub(crate) fn away(error: broker::BrokerError) -> Failure {
    Failure::Away(format!("RabbitMQ: {error}"))
}
