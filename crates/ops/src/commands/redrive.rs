//! `redrive`: parked things round again, with their ids.
//!
//! A filter names rows without locks; each kind's own crate then locks them and takes those that
//! are still parked, so that two redrives at once do it once.

use std::time::Duration;

use deadpool_postgres::Transaction;
use event::{EffectName, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::parked::word;
use crate::action::Action;
use crate::cli::{ParkedId, ParkedKind, Redrive, Selection};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

pub(crate) async fn run(context: &Context, redrive: &Redrive) -> Result<Report, Failure> {
    let work = context
        .database
        .transaction(context.deadline, async |transaction| {
            let wanted = Wanted::of(redrive)?;
            let events = wanted.events(context, transaction).await?;
            let deliveries = wanted.deliveries(context, transaction).await?;
            let tasks = wanted.tasks(context, transaction).await?;
            let number = events.len() + deliveries.len() + tasks.len();
            let what = if redrive.dry_run {
                "would send"
            } else {
                "sent"
            };
            let told = format!(
                "{what} {} events, {} deliveries and {} tasks round again",
                events.len(),
                deliveries.len(),
                tasks.len()
            );
            let json = json!({
                "redriven": number, "dry_run": redrive.dry_run,
                "events": events, "deliveries": deliveries, "tasks": tasks,
            });
            if number == 0 && !redrive.ids.is_empty() {
                let told =
                    "none of these is parked and can be applied; see `ticketflow parked show`";
                return Err(Failure::NotFound(told.to_owned()));
            }
            Ok(Report::done(told, json))
        });
    work.await
}

/// What is meant, by kind.
struct Wanted<'a> {
    asked: &'a Redrive,
    selection: &'a Selection,
    uuids: Option<Vec<Uuid>>,
    numbers: Option<Vec<i64>>,
}

impl<'a> Wanted<'a> {
    fn of(asked: &'a Redrive) -> Result<Self, Failure> {
        let selection = &asked.selection;
        let filtered = selection.kind.is_some()
            || selection.tenant.is_some()
            || selection.effect.is_some()
            || selection.reason.is_some()
            || selection.older_than.is_some();
        if asked.ids.is_empty() && !filtered && !asked.all {
            let told =
                "say what: ids, --tenant, --reason, --older-than, --effect, --kind, or --all";
            return Err(Failure::Misused(told.to_owned()));
        }
        let named = !asked.ids.is_empty();
        let uuids = asked.ids.iter().filter_map(|id| match id {
            ParkedId::Uuid(id) => Some(*id),
            ParkedId::Number(_) => None,
        });
        let numbers = asked.ids.iter().filter_map(|id| match id {
            ParkedId::Uuid(_) => None,
            ParkedId::Number(number) => Some(*number),
        });
        Ok(Self {
            asked,
            selection,
            uuids: named.then(|| uuids.collect()),
            numbers: named.then(|| numbers.collect()),
        })
    }

    fn tenant(&self) -> Option<&str> {
        self.selection.tenant.as_ref().map(TenantId::as_str)
    }

    /// Whether things of this kind can be meant. Only deliveries have an effect.
    fn includes(&self, kind: ParkedKind) -> bool {
        let of_kind = self.selection.kind.is_none_or(|only| only == kind);
        of_kind && (self.selection.effect.is_none() || kind == ParkedKind::Delivery)
    }

    async fn events(
        &self,
        context: &Context,
        transaction: &Transaction<'_>,
    ) -> Result<Vec<Uuid>, Failure> {
        if !self.includes(ParkedKind::Event) {
            return Ok(Vec::new());
        }
        let filter = outbox::ParkedFilter {
            ids: self.uuids.as_deref(),
            tenant_id: self.tenant(),
            reason: self.selection.reason.as_deref(),
            older_than: self.selection.older_than,
            newer_than: Some(self.asked.oldest_redrive),
            limit: self.selection.limit,
        };
        let parked = outbox::parked(transaction, &filter).await?;
        if self.asked.dry_run {
            return Ok(parked.iter().map(|event| event.key.event_id).collect());
        }
        let redriven = outbox::redrive(transaction, &parked, self.asked.stagger).await?;
        let ids: Vec<Uuid> = redriven.iter().map(|key| key.event_id).collect();
        self.note(context, transaction, (ParkedKind::Event, json!(ids)))
            .await?;
        Ok(ids)
    }

    async fn deliveries(
        &self,
        context: &Context,
        transaction: &Transaction<'_>,
    ) -> Result<Vec<i64>, Failure> {
        if !self.includes(ParkedKind::Delivery) {
            return Ok(Vec::new());
        }
        let filter = inbox::ParkedFilter {
            ids: self.numbers.as_deref(),
            tenant_id: self.tenant(),
            effect: self.selection.effect.as_ref().map(EffectName::as_str),
            reason: self.selection.reason.as_deref(),
            older_than: self.selection.older_than,
            newer_than: Some(self.asked.oldest_redrive),
            limit: self.selection.limit,
        };
        let parked = inbox::applicable(transaction, &filter).await?;
        if self.asked.dry_run {
            return Ok(parked);
        }
        let redriven = inbox::redrive(transaction, &parked, self.asked.stagger).await?;
        self.note(
            context,
            transaction,
            (ParkedKind::Delivery, json!(redriven)),
        )
        .await?;
        Ok(redriven)
    }

    async fn tasks(
        &self,
        context: &Context,
        transaction: &Transaction<'_>,
    ) -> Result<Vec<Uuid>, Failure> {
        if !self.includes(ParkedKind::Task) {
            return Ok(Vec::new());
        }
        let which = outside::operate::Which {
            tenant_id: self.tenant().map(str::to_owned),
            reason: self.selection.reason.clone(),
            task_ids: self.uuids.clone(),
            older_than: self.selection.older_than,
            most: self.selection.limit,
        };
        if self.asked.dry_run {
            let parked = outside::operate::parked(&**transaction, &which).await?;
            return Ok(parked.iter().map(|task| task.task_id).collect());
        }
        // It notes the action itself, for each tenant.
        let action = outside::operate::Action {
            actor: context.actor.clone(),
            reason: self.asked.because.because.clone(),
        };
        Ok(outside::operate::redrive(transaction, &which, self.asked.stagger, &action).await?)
    }

    async fn note(
        &self,
        context: &Context,
        transaction: &Transaction<'_>,
        (kind, ids): (ParkedKind, Value),
    ) -> Result<(), Failure> {
        let number = ids.as_array().map_or(0, Vec::len);
        if number == 0 {
            return Ok(());
        }
        let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
        let target = json!({
            "kind": word(kind), "ids": self.asked.ids.len(), "reason": self.selection.reason,
            "older_than_seconds": seconds(self.selection.older_than),
            "stagger_seconds": seconds(Some(self.asked.stagger)),
        });
        let action = Action {
            name: "redrive",
            tenant: self.selection.tenant.as_ref(),
            target,
            because: &self.asked.because.because,
            result: json!({ "redriven": number, "ids": ids }),
        };
        context.note(transaction, action).await
    }
}
