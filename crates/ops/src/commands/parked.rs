//! `parked`: what waits for a person, in the outbox, at a consumer, or on its way to the outside.

use event::{EffectName, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::cli::{ParkedCommand, ParkedId, ParkedKind, Selection};
use crate::context::Context;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::render;
use crate::report::Report;

pub(crate) async fn run(context: &Context, command: ParkedCommand) -> Result<Report, Failure> {
    match command {
        ParkedCommand::List(selection) => list(context, &selection).await,
        ParkedCommand::Show { id, body } => show(context, id, body).await,
    }
}

/// The word for a kind in listings and `operator_actions`.
pub(super) fn word(kind: ParkedKind) -> &'static str {
    match kind {
        ParkedKind::Event => "event",
        ParkedKind::Delivery => "delivery",
        ParkedKind::Task => "task",
    }
}

async fn list(context: &Context, selection: &Selection) -> Result<Report, Failure> {
    let kind = selection.kind.map(word);
    let tenant = selection.tenant.as_ref().map(TenantId::as_str);
    let effect = selection.effect.as_ref().map(EffectName::as_str);
    let older = selection.older_than.map(|age| age.as_secs_f64());
    let values: [&(dyn ToSql + Sync); 6] = [
        &kind,
        &tenant,
        &effect,
        &selection.reason,
        &older,
        &selection.limit,
    ];
    let listing = context
        .list(include_str!("../sql/parked.sql"), &values)
        .await?;
    Ok(Report::listing(listing, "nothing is parked"))
}

async fn show(context: &Context, id: ParkedId, body: bool) -> Result<Report, Failure> {
    let missing = |what: &str| {
        let told =
            format!("there is no parked {what}; `ticketflow parked list` shows what there is");
        Failure::NotFound(told)
    };
    let (name, listing) = match id {
        ParkedId::Number(number) => {
            let text = include_str!("../sql/parked_delivery.sql");
            let listing = context.list(text, &[&number]).await?;
            if listing.is_empty() {
                return Err(missing(&format!("delivery number {number}")));
            }
            ("delivery", listing)
        }
        ParkedId::Uuid(id) => find(context, id)
            .await?
            .ok_or_else(|| missing(&format!("event or task {id}")))?,
    };
    if body {
        let bytes = hex::decode(listing.first()["body"].as_str().unwrap_or_default());
        render::say_bytes(&bytes.unwrap_or_default())
            .map_err(|error| Failure::Refused(error.to_string()))?;
        return Ok(Report::silent());
    }
    Ok(Report::default().card(name, readable(listing)))
}

async fn find(context: &Context, id: Uuid) -> Result<Option<(&'static str, Listing)>, Failure> {
    let event = context
        .list(include_str!("../sql/parked_event.sql"), &[&id])
        .await?;
    if !event.is_empty() {
        return Ok(Some(("event", event)));
    }
    let task = context
        .list(include_str!("../sql/parked_task.sql"), &[&id])
        .await?;
    Ok((!task.is_empty()).then_some(("task", task)))
}

/// The body as text where it is, cut; all of it is had with `--body`.
fn readable(mut listing: Listing) -> Listing {
    const SHOWN: usize = 2000;
    for row in &mut listing.rows {
        let Some(bytes) = row
            .get("body")
            .and_then(|hex| hex::decode(hex.as_str()?).ok())
        else {
            continue;
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) if text.chars().count() <= SHOWN => text,
            Ok(text) => format!("{}…", text.chars().take(SHOWN).collect::<String>()),
            Err(error) => format!("{} bytes that are not text", error.as_bytes().len()),
        };
        row.insert("body".to_owned(), text.into());
    }
    listing
}
