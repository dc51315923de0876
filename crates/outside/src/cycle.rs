//! What a cycle does: settle what is known, claim as much as may go out, send it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use runtime::database::{Database, DatabaseError};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use crate::attempt::attempt;
use crate::circuit::{Circuit, Sent};
use crate::claim::{Claimed, Walk, claim};
use crate::config::Config;
use crate::decide::{Settlement, Tried, decide};
use crate::endpoint::Endpoint;
use crate::measures;
use crate::pace::Pace;
use crate::provider::Outcome;
use crate::settle::{Settled, settle};
use crate::task::Task;

/// The loop's state for one endpoint.
#[derive(Debug)]
pub(crate) struct Cycle {
    endpoint: Endpoint,
    config: Arc<Config>,
    database: Database,
    walk: Walk,
    circuit: Circuit,
    pace: Pace,
    requests: JoinSet<(Tried, Duration)>,
    flights: HashMap<Id, Flight>,
    unsettled: Vec<Settled>,
}

/// A request under way.
#[derive(Debug)]
struct Flight {
    task: Arc<Task>,
    token: Uuid,
    sent: Sent,
}

/// What a cycle came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There was something to do, or there are tenants not yet looked at.
    Some,
    /// Nothing was due.
    Nothing,
}

impl Cycle {
    pub(crate) fn new(endpoint: Endpoint, config: Arc<Config>, database: Database) -> Self {
        let now = Instant::now();
        Self {
            circuit: Circuit::new(config.circuit_limits(), now),
            pace: Pace::new(endpoint.rate_per_second, now),
            endpoint,
            config,
            database,
            walk: Walk::default(),
            requests: JoinSet::new(),
            flights: HashMap::new(),
            unsettled: Vec::new(),
        }
    }

    /// Waits until a request has ended; for ever if none is under way.
    pub(crate) async fn ended(&mut self) {
        match self.requests.join_next_with_id().await {
            Some(ended) => {
                self.note(ended);
                while let Some(ended) = self.requests.try_join_next_with_id() {
                    self.note(ended);
                }
            }
            None => std::future::pending().await,
        }
    }

    /// One cycle. Nothing new is claimed before what is known is written down.
    pub(crate) async fn turn(&mut self) -> Result<Progress, DatabaseError> {
        self.settle().await?;
        let room = self.room();
        if room == 0 {
            return Ok(Progress::Nothing);
        }
        let claimed = claim(
            &self.database,
            &self.config,
            &self.endpoint,
            &mut self.walk,
            room,
        );
        let Claimed { tasks, token, more } = claimed.await?;
        let progress = match tasks.is_empty() && !more {
            true => Progress::Nothing,
            false => Progress::Some,
        };
        for task in tasks {
            self.send(task, token);
        }
        self.show();
        Ok(progress)
    }

    /// Waits for what is under way, then settles it; what is not answered by then is in doubt.
    pub(crate) async fn drain(&mut self, grace: Duration) -> Result<(), DatabaseError> {
        let all = async {
            while !self.requests.is_empty() {
                self.ended().await;
            }
        };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(
                endpoint = %self.endpoint.name,
                requests = self.requests.len(),
                "stopped before these were answered"
            );
            self.requests.shutdown().await;
            for (_, flight) in std::mem::take(&mut self.flights) {
                self.decided(&flight, cut_off("the process was stopped"));
            }
        }
        self.show();
        self.settle().await
    }

    fn room(&mut self) -> usize {
        let now = Instant::now();
        let room = self.endpoint.concurrency.saturating_sub(self.flights.len());
        let room = self.circuit.permits(room, now);
        self.pace.permits(room, now)
    }

    fn send(&mut self, task: Task, token: Uuid) {
        // After a stall the lease may not last for the request: then somebody else may have it.
        let left = self.config.lease.saturating_sub(task.claimed.elapsed());
        if left < self.endpoint.provider.longest() {
            self.unsettled.push(Settled {
                tenant_id: task.tenant_id,
                task_id: task.task_id,
                token,
                settlement: Settlement::Released {
                    in_doubt: task.in_doubt,
                },
            });
            return;
        }
        let task = Arc::new(task);
        let (provider, sending) = (Arc::clone(&self.endpoint.provider), Arc::clone(&task));
        let started = self.requests.spawn(async move {
            let begun = Instant::now();
            let tried = attempt(provider.as_ref(), &sending).await;
            (tried, begun.elapsed())
        });
        self.pace.spend();
        let sent = self.circuit.sent();
        self.flights
            .insert(started.id(), Flight { task, token, sent });
    }

    fn note(&mut self, ended: Result<(Id, (Tried, Duration)), JoinError>) {
        let (id, tried, took) = match ended {
            Ok((id, (tried, took))) => (id, tried, Some(took)),
            Err(error) => (error.id(), cut_off("the provider panicked"), None),
        };
        let Some(flight) = self.flights.remove(&id) else {
            return;
        };
        if let Some(took) = took {
            let endpoint = self.endpoint.name.clone();
            metrics::histogram!(measures::REQUEST_SECONDS, "endpoint" => endpoint).record(took);
        }
        self.decided(&flight, tried);
    }

    fn decided(&mut self, flight: &Flight, tried: Tried) {
        let Flight { task, token, sent } = flight;
        let outcome = measures::label(&tried.outcome);
        let labels = [
            ("endpoint", self.endpoint.name.clone()),
            ("outcome", outcome.to_owned()),
        ];
        metrics::counter!(measures::REQUESTS, &labels).increment(1);
        let now = Instant::now();
        let was_open = self.circuit.is_open();
        self.circuit
            .ended(*sent, &tried.outcome, now, fastrand::f64());
        self.tell_circuit(was_open, &tried.outcome);
        tracing::debug!(
            task.id = %task.task_id, tenant.id = %task.tenant_id, event.id = %task.event_id,
            endpoint = %self.endpoint.name, attempt = task.attempts, outcome, "task tried"
        );
        let settlement = decide(tried, task.attempts, &self.config.policy, fastrand::f64());
        self.unsettled.push(Settled {
            tenant_id: task.tenant_id.clone(),
            task_id: task.task_id,
            token: *token,
            settlement,
        });
    }

    fn tell_circuit(&self, was_open: bool, outcome: &Outcome) {
        let endpoint = &self.endpoint.name;
        match (was_open, self.circuit.is_open()) {
            (false, true) => {
                let outcome = measures::label(outcome);
                tracing::warn!(%endpoint, outcome, "endpoint fails, only probed from now on");
            }
            (true, false) => tracing::info!(%endpoint, "endpoint works again"),
            (true, true) | (false, false) => {}
        }
    }

    async fn settle(&mut self) -> Result<(), DatabaseError> {
        if !self.unsettled.is_empty() {
            settle(&self.database, &self.unsettled).await?;
            self.unsettled.clear();
        }
        Ok(())
    }

    fn show(&self) {
        let endpoint = self.endpoint.name.clone();
        let flights = u32::try_from(self.flights.len()).unwrap_or(u32::MAX);
        metrics::gauge!(measures::IN_FLIGHT, "endpoint" => endpoint.clone()).set(flights);
        let open = f64::from(u8::from(self.circuit.is_open()));
        metrics::gauge!(measures::CIRCUIT_OPEN, "endpoint" => endpoint).set(open);
    }
}

/// A request that was made, and of which nothing will be heard.
fn cut_off(told: &str) -> Tried {
    Tried {
        outcome: Outcome::Unknown {
            told: told.to_owned(),
        },
        in_doubt: true,
    }
}
