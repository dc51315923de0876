//! Whose key a request carries, remembered for a moment.
//!
//! What is remembered decides a request's rate and its share of the process; whether the key is
//! still good is looked at again in the very statement that reads or writes. So a revoked key is
//! refused at once, and a request with a known key costs no round trip before its own.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::TenantId;
use runtime::database::{Again, Database, DatabaseError};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;

/// Only valid keys are remembered, so this many means as many tenants.
const MOST_REMEMBERED: usize = 100_000;

/// SHA-256 of a key, as the database has it.
pub(crate) type KeyHash = [u8; 32];

/// Who calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    pub(crate) key_hash: KeyHash,
    /// The tenant's own rate and burst, where it has them.
    pub(crate) rate: Option<u32>,
    pub(crate) burst: Option<u32>,
}

/// The hash of a key.
pub(crate) fn hash(key: &str) -> KeyHash {
    Sha256::digest(key).into()
}

/// The keys seen lately.
#[derive(Debug)]
pub(crate) struct Keys {
    database: Database,
    within: Duration,
    remembered_for: Duration,
    seen: Mutex<HashMap<KeyHash, (Caller, Instant)>>,
}

impl Keys {
    pub(crate) fn new(database: Database, within: Duration, remembered_for: Duration) -> Self {
        Self {
            database,
            within,
            remembered_for,
            seen: Mutex::default(),
        }
    }

    /// Who calls, if that was looked up a moment ago.
    pub(crate) fn remembered(&self, key_hash: &KeyHash) -> Option<Caller> {
        let seen = self.seen();
        let (caller, since) = seen.get(key_hash)?;
        (since.elapsed() < self.remembered_for).then(|| caller.clone())
    }

    /// Who calls, by the database; none if the key is not a live one.
    ///
    /// # Errors
    /// [`DatabaseError`] if it cannot be asked.
    pub(crate) async fn look_up(&self, key_hash: KeyHash) -> Result<Option<Caller>, DatabaseError> {
        let found = self.find(key_hash).await?;
        let Some(row) = found else {
            self.seen().remove(&key_hash);
            return Ok(None);
        };
        let positive = |name| -> Result<Option<u32>, DatabaseError> {
            let value: Option<i32> = row.try_get(name)?;
            Ok(value.and_then(|value| u32::try_from(value).ok()))
        };
        let Ok(tenant) = TenantId::parse(row.try_get("tenant_id")?) else {
            return Ok(None);
        };
        let caller = Caller {
            tenant,
            key_hash,
            rate: positive("rate_per_second")?,
            burst: positive("rate_burst")?,
        };
        self.remember(caller.clone());
        Ok(Some(caller))
    }

    async fn find(&self, key_hash: KeyHash) -> Result<Option<Row>, DatabaseError> {
        let mut again = Again::within(self.within);
        loop {
            let found = self
                .database
                .transaction(again.left(), async |transaction| {
                    let text = include_str!("sql/tenant_of_key.sql");
                    let statement = transaction.prepare_cached(text).await?;
                    let row = transaction.query_opt(&statement, &[&&key_hash[..]]).await?;
                    Ok::<_, DatabaseError>(row)
                });
            match found.await {
                Err(error) => again.after(&error).ok_or(error)?.await,
                found => return found,
            }
        }
    }

    /// Looks the key up again next time.
    pub(crate) fn forget(&self, key_hash: &KeyHash) {
        self.seen().remove(key_hash);
    }

    fn remember(&self, caller: Caller) {
        let mut seen = self.seen();
        if seen.len() >= MOST_REMEMBERED {
            seen.retain(|_, (_, since)| since.elapsed() < self.remembered_for);
        }
        if seen.len() < MOST_REMEMBERED {
            seen.insert(caller.key_hash, (caller, Instant::now()));
        }
    }

    /// The map is whole after each change, so a panic elsewhere does not spoil it.
    fn seen(&self) -> MutexGuard<'_, HashMap<KeyHash, (Caller, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
