//! A publisher that answers from a script and keeps what it was given.

use std::sync::{Arc, Mutex, PoisonError};

use event::Message;
use tokio::time::Instant;

use crate::error::BrokerError;
use crate::outcome::{Doubt, PublishOutcome, Refusal};
use crate::publish::{Publish, Publishers, Route, Wave};

type Script = dyn FnMut(&Message) -> PublishOutcome + Send;

/// A wave as it was given.
pub type SentWave = (Route, Vec<Message>);

/// Stands in for the broker: every message's outcome is what the script says.
#[derive(Clone)]
pub struct ScriptedBroker {
    script: Arc<Mutex<Box<Script>>>,
    waves: Arc<Mutex<Vec<SentWave>>>,
}

/// A publisher of a [`ScriptedBroker`].
#[derive(Clone)]
pub struct ScriptedPublisher(ScriptedBroker);

impl ScriptedBroker {
    /// Answers each message in turn with what the script returns.
    pub fn new(script: impl FnMut(&Message) -> PublishOutcome + Send + 'static) -> Self {
        Self {
            script: Arc::new(Mutex::new(Box::new(script))),
            waves: Arc::default(),
        }
    }

    /// Confirms everything.
    #[must_use]
    pub fn confirming() -> Self {
        Self::new(|_| PublishOutcome::Confirmed)
    }

    /// The waves it was given so far.
    #[must_use]
    pub fn waves(&self) -> Vec<SentWave> {
        self.waves
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Publish for ScriptedPublisher {
    async fn publish_wave(self, route: Route, messages: &[Message], _: Instant) -> Wave<Self> {
        let wave = (route, messages.to_vec());
        self.0
            .waves
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wave);
        let outcomes: Vec<_> = {
            let mut script = self.0.script.lock().unwrap_or_else(PoisonError::into_inner);
            messages.iter().map(&mut *script).collect()
        };
        let usable = !outcomes.iter().any(spends);
        Wave {
            outcomes,
            publisher: usable.then_some(self),
        }
    }
}

impl Publishers for ScriptedBroker {
    type Publisher = ScriptedPublisher;

    async fn publisher(&self) -> Result<ScriptedPublisher, BrokerError> {
        Ok(ScriptedPublisher(self.clone()))
    }

    async fn lone_publisher(&self) -> Result<ScriptedPublisher, BrokerError> {
        Ok(ScriptedPublisher(self.clone()))
    }
}

/// Whether a real channel would be of no more use after this outcome.
fn spends(outcome: &PublishOutcome) -> bool {
    match outcome {
        PublishOutcome::Confirmed
        | PublishOutcome::Unroutable { .. }
        | PublishOutcome::Refused(Refusal::Nack | Refusal::Invalid { .. })
        | PublishOutcome::Unknown(Doubt::NotSent { .. }) => false,
        PublishOutcome::Refused(Refusal::Closed(_))
        | PublishOutcome::Unknown(
            Doubt::LinkLost { .. }
            | Doubt::Closed(_)
            | Doubt::Blocked { .. }
            | Doubt::TimedOut
            | Doubt::NotConfirming,
        ) => true,
    }
}
