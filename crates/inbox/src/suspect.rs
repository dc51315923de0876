//! Suspects: what came back as a dead letter may have killed a process. It is kept under the
//! receipt's key like whatever is deferred, and tried alone, each try written down before it is
//! made, so that a kill leaves a trace.

use deadpool_postgres::{Object, Pool};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::delivery::{Delivery, Readable};
use crate::effect::Effect;
use crate::failure::InboxError;
use crate::inbox::Inbox;
use crate::lent::{Failure, Lent, within};
use crate::outcome::{Outcome, Reason};
use crate::policy::Policy;
use crate::retry::Due;
use crate::rows::Verdict;

/// So many kills are enough to know.
const MOST_KILLS: i64 = 2;

/// How soon a suspect is tried, and tried again after a try that came to nothing.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

impl Inbox {
    /// Keeps a dead letter of an effect as a suspect, unless it was applied after all.
    ///
    /// # Errors
    /// [`InboxError`] if nothing was decided: it must not be acked.
    pub async fn suspect(
        &self,
        effect: &dyn Effect,
        delivery: &Delivery,
    ) -> Result<Outcome, InboxError> {
        let Some(one) = Readable::of(delivery) else {
            return self.apply_once(effect, delivery).await;
        };
        let verdict = Verdict::again("suspect", Reason::Suspect, PAUSE);
        self.keep(effect, one, verdict).await
    }

    /// Tries a suspect alone. None if it is no longer there, or somebody else tries it.
    ///
    /// # Errors
    /// [`InboxError`] if nothing was decided: it is tried again.
    pub async fn try_suspect(
        &self,
        effect: &dyn Effect,
        due: &Due,
        owner: &str,
    ) -> Result<Option<Outcome>, InboxError> {
        let token = Uuid::new_v4();
        let Some((parked, changed_at)) = self.lease(due, token, owner).await? else {
            return Ok(None);
        };
        if parked {
            return Ok(Some(Outcome::Parked(Reason::Kills)));
        }
        let leased = Due {
            changed_at,
            ..due.clone()
        };
        crate::crash::point(crate::crash::SUSPECT_TRY_WRITTEN);
        let _renewing = self.renewing(due.delivery_id, token);
        let tried = self.retry(effect, &leased).await;
        if !matches!(tried, Ok(Some(_))) {
            self.release(due.delivery_id, token).await?;
        }
        tried
    }

    async fn lease(
        &self,
        due: &Due,
        token: Uuid,
        owner: &str,
    ) -> Result<Option<(bool, String)>, InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async { lease_in(lent.client()?, due, (token, owner), &self.policy).await };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    async fn release(&self, delivery_id: i64, token: Uuid) -> Result<(), InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let client = lent.client()?;
            let statement = client
                .prepare_cached(include_str!("sql/suspect_release.sql"))
                .await?;
            client
                .execute(&statement, &[&delivery_id, &token, &PAUSE.as_secs_f64()])
                .await?;
            Ok(())
        };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    /// Renews the lease over other connections for as long as the answer is held.
    fn renewing(&self, delivery_id: i64, token: Uuid) -> AbortOnDropHandle<()> {
        let pool = self.pool.clone();
        let lease = self.policy.lease;
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(lease / 4).await;
                if let Err(error) = renew(&pool, delivery_id, token, lease).await {
                    tracing::warn!(delivery.id = delivery_id, %error, "lease not renewed");
                }
            }
        }))
    }
}

async fn lease_in(
    client: &Object,
    due: &Due,
    (token, owner): (Uuid, &str),
    policy: &Policy,
) -> Result<Option<(bool, String)>, Failure> {
    let statement = client
        .prepare_cached(include_str!("sql/suspect_lease.sql"))
        .await?;
    let row = client
        .query_opt(
            &statement,
            &[
                &due.delivery_id,
                &due.changed_at,
                &token,
                &owner,
                &policy.lease.as_secs_f64(),
                &MOST_KILLS,
            ],
        )
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let state: &str = row.try_get("state")?;
    Ok(Some((state == "parked", row.try_get("changed_at")?)))
}

async fn renew(
    pool: &Pool,
    delivery_id: i64,
    token: Uuid,
    lease: std::time::Duration,
) -> Result<(), Failure> {
    let mut lent = Lent::get(pool).await?;
    let work = async {
        let client = lent.client()?;
        let statement = client
            .prepare_cached(include_str!("sql/suspect_renew.sql"))
            .await?;
        client
            .execute(&statement, &[&delivery_id, &token, &lease.as_secs_f64()])
            .await?;
        Ok(())
    };
    let result = within(lease / 4, work).await;
    lent.settle(&result);
    result
}
