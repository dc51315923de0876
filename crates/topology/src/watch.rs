//! Looking after the queues for as long as a process runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use event::PoolName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::TopologyError;
use crate::verified::{Standing, Verified};
use crate::verify::Topology;

/// How often the queues are looked at, beside each new connection.
pub const VERIFY_EVERY: Duration = Duration::from_secs(5);

/// How soon again while a pool is not verified.
const AGAIN: Duration = Duration::from_millis(500);

/// How often to look for what a binding lost unseen, and how old it has to be.
const LOST: Duration = Duration::from_secs(600);

/// Looks after the given pools, or all in use, until told to stop, and says how they stand.
pub async fn keep(
    topology: Arc<Topology>,
    wanted: Option<Vec<PoolName>>,
    verified: watch::Sender<Verified>,
    stop: CancellationToken,
) {
    let keeper = Keeper {
        topology,
        wanted,
        verified,
        looking: BTreeSet::new(),
        searched: BTreeMap::new(),
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = keeper.run() => {}
    }
}

struct Keeper {
    topology: Arc<Topology>,
    wanted: Option<Vec<PoolName>>,
    verified: watch::Sender<Verified>,
    /// Pools that are being looked at. One that is refilled for long holds up no other.
    looking: BTreeSet<PoolName>,
    /// When each pool was last searched for lost messages.
    searched: BTreeMap<PoolName, Instant>,
}

impl Keeper {
    async fn run(mut self) {
        let mut link = self.topology.broker().state();
        let mut looks = JoinSet::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                Some(look) = looks.join_next() => {
                    let Ok((pool, result)) = look else {
                        // It panicked, and whose it was is not known.
                        self.looking.clear();
                        continue;
                    };
                    if !self.take_in(pool, result) {
                        due = due.min(Instant::now() + AGAIN);
                    }
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if link.borrow_and_update().is_connected() {
                        due = Instant::now();
                    } else {
                        self.verified.send_modify(|all| all.doubt_all("the broker is away"));
                    }
                }
                () = sleep_until(due) => {
                    due = Instant::now() + VERIFY_EVERY;
                    self.look(&mut looks).await;
                }
            }
        }
    }

    async fn look(&mut self, looks: &mut JoinSet<(PoolName, Result<Standing, TopologyError>)>) {
        if !self.topology.broker().state().borrow().is_connected() {
            return;
        }
        for pool in self.pools().await {
            if !self.looking.insert(pool.clone()) {
                continue;
            }
            let is_first = !self.searched.contains_key(&pool);
            let searched = self
                .searched
                .entry(pool.clone())
                .or_insert_with(Instant::now);
            let search = searched.elapsed() > LOST;
            if search {
                *searched = Instant::now();
            }
            if is_first && self.wanted.is_some() {
                self.doubt_unused(&pool).await;
            }
            looks.spawn(look_at(self.topology.clone(), pool, search));
        }
    }

    /// A slip in a pool's name would make queues that nobody ever publishes to.
    async fn doubt_unused(&self, pool: &PoolName) {
        if let Ok(false) = self.topology.has_tenants(pool).await {
            tracing::warn!(
                %pool,
                "no tenant is in this pool yet; `ticketflow tenant move` puts one there"
            );
        }
    }

    async fn pools(&self) -> Vec<PoolName> {
        if let Some(wanted) = &self.wanted {
            return wanted.clone();
        }
        match self.topology.pools().await {
            Ok(pools) => pools,
            Err(error) => {
                tracing::debug!(%error, "the pools could not be listed");
                Vec::new()
            }
        }
    }

    /// Notes what a look found. False if the pool is not verified.
    fn take_in(&mut self, pool: PoolName, result: Result<Standing, TopologyError>) -> bool {
        self.looking.remove(&pool);
        let standing = result.unwrap_or_else(Standing::unverified);
        let is_verified = standing == Standing::Verified;
        let mut is_news = false;
        self.verified
            .send_modify(|all| is_news = all.note(pool.clone(), standing.clone()));
        match &standing {
            Standing::Verified if is_news => tracing::info!(%pool, "all queues are there"),
            Standing::Unverified { reason } if is_news => {
                tracing::warn!(%pool, reason, "the queues are not all there");
            }
            Standing::Verified | Standing::Unverified { .. } => {}
        }
        is_verified
    }
}

async fn look_at(
    topology: Arc<Topology>,
    pool: PoolName,
    search: bool,
) -> (PoolName, Result<Standing, TopologyError>) {
    let standing = topology.verify(&pool).await;
    if search
        && matches!(standing, Ok(Standing::Verified))
        && let Err(error) = topology.refill_lost(&pool, LOST).await
    {
        tracing::warn!(%pool, %error, "the search for lost messages failed");
    }
    (pool, standing)
}
