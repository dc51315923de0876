//! The transaction of a set: receipts, what stands in their way, heads, the effect, rows, commit.
//!
//! The order of the steps is the order of the locks (receipts, heads, rows, each in key order),
//! the same in every transaction of this crate. Each step that reads is a statement later than the
//! one that locks: within one statement the snapshot is older than the lock.

use deadpool_postgres::{Object, Transaction};

use crate::conflicts::{self, Other};
use crate::crash;
use crate::delivery::Readable;
use crate::effect::{Applicable, Effect, Place, Refusal};
use crate::lent::Failure;
use crate::mutant;
use crate::order::{HeadKey, Heads};
use crate::outcome::{Outcome, Reason};
use crate::policy::Policy;
use crate::receipts;
use crate::rows::{self, Verdict};
use crate::standing::{self, Met};

/// A set of different identities in key order, for one effect.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) effect: &'a dyn Effect,
    pub(crate) set: &'a [Readable<'a>],
    /// What is not to be applied, whatever the database says, and what its row says instead.
    pub(crate) barred: &'a [Option<Verdict>],
    pub(crate) policy: &'a Policy,
}

/// Applies a set; any refusal undoes all of it.
pub(crate) async fn together(client: &mut Object, job: Job<'_>) -> Result<Vec<Outcome>, Failure> {
    let transaction = client.transaction().await?;
    let mut steps = Steps::receipts(&transaction, job).await?;
    steps.place(&transaction).await?;
    if !steps.apply.is_empty() {
        let events = steps.applicable();
        job.effect
            .apply(&transaction, &events)
            .await
            .map_err(Failure::Effect)?;
        check_constraints(&transaction).await?;
    }
    let outcomes = steps.finish(&transaction).await?;
    crash::point(crash::APPLIED_NOT_COMMITTED);
    transaction.commit().await?;
    Ok(outcomes)
}

/// Applies one delivery; a refusal defers or parks it in the same transaction.
pub(crate) async fn alone(client: &mut Object, job: Job<'_>) -> Result<Vec<Outcome>, Failure> {
    let mut transaction = client.transaction().await?;
    let mut steps = Steps::receipts(&transaction, job).await?;
    steps.place(&transaction).await?;
    if !steps.apply.is_empty() {
        let events = steps.applicable();
        if let Err(refusal) = guarded(&mut transaction, job.effect, &events).await? {
            steps.refuse(&refusal);
        }
    }
    let outcomes = steps.finish(&transaction).await?;
    crash::point(crash::APPLIED_NOT_COMMITTED);
    transaction.commit().await?;
    Ok(outcomes)
}

/// Applies behind a savepoint. The outer error is the transaction's, the inner one the effect's.
pub(crate) async fn guarded(
    transaction: &mut Transaction<'_>,
    effect: &dyn Effect,
    events: &[Applicable<'_>],
) -> Result<Result<(), Refusal>, Failure> {
    let savepoint = transaction.savepoint("effect").await?;
    let applied = match effect.apply(&savepoint, events).await {
        Ok(()) => check_constraints(&savepoint).await.map_err(Refusal::from),
        Err(refusal) => Err(refusal),
    };
    match applied {
        Ok(()) => {
            savepoint.commit().await?;
            Ok(Ok(()))
        }
        Err(refusal) if refusal.is_taken_for_duplicate() => {
            savepoint.rollback().await?;
            Ok(Ok(()))
        }
        Err(refusal) if refusal.is_of_the_database() => Err(Failure::Effect(refusal)),
        Err(refusal) => {
            savepoint.rollback().await?;
            Ok(Err(refusal))
        }
    }
}

/// What the effect left to be checked at COMMIT is checked while it can still be told whose it is.
async fn check_constraints(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    let statement = transaction
        .prepare_cached("set constraints all immediate")
        .await?;
    transaction.execute(&statement, &[]).await?;
    Ok(())
}

/// Where the transaction of a set has got to.
struct Steps<'a> {
    job: Job<'a>,
    outcomes: Vec<Outcome>,
    /// Places in the set of what is applied, in the order of applying.
    apply: Vec<(usize, Place)>,
    /// What keeps no receipt, and what its row says; none where a row is there already.
    withheld: Vec<(usize, Option<Verdict>)>,
    /// What came first, for conflicts.
    conflicts: Vec<(usize, Vec<u8>)>,
    /// New receipts that nothing stands in the way of.
    fresh: Vec<usize>,
    /// Rows that go when their delivery is applied.
    rows: Vec<(usize, i64)>,
    heads: Heads<'a>,
}

impl<'a> Steps<'a> {
    /// Writes the receipts and looks at what stands in their way.
    async fn receipts(transaction: &Transaction<'_>, job: Job<'a>) -> Result<Self, Failure> {
        let name = job.effect.name();
        let new = receipts::insert(transaction, name, job.set).await?;
        if mutant::is_planted(mutant::RECEIPT_OUTSIDE) {
            transaction.batch_execute("commit; begin").await?;
        }
        crash::point(crash::RECEIPT_NOT_APPLIED);
        let places: Vec<usize> = (0..job.set.len()).filter(|place| new[*place]).collect();
        let mut steps = Self {
            job,
            outcomes: vec![Outcome::Duplicate; job.set.len()],
            apply: Vec::new(),
            withheld: Vec::new(),
            conflicts: Vec::new(),
            fresh: Vec::new(),
            rows: Vec::new(),
            heads: Heads::default(),
        };
        if places.is_empty() {
            return Ok(steps);
        }
        let set: Vec<_> = places.iter().map(|place| job.set[*place]).collect();
        let met = standing::look(transaction, name, &set).await?;
        for (place, met) in places.into_iter().zip(met) {
            steps.meet(place, met);
        }
        Ok(steps)
    }

