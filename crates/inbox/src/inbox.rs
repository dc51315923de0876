//! Applying deliveries: as a set, alone where the set is refused, again where a transaction lost.

use deadpool_postgres::Pool;

use crate::batch::{self, Job};
use crate::conflicts;
use crate::delivery::{Delivery, Readable};
use crate::effect::Effect;
use crate::failure::{InboxError, Remedy};
use crate::lent::{Failure, Lent, within};
use crate::outcome::{Outcome, Reason};
use crate::policy::Policy;
use crate::rows::{self, Verdict};
use crate::sorted::Sorted;

/// What became of a set, and whether other contents were looked for.
struct Decided {
    outcomes: Vec<Outcome>,
    looked: bool,
}

impl Decided {
    fn looked(outcomes: Vec<Outcome>) -> Self {
        Self {
            outcomes,
            looked: true,
        }
    }

    fn not_looked(outcomes: Vec<Outcome>) -> Self {
        Self {
            outcomes,
            looked: false,
        }
    }

    fn first(self) -> Outcome {
        self.outcomes
            .into_iter()
            .next()
            .unwrap_or(Outcome::Duplicate)
    }
}

/// The inbox of a database.
#[derive(Debug, Clone)]
pub struct Inbox {
    pub(crate) pool: Pool,
    pub(crate) policy: Policy,
}

impl Inbox {
    /// Over a pool whose connections are verified when lent, and have time-outs.
    #[must_use]
    pub fn new(pool: Pool, policy: Policy) -> Self {
        Self { pool, policy }
    }

    /// Applies the effect of one delivery once, whatever was delivered before.
    ///
    /// # Errors
    /// [`InboxError`] if nothing could be decided: the delivery must not be acked.
    pub async fn apply_once(
        &self,
        effect: &dyn Effect,
        delivery: &Delivery,
    ) -> Result<Outcome, InboxError> {
        let outcomes = self
            .apply_set(effect, std::slice::from_ref(delivery))
            .await?;
        Ok(outcomes.into_iter().next().unwrap_or(Outcome::Duplicate))
    }

    /// Applies the effect of each delivery once. The outcomes are in the order of the deliveries.
    ///
    /// # Errors
    /// [`InboxError`] if nothing could be decided about some of them: none may be acked. What was
    /// committed meanwhile is a duplicate when it comes again.
    pub async fn apply_set(
        &self,
        effect: &dyn Effect,
        deliveries: &[Delivery],
    ) -> Result<Vec<Outcome>, InboxError> {
        let sorted = Sorted::of(deliveries);
        let mut outcomes = vec![Outcome::Duplicate; deliveries.len()];
        self.park_unreadable(effect, deliveries, &sorted).await?;
        for place in &sorted.unreadable {
            outcomes[*place] = Outcome::Parked(Reason::Unreadable);
        }
        // The second content of an identity comes behind the first, in a transaction of its own.
        for round in &sorted.rounds {
            let set: Vec<_> = round.iter().map(|(_, one)| *one).collect();
            let decided = self.decide(effect, &set).await?;
            for ((place, _), outcome) in round.iter().zip(decided) {
                outcomes[*place] = outcome;
            }
        }
        Ok(outcomes)
    }

