//! Rows that may still be applied, tried when they are due: without a lock until the try, then in
//! the one order of locks, where the row must still be as it was seen.

use deadpool_postgres::{Object, Transaction};
use event::{EffectName, PoolName};
use tokio_postgres::Row;
use tokio_postgres::types::Json;

use crate::batch::{guarded, refused};
use crate::delivery::{Delivery, Readable};
use crate::effect::{Applicable, Effect, Place};
use crate::failure::InboxError;
use crate::inbox::Inbox;
use crate::lent::{Failure, Lent, within};
use crate::order::Heads;
use crate::outcome::{Outcome, Reason};
use crate::policy::Policy;
use crate::rows::{self, Verdict};
use crate::stored::Properties;
use crate::waiting::{self, Wait};
use crate::{conflicts, receipts};

/// A row that was due when it was looked for.
#[derive(Debug, Clone)]
pub struct Due {
    /// The row.
    pub delivery_id: i64,
    /// The effect it waits for.
    pub effect_name: String,
    /// Whether it is tried alone, its try written down first: [`Inbox::try_suspect`].
    pub suspect: bool,
    /// As the database writes it: it is only compared, and may be infinite.
    pub(crate) changed_at: String,
}

/// A row with what it was made from.
pub(crate) struct Kept {
    pub(crate) due: Due,
    pub(crate) delivery: Delivery,
    pub(crate) attempts: i64,
}

impl Inbox {
    /// Rows of these effects that are due, the longest due first.
    ///
    /// # Errors
    /// [`InboxError`] of the database.
    pub async fn due(&self, effects: &[&str], limit: i64) -> Result<Vec<Due>, InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let client = lent.client()?;
            let statement = client
                .prepare_cached(include_str!("sql/rows_due.sql"))
                .await?;
            let rows = client.query(&statement, &[&effects, &limit]).await?;
            Ok(rows.iter().map(due).collect::<Result<_, _>>()?)
        };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    /// Tries a row. None if it is no longer there, or no longer as it was.
    ///
    /// # Errors
    /// [`InboxError`] if nothing was decided: the row stays as it is.
    pub async fn retry(
        &self,
        effect: &dyn Effect,
        due: &Due,
    ) -> Result<Option<Outcome>, InboxError> {
        let mut attempt = 0;
        loop {
            let mut lent = Lent::get(&self.pool).await?;
            let work = async { retry_in(lent.client()?, effect, due, &self.policy).await };
            let result = within(self.policy.deadline, work).await;
            lent.settle(&result);
            attempt += 1;
            match result {
                Err(failure) if self.again(&failure, attempt) => {
                    tokio::time::sleep(self.policy.again(attempt)).await;
                }
                Ok(outcome) => return Ok(outcome),
                Err(failure) => return self.set_aside(due, failure.into()).await,
            }
        }
    }

    /// A row that cannot even be tried must not be due for ever.
    async fn set_aside(&self, due: &Due, error: InboxError) -> Result<Option<Outcome>, InboxError> {
        let verdict = match &error {
            InboxError::Away(_) => return Err(error),
            InboxError::Undecodable { reason, .. } => Verdict::parked(Reason::Unreadable, reason),
            InboxError::Busy(why) | InboxError::Refused(why) => Verdict {
                detail: why.clone(),
                ..Verdict::again("deferred", Reason::Refused, self.policy.backoff_cap)
            },
        };
        tracing::error!(delivery.id = due.delivery_id, %error, "a row cannot be tried");
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let transaction = lent.client()?.transaction().await?;
            if !lock(&transaction, due).await? {
                return Ok(None);
            }
            update(&transaction, due, &verdict, false).await?;
            transaction.commit().await?;
            Ok(Some(verdict.outcome()))
        };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }
}

fn due(row: &Row) -> Result<Due, tokio_postgres::Error> {
    let state: &str = row.try_get("state")?;
    Ok(Due {
        delivery_id: row.try_get("delivery_id")?,
        effect_name: row.try_get("effect_name")?,
        suspect: state == "suspect",
        changed_at: row.try_get("changed_at")?,
    })
}

async fn retry_in(
    client: &mut Object,
    effect: &dyn Effect,
    due: &Due,
    policy: &Policy,
) -> Result<Option<Outcome>, Failure> {
    let Some(kept) = read(client, due).await? else {
        return Ok(None);
    };
    let mut transaction = client.transaction().await?;
    let Some(one) = Readable::of(&kept.delivery) else {
        let outcome = unreadable(&transaction, &kept).await?;
        transaction.commit().await?;
        return Ok(outcome);
    };
    let outcome = decide(&mut transaction, effect, (&kept, one), policy).await?;
    match outcome {
        // What was read is no longer so; the transaction is rolled back by its drop.
        None => Ok(None),
        Some(outcome) => {
            transaction.commit().await?;
            Ok(Some(outcome))
        }
    }
}

async fn read(client: &Object, due: &Due) -> Result<Option<Kept>, Failure> {
    let statement = client
        .prepare_cached(include_str!("sql/rows_read.sql"))
        .await?;
    let Some(row) = client.query_opt(&statement, &[&due.delivery_id]).await? else {
        return Ok(None);
    };
    let bad = |reason: String| InboxError::Undecodable {
        delivery_id: due.delivery_id,
        reason,
    };
    let pool: &str = row.try_get("pool")?;
    let pool = PoolName::parse(pool).map_err(|error| bad(error.to_string()))?;
    let Json(properties) = row
        .try_get::<_, Json<Properties>>("properties")
        .map_err(|error| bad(error.to_string()))?;
    let delivered = properties
        .delivered(row.try_get("body")?)
        .ok_or_else(|| bad("its properties were changed".to_owned()))?;
    Ok(Some(Kept {
        due: due.clone(),
        delivery: Delivery::read(pool, delivered),
        attempts: row.try_get("attempts")?,
    }))
}

