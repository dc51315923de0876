//! A store in memory that keeps what it is told, for tests of a cycle without servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use broker::ScriptedBroker;
use event::{Event, NewEvent, PoolName};
use outbox::{
    ClaimRequest, Claimed, ClaimedBatch, ClaimedEvent, EventKey, Generations, LaneKey, LeaseToken,
    Parts, Resume, Settled, Settlement, Settling,
};
use relay::{Cycle, Leases, Policy, Sender, Store, StoreError, Verify};

/// What the store was told, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    MarkPublished {
        position: i64,
    },
    /// With whether it counts as a refusal of the event.
    Release {
        position: i64,
        counts: bool,
    },
    Park {
        position: i64,
    },
    WriteTry {
        position: i64,
    },
}

#[derive(Default)]
pub(crate) struct MemoryStore {
    events: Mutex<Vec<ClaimedEvent>>,
    calls: Mutex<Vec<Call>>,
    /// How many tries are written for each event before the first claim.
    pub(crate) tries_before: i16,
    pub(crate) is_suspect: bool,
}

impl MemoryStore {
    pub(crate) fn with<const N: usize>(events: [ClaimedEvent; N]) -> Arc<Self> {
        Arc::new(Self {
            events: Mutex::new(events.into()),
            ..Self::default()
        })
    }

    pub(crate) fn suspect<const N: usize>(
        events: [ClaimedEvent; N],
        tries_before: i16,
    ) -> Arc<Self> {
        Arc::new(Self {
            events: Mutex::new(events.into()),
            is_suspect: true,
            tries_before,
            ..Self::default()
        })
    }

    /// All its events as a claimed batch.
    pub(crate) fn batch(&self) -> ClaimedBatch {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        ClaimedBatch::new(Parts {
            token: LeaseToken::fresh(),
            lanes: events.iter().map(|event| event.lane.clone()).collect(),
            events,
            generations: BTreeMap::from([(pool(), Generations::new())]),
            is_suspect: self.is_suspect,
            leased_at: Instant::now(),
            has_holds: false,
        })
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Store for MemoryStore {
    async fn claim(&self, _: &ClaimRequest, resume: &Resume) -> Result<Claimed, StoreError> {
        Ok(Claimed {
            batch: Some(self.batch()).filter(|batch| !batch.events().is_empty()),
            resume: resume.clone(),
        })
    }

    async fn claim_one(
        &self,
        _: &ClaimRequest,
        _: (&EventKey, &LaneKey),
    ) -> Result<Option<ClaimedBatch>, StoreError> {
        Ok(None)
    }

    async fn write_try(&self, event: &EventKey, _: LeaseToken) -> Result<Option<i16>, StoreError> {
        let position = event.source.parse().expect("the source is the position");
        self.note(Call::WriteTry { position });
        Ok(Some(self.tries_before + 1))
    }

    async fn settle(&self, settling: &Settling) -> Result<Settled, StoreError> {
        let mut settled = Settled::default();
        for (event, settlement) in settling.verdicts() {
            let position = event.position;
            self.note(match settlement {
                Settlement::Published => {
                    settled.published += 1;
                    Call::MarkPublished { position }
                }
                Settlement::Released { .. } => {
                    settled.released += 1;
                    Call::Release {
                        position,
                        counts: false,
                    }
                }
                Settlement::Retried { .. } => {
                    settled.retried += 1;
                    Call::Release {
                        position,
                        counts: true,
                    }
                }
                Settlement::Parked { .. } => {
                    settled.parked += 1;
                    Call::Park { position }
                }
            });
        }
        Ok(settled)
    }

    async fn let_go_due(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// Whether the queues of every pool are there.
pub(crate) struct Verified(pub(crate) bool);

impl Verify for Verified {
    async fn is_verified(&self, _: &PoolName, _: &Generations) -> bool {
        self.0
    }
}

pub(crate) fn cycle(
    store: &Arc<MemoryStore>,
    broker: ScriptedBroker,
) -> Cycle<MemoryStore, ScriptedBroker, Verified> {
    Cycle {
        store: store.clone(),
        sender: Sender::new(broker, Duration::from_secs(5)),
        verify: Verified(true),
        circuits: Arc::default(),
        leases: Leases::new(Duration::from_secs(60)),
        policy: Policy {
            backoff_first: Duration::from_secs(1),
            backoff_most: Duration::from_secs(60),
            park_after: Duration::from_secs(86_400),
        },
        stop: Default::default(),
    }
}

fn pool() -> PoolName {
    PoolName::parse("shared").expect("valid")
}

/// An event as claimed; its source is its position.
pub(crate) fn event(aggregate: &str, position: i64) -> ClaimedEvent {
    let source = position.to_string();
    let new = NewEvent::json("acme", ("ticket", aggregate), "ticket.updated", "{}").expect("valid");
    let content = Event {
        identity: event::Identity {
            event_id: uuid::Uuid::now_v7(),
            tenant_id: new.tenant_id,
            source: event::Source::parse(&source).expect("valid"),
        },
        aggregate: new.aggregate,
        version: Some(position),
        previous_version: Some(position - 1),
        event_type: new.event_type,
        content_type: new.content_type,
        payload: new.payload,
        headers: new.headers,
        trace_context: new.trace_context,
        occurred_at: Default::default(),
    };
    let tenant_id = "acme".to_owned();
    ClaimedEvent {
        key: EventKey {
            event_id: content.identity.event_id,
            tenant_id: tenant_id.clone(),
            source,
        },
        lane: LaneKey {
            tenant_id,
            lane: content.lane().number(),
        },
        aggregate: ("ticket".to_owned(), aggregate.to_owned()),
        position,
        is_ordered: true,
        pool: pool(),
        attempts: 0,
        refused_for: None,
        age: Duration::ZERO,
        content: Ok(content),
    }
}
