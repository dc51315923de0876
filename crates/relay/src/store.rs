//! What the relay needs of the outbox: a trait, so that a test can answer from a script.

use std::future::Future;
use std::time::{Duration, Instant};

use outbox::{
    ClaimRequest, Claimed, ClaimedBatch, EventKey, LaneKey, LeaseToken, OutboxError, Resume,
    Settled, Settling,
};
use runtime::backoff::Backoff;
use runtime::database::{Database, DatabaseError, Remedy, remedy_of};

/// How long a settle is tried: after that its leases have long run out.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);

/// The outbox could not be asked or told something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database as such.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A statement of the outbox.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A batch without events, which no store makes.
    #[error("a batch without events was claimed")]
    Empty,
}

/// The outbox, as a relay's cycle uses it.
pub trait Store: Send + Sync + 'static {
    /// Claims a batch, beginning where the last walk ended.
    fn claim(
        &self,
        request: &ClaimRequest,
        resume: &Resume,
    ) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// Claims one certain event.
    fn claim_one(
        &self,
        request: &ClaimRequest,
        event: (&EventKey, &LaneKey),
    ) -> impl Future<Output = Result<Option<ClaimedBatch>, StoreError>> + Send;

    /// Writes down that an event is about to be published. Answers how many tries are written.
    fn write_try(
        &self,
        event: &EventKey,
        token: LeaseToken,
    ) -> impl Future<Output = Result<Option<i16>, StoreError>> + Send;

    /// Settles a batch. Doing it twice is harmless.
    fn settle(
        &self,
        settling: &Settling,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send;

    /// Lets go what waited for its time. Answers how many lanes had something.
    fn let_go_due(&self) -> impl Future<Output = Result<usize, StoreError>> + Send;
}

/// The outbox in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PgStore {
    database: Database,
    /// For one transaction, all of it.
    deadline: Duration,
}

impl PgStore {
    /// On this pool, each transaction within `deadline`.
    #[must_use]
    pub fn new(database: Database, deadline: Duration) -> Self {
        Self { database, deadline }
    }
}

impl Store for PgStore {
    async fn claim(&self, request: &ClaimRequest, resume: &Resume) -> Result<Claimed, StoreError> {
        self.database
            .transaction(self.deadline, async |transaction| {
                Ok(outbox::claim(transaction, request, resume).await?)
            })
            .await
    }

    async fn claim_one(
        &self,
        request: &ClaimRequest,
        event: (&EventKey, &LaneKey),
    ) -> Result<Option<ClaimedBatch>, StoreError> {
        self.database
            .transaction(self.deadline, async |transaction| {
                Ok(outbox::claim_one(transaction, request, event).await?)
            })
            .await
    }

    async fn write_try(
        &self,
        event: &EventKey,
        token: LeaseToken,
    ) -> Result<Option<i16>, StoreError> {
        self.database
            .transaction(self.deadline, async |transaction| {
                Ok(outbox::write_try(transaction, event, token).await?)
            })
            .await
    }

    /// Again while it only met another transaction or the database is away: an event that is
    /// confirmed and not settled is published twice.
    async fn settle(&self, settling: &Settling) -> Result<Settled, StoreError> {
        let until = Instant::now() + SETTLE_WITHIN;
        let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(500));
        loop {
            let settled = self
                .database
                .transaction(self.deadline, async |transaction| {
                    Ok::<_, StoreError>(outbox::settle(transaction, settling).await?)
                })
                .await;
            let Err(error) = settled else {
                return settled;
            };
            let is_passing = match remedy_of(&error) {
                Some(Remedy::Again | Remedy::Wait | Remedy::Look) => true,
                Some(Remedy::OtherData | Remedy::Person) | None => false,
            };
            if !is_passing || Instant::now() >= until {
                return Err(error);
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn let_go_due(&self) -> Result<usize, StoreError> {
        self.database
            .transaction(self.deadline, async |transaction| {
                Ok(outbox::let_go_due(transaction).await?)
            })
            .await
    }
}