async fn decide(
    transaction: &mut Transaction<'_>,
    effect: &dyn Effect,
    (kept, one): (&Kept, Readable<'_>),
    policy: &Policy,
) -> Result<Option<Outcome>, Failure> {
    let name = effect.name();
    let new = receipts::insert(transaction, name, &[one]).await?;
    let mut heads = Heads::default();
    if effect.keeps_order() {
        heads = Heads::lock(transaction, name, std::iter::once(one.event)).await?;
    }
    if !lock(transaction, &kept.due).await? {
        return Ok(None);
    }
    if new.first() != Some(&true) {
        return Ok(Some(overtaken(transaction, name, (kept, one)).await?));
    }
    let mut place = heads.place(one.event, false);
    if place.is_none() {
        let wait = waiting::look(transaction, name, (kept, one.event), (&heads, policy)).await?;
        if wait == Wait::Over {
            place = heads.place(one.event, true);
        } else {
            receipts::delete(transaction, name, &[one]).await?;
            return Ok(Some(wait_on(transaction, kept, wait, policy).await?));
        }
    }
    let place = place.unwrap_or(Place::Unordered);
    let events = [Applicable {
        event: one.event,
        digest: one.digest,
        place,
    }];
    let applied = match effect.check(one.event) {
        Ok(()) => guarded(transaction, effect, &events).await?,
        Err(why) => Err(crate::effect::Refusal::Never(why)),
    };
    if let Err(refusal) = applied {
        let verdict = refused(&refusal, kept.attempts.saturating_add(1), policy);
        receipts::delete(transaction, name, &[one]).await?;
        update(transaction, &kept.due, &verdict, false).await?;
        return Ok(Some(verdict.outcome()));
    }
    heads.store(transaction, name).await?;
    rows::delete(transaction, &[kept.due.delivery_id]).await?;
    Ok(Some(Outcome::Applied))
}

/// Somebody else wrote a receipt first: of this content, or of another one.
async fn overtaken(
    transaction: &Transaction<'_>,
    effect: &EffectName,
    (kept, one): (&Kept, Readable<'_>),
) -> Result<Outcome, Failure> {
    let statement = transaction
        .prepare_cached(include_str!("sql/receipts_read.sql"))
        .await?;
    let identity = one.identity();
    let row = transaction
        .query_one(
            &statement,
            &[
                &identity.event_id,
                &identity.tenant_id.as_str(),
                &identity.source.as_str(),
                &effect.as_str(),
            ],
        )
        .await?;
    let digest: Vec<u8> = row.try_get("digest")?;
    if digest == one.digest.as_bytes() {
        rows::delete(transaction, &[kept.due.delivery_id]).await?;
        return Ok(Outcome::Duplicate);
    }
    let other = conflicts::Other {
        effect: effect.to_string(),
        digest,
    };
    conflicts::note(transaction, effect, one, &other).await?;
    let verdict = conflicts::verdict();
    update(transaction, &kept.due, &verdict, false).await?;
    Ok(verdict.outcome())
}

async fn wait_on(
    transaction: &Transaction<'_>,
    kept: &Kept,
    wait: Wait,
    policy: &Policy,
) -> Result<Outcome, Failure> {
    let verdict = Verdict {
        attempts: kept.attempts,
        ..Verdict::again("waiting", Reason::Order, policy.order_poll())
    };
    update(transaction, &kept.due, &verdict, wait == Wait::Blocked).await?;
    Ok(verdict.outcome())
}

async fn unreadable(
    transaction: &Transaction<'_>,
    kept: &Kept,
) -> Result<Option<Outcome>, Failure> {
    if !lock(transaction, &kept.due).await? {
        return Ok(None);
    }
    let why = kept.delivery.malformed().map(ToString::to_string);
    let verdict = Verdict::evidence(Reason::Unreadable, why.unwrap_or_default());
    update(transaction, &kept.due, &verdict, false).await?;
    Ok(Some(verdict.outcome()))
}

async fn lock(transaction: &Transaction<'_>, due: &Due) -> Result<bool, Failure> {
    let statement = transaction
        .prepare_cached(include_str!("sql/rows_lock.sql"))
        .await?;
    let found = transaction
        .query_opt(&statement, &[&due.delivery_id, &due.changed_at])
        .await?;
    Ok(found.is_some())
}

async fn update(
    transaction: &Transaction<'_>,
    due: &Due,
    verdict: &Verdict,
    wait_starts: bool,
) -> Result<(), Failure> {
    let statement = transaction
        .prepare_cached(include_str!("sql/rows_update.sql"))
        .await?;
    transaction
        .execute(
            &statement,
            &[
                &due.delivery_id,
                &verdict.state,
                &verdict.reason.as_str(),
                &verdict.shown_detail(),
                &verdict.applicable,
                &verdict.attempts,
                &verdict.wait.map(|wait| wait.as_secs_f64()),
                &wait_starts,
            ],
        )
        .await?;
    Ok(())
}