    /// Applies a set of different identities in key order, then looks for other contents.
    async fn decide(
        &self,
        effect: &dyn Effect,
        set: &[Readable<'_>],
    ) -> Result<Vec<Outcome>, InboxError> {
        let barred: Vec<_> = set
            .iter()
            .map(|one| effect.check(one.event).err())
            .map(|refused| refused.map(|why| Verdict::parked(Reason::Never, why)))
            .collect();
        self.decide_barred(effect, set, &barred).await
    }

    /// Gives a delivery a row instead of applying it, unless it was applied before.
    pub(crate) async fn keep(
        &self,
        effect: &dyn Effect,
        one: Readable<'_>,
        verdict: Verdict,
    ) -> Result<Outcome, InboxError> {
        let outcomes = self.decide_barred(effect, &[one], &[Some(verdict)]).await?;
        Ok(outcomes.into_iter().next().unwrap_or(Outcome::Duplicate))
    }

    async fn decide_barred(
        &self,
        effect: &dyn Effect,
        set: &[Readable<'_>],
        barred: &[Option<Verdict>],
    ) -> Result<Vec<Outcome>, InboxError> {
        let job = Job {
            effect,
            set,
            barred,
            policy: &self.policy,
        };
        let mut outcomes = match self.tried(job, set.len() == 1).await {
            Ok(Decided {
                outcomes,
                looked: true,
            }) => return Ok(outcomes),
            Ok(Decided {
                outcomes,
                looked: false,
            }) => outcomes,
            Err(failure) if set.len() == 1 => vec![self.defer_lost(job, failure).await?],
            Err(failure) if failure.remedy() == Remedy::Away => return Err(failure.into()),
            Err(_) => self.each_alone(job).await?,
        };
        self.look_for_conflicts(effect, set, &mut outcomes).await?;
        Ok(outcomes)
    }

    async fn each_alone(&self, job: Job<'_>) -> Result<Vec<Outcome>, InboxError> {
        let mut outcomes = Vec::with_capacity(job.set.len());
        for place in 0..job.set.len() {
            let job = Job {
                set: &job.set[place..=place],
                barred: &job.barred[place..=place],
                ..job
            };
            let outcome = match self.tried(job, true).await {
                Ok(decided) => decided.first(),
                Err(failure) => self.defer_lost(job, failure).await?,
            };
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// One delivery that keeps losing against others goes to its row without counting, so that it
    /// does not hold up the queue.
    async fn defer_lost(&self, job: Job<'_>, failure: Failure) -> Result<Outcome, InboxError> {
        if failure.remedy() != Remedy::Again {
            return Err(failure.into());
        }
        let lost = Verdict {
            detail: failure.to_string(),
            ..Verdict::again("deferred", Reason::Refused, self.policy.backoff(1))
        };
        let barred = [Some(lost)];
        let job = Job {
            barred: &barred,
            ..job
        };
        Ok(self.tried(job, true).await?.first())
    }

    /// One transaction, again while it only lost against others.
    async fn tried(&self, job: Job<'_>, alone: bool) -> Result<Decided, Failure> {
        let mut attempt = 0;
        loop {
            let result = self.once(job, alone).await;
            attempt += 1;
            match result {
                Err(failure) if self.again(&failure, attempt) => {
                    tokio::time::sleep(self.policy.again(attempt)).await;
                }
                Ok(_) | Err(_) => return result,
            }
        }
    }

    async fn once(&self, job: Job<'_>, alone: bool) -> Result<Decided, Failure> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let client = lent.client()?;
            let mut outcomes = if alone {
                batch::alone(client, job).await?
            } else {
                batch::together(client, job).await?
            };
            // Over the same connection while it is at hand; what fails here is looked at again.
            let name = job.effect.name();
            let looked = conflicts::look(client, name, job.set, &mut outcomes).await;
            Ok(match looked {
                Ok(()) => (outcomes, None),
                Err(failure) => (outcomes, Some(failure)),
            })
        };
        let result = within(self.policy.deadline, work).await;
        let (decided, look) = match result {
            Ok((outcomes, None)) => (Ok(Decided::looked(outcomes)), Ok(())),
            Ok((outcomes, Some(failure))) => (Ok(Decided::not_looked(outcomes)), Err(failure)),
            Err(failure) => (Err(failure), Ok(())),
        };
        match look {
            Ok(()) => lent.settle(&decided),
            Err(failure) => lent.settle::<()>(&Err(failure)),
        }
        decided
    }

    async fn look_for_conflicts(
        &self,
        effect: &dyn Effect,
        set: &[Readable<'_>],
        outcomes: &mut [Outcome],
    ) -> Result<(), InboxError> {
        let mut attempt = 0;
        loop {
            let mut lent = Lent::get(&self.pool).await?;
            let work = async {
                let client = lent.client()?;
                conflicts::look(client, effect.name(), set, outcomes).await
            };
            let result = within(self.policy.deadline, work).await;
            lent.settle(&result);
            attempt += 1;
            match result {
                Err(failure) if self.again(&failure, attempt) => {
                    tokio::time::sleep(self.policy.again(attempt)).await;
                }
                Ok(()) => return Ok(()),
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Keeps a delivery that cannot be decided, to be looked at and never applied.
    ///
    /// # Errors
    /// [`InboxError`] if not even that can be done: it must not be acked.
    pub async fn park(
        &self,
        effect: &dyn Effect,
        delivery: &Delivery,
        why: &str,
    ) -> Result<Outcome, InboxError> {
        self.park_all(effect, vec![(delivery, why.to_owned())])
            .await?;
        Ok(Outcome::Parked(Reason::Unreadable))
    }

    async fn park_unreadable(
        &self,
        effect: &dyn Effect,
        deliveries: &[Delivery],
        sorted: &Sorted<'_>,
    ) -> Result<(), InboxError> {
        if sorted.unreadable.is_empty() {
            return Ok(());
        }
        let unreadable = sorted.unreadable.iter().map(|place| &deliveries[*place]);
        let parked = unreadable.map(|delivery| {
            let why = delivery.malformed().map(ToString::to_string);
            (delivery, why.unwrap_or_default())
        });
        self.park_all(effect, parked.collect()).await
    }

    async fn park_all(
        &self,
        effect: &dyn Effect,
        deliveries: Vec<(&Delivery, String)>,
    ) -> Result<(), InboxError> {
        let mut lent = Lent::get(&self.pool).await?;
        let work = async {
            let transaction = lent.client()?.transaction().await?;
            for (delivery, why) in deliveries {
                let verdict = Verdict::evidence(Reason::Unreadable, why);
                rows::insert(&transaction, effect.name(), delivery, &verdict).await?;
            }
            transaction.commit().await?;
            Ok(())
        };
        let result = within(self.policy.deadline, work).await;
        lent.settle(&result);
        Ok(result?)
    }

    pub(crate) fn again(&self, failure: &Failure, attempt: u32) -> bool {
        failure.remedy() == Remedy::Again && attempt < self.policy.tries
    }
}
