//! What is known of each pool's queues.

use std::collections::BTreeMap;
use std::time::Duration;

use event::PoolName;
use tokio::time::Instant;

/// What was found of a pool's queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// All there, bound, and nothing missing in them.
    Verified,
    /// Not so, or not known.
    Unverified {
        /// Why, in words.
        reason: String,
    },
}

impl Standing {
    pub(crate) fn unverified(reason: impl ToString) -> Self {
        Self::Unverified {
            reason: reason.to_string(),
        }
    }
}

/// How long a finding counts. Longer than two looks and a slow answer.
const COUNTS_FOR: Duration = Duration::from_secs(20);

/// The standing of each pool, when it was last looked at.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    pools: BTreeMap<PoolName, (Standing, Instant)>,
}

impl Verified {
    /// Whether a pool's queues were all there when last looked at, not long ago.
    #[must_use]
    pub fn is_verified(&self, pool: &PoolName) -> bool {
        matches!(
            self.pools.get(pool),
            Some((Standing::Verified, at)) if at.elapsed() < COUNTS_FOR
        )
    }

    /// All pools and what was found of them.
    pub fn pools(&self) -> impl Iterator<Item = (&PoolName, &Standing)> {
        self.pools
            .iter()
            .map(|(pool, (standing, _))| (pool, standing))
    }

    /// Notes a finding, and says whether it is another one than before.
    pub(crate) fn note(&mut self, pool: PoolName, standing: Standing) -> bool {
        let before = self.pools.insert(pool, (standing.clone(), Instant::now()));
        before.map(|(standing, _)| standing) != Some(standing)
    }

    /// Nothing is known any more.
    pub(crate) fn doubt_all(&mut self, reason: &str) {
        for (standing, at) in self.pools.values_mut() {
            *standing = Standing::unverified(reason);
            *at = Instant::now();
        }
    }
}