    fn meet(&mut self, place: usize, met: Met) {
        match met {
            Met::Nothing { row } => {
                self.fresh.push(place);
                self.rows.extend(row.map(|row| (place, row)));
            }
            Met::SameRow => self.withheld.push((place, None)),
            Met::Other { first } => {
                self.conflicts.push((place, first));
                self.withhold(place, conflicts::verdict());
            }
            Met::BelowFloor => self.withhold(
                place,
                Verdict::evidence(Reason::BelowFloor, "its id is older than the dedup window"),
            ),
            Met::Ahead => self.withhold(
                place,
                Verdict::evidence(
                    Reason::Ahead,
                    "its id was made more than a day in the future",
                ),
            ),
        }
    }

    fn withhold(&mut self, place: usize, verdict: Verdict) {
        self.outcomes[place] = verdict.outcome();
        self.withheld.push((place, Some(verdict)));
    }

    /// Locks the heads where the effect keeps order, and sorts out what has to wait.
    async fn place(&mut self, transaction: &Transaction<'_>) -> Result<(), Failure> {
        let Job {
            effect,
            set,
            barred,
            policy,
        } = self.job;
        let mut fresh = std::mem::take(&mut self.fresh);
        if effect.keeps_order() && !fresh.is_empty() {
            let events = fresh.iter().map(|place| set[*place].event);
            self.heads = Heads::lock(transaction, effect.name(), events).await?;
            fresh.sort_by_key(|place| {
                let event = set[*place].event;
                (HeadKey::of(event), event.version)
            });
        }
        for place in fresh {
            if let Some(verdict) = barred.get(place).cloned().flatten() {
                self.withhold(place, verdict);
            } else if let Some(found) = self.heads.place(set[place].event, false) {
                self.outcomes[place] = Outcome::Applied;
                self.apply.push((place, found));
            } else {
                let verdict = Verdict::again("waiting", Reason::Order, policy.order_poll());
                self.withhold(place, verdict);
            }
        }
        Ok(())
    }

    fn applicable(&self) -> Vec<Applicable<'a>> {
        let events = self.apply.iter().map(|(place, found)| Applicable {
            event: self.job.set[*place].event,
            digest: self.job.set[*place].digest,
            place: *found,
        });
        events.collect()
    }

    /// The one delivery of this set was refused: it gets a row instead of a receipt.
    fn refuse(&mut self, refusal: &Refusal) {
        for (place, _) in std::mem::take(&mut self.apply) {
            let verdict = refused(refusal, 1, self.job.policy);
            self.withhold(place, verdict);
        }
        self.heads = Heads::default();
    }

    /// Takes back the receipts of what was not applied and writes rows and heads.
    async fn finish(mut self, transaction: &Transaction<'_>) -> Result<Vec<Outcome>, Failure> {
        let Job { effect, set, .. } = self.job;
        let name = effect.name();
        self.withheld.sort_by_key(|(place, _)| *place);
        let without: Vec<_> = self.withheld.iter().map(|(place, _)| set[*place]).collect();
        receipts::delete(transaction, name, &without).await?;
        self.heads.store(transaction, name).await?;
        for (place, verdict) in &self.withheld {
            if let Some(verdict) = verdict
                && !mutant::is_planted(mutant::REFUSED_IS_DROPPED)
            {
                rows::insert(transaction, name, set[*place].delivery, verdict).await?;
            }
        }
        for (place, first) in self.conflicts {
            let other = Other {
                effect: name.to_string(),
                digest: first,
            };
            conflicts::note(transaction, name, set[place], &other).await?;
        }
        let outcomes = self.outcomes;
        let done: Vec<i64> = self
            .rows
            .iter()
            .filter(|(place, _)| outcomes[*place] == Outcome::Applied)
            .map(|(_, row)| *row)
            .collect();
        rows::delete(transaction, &done).await?;
        Ok(outcomes)
    }
}

/// What the row of a refused delivery says after so many attempts.
pub(crate) fn refused(refusal: &Refusal, attempts: i64, policy: &Policy) -> Verdict {
    let detail = refusal.to_string();
    let verdict = match refusal {
        Refusal::Never(_) => Verdict::parked(Reason::Never, detail),
        Refusal::Later(_) | Refusal::Database(_) if attempts >= policy.max_attempts => {
            Verdict::parked(Reason::Attempts, detail)
        }
        Refusal::Later(_) | Refusal::Database(_) => Verdict {
            detail,
            ..Verdict::again("deferred", Reason::Refused, policy.backoff(attempts))
        },
    };
    Verdict {
        attempts,
        ..verdict
    }
}
