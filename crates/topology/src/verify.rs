//! Looking after the queues of a pool: one look, and whatever it shows to be needed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use broker::{Broker, Look};
use event::{EffectName, PoolName};
use runtime::database::Database;

use crate::error::TopologyError;
use crate::generation::{self, Step};
use crate::pools::{self, QueueRow};
use crate::refill::{Refill, Wanted};
use crate::statement;
use crate::verified::Standing;

/// Looks after queues. One for a process, whoever uses it.
#[derive(Debug)]
pub struct Topology {
    database: Database,
    broker: Broker,
    /// Refills that this process has begun: how far each is.
    begun: Mutex<BTreeMap<(PoolName, EffectName), Begun>>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    generation: i64,
    after: i64,
}

/// A queue as it is when it has just been made.
const EMPTY: Look = Look::Present {
    messages: 0,
    consumers: 0,
};

/// What was found of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Ready,
    /// Another process is making or refilling it.
    Busy,
}

impl Topology {
    /// Uses a pool of connections and a link.
    #[must_use]
    pub fn new(database: Database, broker: Broker) -> Self {
        Self {
            database,
            broker,
            begun: Mutex::default(),
        }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// The pools that tenants are in, or that have queues.
    ///
    /// # Errors
    /// [`TopologyError`] of the database.
    pub async fn pools(&self) -> Result<Vec<PoolName>, TopologyError> {
        pools::in_use(&self.database).await
    }

    /// Whether a tenant is in a pool, or may come into it unasked: the shared one.
    pub(crate) async fn has_tenants(&self, pool: &PoolName) -> Result<bool, TopologyError> {
        pools::has_tenants(&self.database, pool).await
    }

    /// Gives a pool that has no effects yet those of another pool.
    ///
    /// # Errors
    /// [`TopologyError`] of the database.
    pub async fn add_effects(&self, pool: &PoolName, like: &PoolName) -> Result<(), TopologyError> {
        pools::add_effects(&self.database, pool, like.as_str()).await
    }

    /// Looks at the queues of a pool and changes nothing.
    ///
    /// # Errors
    /// [`TopologyError`]
    pub async fn look(&self, pool: &PoolName) -> Result<Vec<(QueueRow, Look)>, TopologyError> {
        let mut found = Vec::new();
        for row in pools::queues_of(&self.database, pool).await? {
            let look = self.broker.look_at(&row.queue.name()).await?;
            found.push((row, look));
        }
        Ok(found)
    }

    /// Looks whether a pool's queues are all there, as they should be and ready; makes and refills
    /// them if not. One that is empty and not consumed may have other arguments unseen.
    ///
    /// # Errors
    /// [`TopologyError`] of the first queue that could not be brought up; the others were.
    pub async fn verify(&self, pool: &PoolName) -> Result<Standing, TopologyError> {
        pools::add_effects(&self.database, pool, pools::SHARED).await?;
        let rows = pools::queues_of(&self.database, pool).await?;
        if rows.is_empty() {
            return Ok(Standing::unverified("the pool has no effects"));
        }
        let effects: Vec<EffectName> = rows.iter().map(|row| row.queue.effect.clone()).collect();
        self.broker.declare_exchanges().await?;
        self.broker.declare_dead_queue(pool, &effects).await?;
        let mut failure = None;
        let mut busy = None;
        for row in rows {
            let name = row.queue.name();
            match self.bring_up(row).await {
                Ok(Found::Ready) => {}
                Ok(Found::Busy) => busy = Some(name),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match (failure, busy) {
            (Some(error), _) => Err(error),
            (None, Some(name)) => Ok(Standing::unverified(format!("{name} is being made"))),
            (None, None) => {
                pools::note_verified(&self.database, pool).await?;
                Ok(Standing::Verified)
            }
        }
    }

    /// The same, and the arguments of queues that are empty and not consumed too. For a person who
    /// asks: such a queue comes up in a new generation, during which nothing is published.
    ///
    /// # Errors
    /// As for [`Topology::verify`].
    pub async fn check(&self, pool: &PoolName) -> Result<Standing, TopologyError> {
        for row in pools::queues_of(&self.database, pool).await? {
            let found = self.broker.look_at(&row.queue.name()).await?;
            if found == EMPTY && row.is_ready() {
                self.compare(row).await?;
            }
        }
        self.verify(pool).await
    }

    /// Sends what is missing to queues of the pool that are empty and to which something was
    /// published longer ago than `age`: a binding may have been lost and restored unseen.
    ///
    /// # Errors
    /// [`TopologyError`]
    pub async fn refill_lost(&self, pool: &PoolName, age: Duration) -> Result<u64, TopologyError> {
        let mut sent = 0;
        for row in pools::queues_of(&self.database, pool).await? {
            if row.is_ready() && self.may_have_lost(&row, age).await? {
                let (events, _) = self.refill_from(&row, &mut 0, age).await?;
                sent += events;
            }
        }
        Ok(sent)
    }

    async fn may_have_lost(&self, row: &QueueRow, age: Duration) -> Result<bool, TopologyError> {
        let found = self.broker.look_at(&row.queue.name()).await?;
        if !matches!(found, Look::Present { messages: 0, .. }) {
            return Ok(false);
        }
        // An effect whose receipts are elsewhere has none here: everything would look lost.
        let text = include_str!("sql/has_receipts.sql");
        let effect = row.queue.effect.as_str();
        let rows = statement::alone(&self.database, text, &[&effect]).await?;
        let keeps_receipts: bool = match rows.first() {
            Some(row) => row.try_get("has_receipts")?,
            None => false,
        };
        let taken =
            keeps_receipts && generation::take_lost(&self.database, row, age).await? == Step::Done;
        Ok(taken)
    }

    async fn bring_up(&self, row: QueueRow) -> Result<Found, TopologyError> {
        let found = self.broker.look_at(&row.queue.name()).await?;
        let is_there = found != Look::Missing;
        if found == EMPTY && row.is_ready() {
            self.broker.bind_effect_queue(&row.queue).await?;
            return Ok(Found::Ready);
        }
        if is_there && row.is_ready() {
            return self.compare(row).await;
        }
        if is_there && row.is_declared() {
            return self.refill(row).await;
        }
        if !row.is_declared() && row.is_at_work && !row.is_new() {
            return Ok(Found::Busy);
        }
        if is_there {
            // Other arguments are told before anything is changed.
            self.broker.declare_effect_queue(&row.queue).await?;
        }
        self.make(row).await
    }

    /// Compares the arguments of a queue that is there with what they should be, which only a declare
    /// does. Should the queue have been deleted since it was looked at, it has just been made: then
    /// it is empty, and has to come up in a new generation like any that was missing.
    async fn compare(&self, row: QueueRow) -> Result<Found, TopologyError> {
        match self.broker.declare_effect_queue(&row.queue).await? {
            EMPTY => self.make(row).await,
            Look::Present { .. } | Look::Missing => Ok(Found::Ready),
        }
    }

    /// All steps, from the first.
    async fn make(&self, row: QueueRow) -> Result<Found, TopologyError> {
        let Some(row) = generation::raise(&self.database, &row).await? else {
            return Ok(Found::Busy);
        };
        if generation::declare(&self.database, &self.broker, &row).await? == Step::Superseded {
            return Ok(Found::Busy);
        }
        tracing::info!(
            queue = row.queue.name(),
            generation = row.generation,
            "declared a queue"
        );
        let declared = QueueRow {
            declared_generation: row.generation,
            ..row
        };
        self.keep(&declared, 0);
        self.refill(declared).await
    }

    async fn refill(&self, row: QueueRow) -> Result<Found, TopologyError> {
        let mut after = match self.begun_at(&row) {
            Some(after) => after,
            None if generation::take_on(&self.database, &row).await? == Step::Superseded => {
                return Ok(Found::Busy);
            }
            None => 0,
        };
        let refilled = self.refill_from(&row, &mut after, Duration::ZERO).await;
        self.keep(&row, after);
        if refilled?.1 == Step::Superseded {
            return Ok(Found::Busy);
        }
        match generation::ready(&self.database, &row).await? {
            Step::Done => Ok(Found::Ready),
            Step::Superseded => Ok(Found::Busy),
        }
    }

    async fn refill_from(
        &self,
        row: &QueueRow,
        after: &mut i64,
        published_before: Duration,
    ) -> Result<(u64, Step), TopologyError> {
        let refill = Refill {
            database: &self.database,
            broker: &self.broker,
            row,
            wanted: Wanted::Missing(published_before),
        };
        let (sent, step) = refill.run(after).await?;
        if sent > 0 {
            let queue = row.queue.name();
            tracing::info!(queue, events = sent, "sent a queue what it had missed");
        }
        Ok((sent, step))
    }

    fn begun_at(&self, row: &QueueRow) -> Option<i64> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (row.queue.pool.clone(), row.queue.effect.clone());
        begun
            .get(&key)
            .filter(|begun| begun.generation == row.generation)
            .map(|begun| begun.after)
    }

    fn keep(&self, row: &QueueRow, after: i64) {
        let begun = Begun {
            generation: row.generation,
            after,
        };
        let key = (row.queue.pool.clone(), row.queue.effect.clone());
        let mut all = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, begun);
    }
}
