//! A claimed batch: leased lanes and their events, given up to be settled.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use event::PoolName;

use crate::key::{LaneKey, LeaseToken};
use crate::pools::Generations;
use crate::row::ClaimedEvent;
use crate::settlement::Settlement;

/// Events of lanes that this process has leased. Dropping it changes nothing: the rows can be
/// claimed again when the lease has run out.
#[derive(Debug)]
#[must_use]
pub struct ClaimedBatch {
    token: LeaseToken,
    lanes: Vec<LaneKey>,
    events: Vec<ClaimedEvent>,
    generations: BTreeMap<PoolName, Generations>,
    /// Of what is to be published one by one, since claims of a lane ended unsettled.
    is_suspect: bool,
    leased_at: Instant,
    /// Aggregates may wait behind a hold, so that publishing has to feed them.
    has_holds: bool,
    gives_back: bool,
}

/// What a batch is made of.
#[derive(Debug)]
pub struct Parts {
    /// What the lanes are leased under.
    pub token: LeaseToken,
    /// The lanes.
    pub lanes: Vec<LaneKey>,
    /// Their events.
    pub events: Vec<ClaimedEvent>,
    /// The generations of their pools' queues.
    pub generations: BTreeMap<PoolName, Generations>,
    /// Whether claims of a lane ended unsettled twice.
    pub is_suspect: bool,
    /// When the lease was asked for, by this process's monotonic clock.
    pub leased_at: Instant,
    /// Whether aggregates of these lanes wait behind a hold.
    pub has_holds: bool,
}

impl ClaimedBatch {
    /// A batch as a store has claimed it. Its events are put in the order of their positions.
    pub fn new(parts: Parts) -> Self {
        let mut events = parts.events;
        events.sort_by_key(|event| event.position);
        Self {
            token: parts.token,
            lanes: parts.lanes,
            events,
            generations: parts.generations,
            is_suspect: parts.is_suspect,
            leased_at: parts.leased_at,
            has_holds: parts.has_holds,
            gives_back: true,
        }
    }

    /// What its lanes are leased under.
    #[must_use]
    pub fn token(&self) -> LeaseToken {
        self.token
    }

    /// The leased lanes.
    #[must_use]
    pub fn lanes(&self) -> &[LaneKey] {
        &self.lanes
    }

    /// Its events by position.
    #[must_use]
    pub fn events(&self) -> &[ClaimedEvent] {
        &self.events
    }

    /// The generations of a pool's queues when it was claimed.
    #[must_use]
    pub fn generations(&self, pool: &PoolName) -> Option<&Generations> {
        self.generations.get(pool)
    }

    /// Whether a process may have died of one of these: they are published one by one.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// When the lease was asked for. It holds from then on at least for the time asked for.
    #[must_use]
    pub fn leased_at(&self) -> Instant {
        self.leased_at
    }

    /// One batch for each event, by position, under the same lease. The lanes go back with the last.
    pub fn one_by_one(self) -> Vec<Self> {
        let last = self.events.len().saturating_sub(1);
        let single = |(index, event)| Self {
            token: self.token,
            lanes: self.lanes.clone(),
            events: vec![event],
            generations: self.generations.clone(),
            is_suspect: self.is_suspect,
            leased_at: self.leased_at,
            has_holds: self.has_holds,
            gives_back: index == last,
        };
        self.events.into_iter().enumerate().map(single).collect()
    }

    /// Says how each event is settled, in the order of [`ClaimedBatch::events`]; one that is left
    /// out is released. Once an event is not published, all later ones of its aggregate are
    /// released, whatever became of them: they must not be published before it.
    pub fn settled_as(self, settlements: Vec<Settlement>) -> Settling {
        let mut given = settlements.into_iter();
        let mut stopped: HashSet<(&str, &(String, String))> = HashSet::new();
        let mut verdicts = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let settlement = given.next().unwrap_or_else(Settlement::untouched);
            let aggregate = (event.key.tenant_id.as_str(), &event.aggregate);
            verdicts.push(if event.is_ordered && stopped.contains(&aggregate) {
                Settlement::untouched()
            } else {
                if event.is_ordered && !settlement.is_published() {
                    stopped.insert(aggregate);
                }
                settlement
            });
        }
        Settling {
            batch: self,
            verdicts,
        }
    }
}

/// A batch on its way to be settled. Settling it twice is harmless.
#[derive(Debug)]
#[must_use]
pub struct Settling {
    batch: ClaimedBatch,
    verdicts: Vec<Settlement>,
}

impl Settling {
    /// Each event with what becomes of it.
    pub fn verdicts(&self) -> impl Iterator<Item = (&ClaimedEvent, &Settlement)> {
        self.batch.events.iter().zip(&self.verdicts)
    }

    /// What the lanes are leased under.
    #[must_use]
    pub fn token(&self) -> LeaseToken {
        self.batch.token
    }

    /// The leased lanes.
    #[must_use]
    pub fn lanes(&self) -> &[LaneKey] {
        &self.batch.lanes
    }

    pub(crate) fn generations(&self) -> &BTreeMap<PoolName, Generations> {
        &self.batch.generations
    }

    pub(crate) fn has_holds(&self) -> bool {
        self.batch.has_holds
    }

    pub(crate) fn gives_back(&self) -> bool {
        self.batch.gives_back
    }
}
