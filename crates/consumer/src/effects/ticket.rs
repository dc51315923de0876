//! The ticket in an event's payload, distrusted: what another tenant's message could say is not
//! taken from it.

use std::borrow::Cow;

use event::Event;
use inbox::mutant;
use serde::Deserialize;
use uuid::Uuid;

/// Longest subject and body, as the table of tickets has them.
const SUBJECT_CHARS: usize = 255;
const BODY_BYTES: usize = 65_536;

/// A ticket as it travels.
#[derive(Debug, Deserialize)]
pub(super) struct Ticket<'a> {
    #[serde(borrow)]
    tenant_id: Cow<'a, str>,
    ticket_id: Uuid,
    pub(super) version: i64,
    #[serde(borrow)]
    pub(super) subject: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) body: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) priority: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) assignee: Option<Cow<'a, str>>,
    pub(super) updated_at: chrono::DateTime<chrono::Utc>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    ticket: Ticket<'a>,
}

/// The id of the ticket that an event is about.
pub(super) fn id_of(event: &Event) -> Result<Uuid, String> {
    let kind = event.aggregate.aggregate_type.as_str();
    if kind != "ticket" {
        return Err(format!("it is about a {kind}, not a ticket"));
    }
    let id = event.aggregate.aggregate_id.as_str();
    Uuid::try_parse(id)
        .ok()
        .filter(|parsed| parsed.hyphenated().to_string() == id)
        .ok_or_else(|| "its ticket's id is not a UUID in lower case".to_owned())
}

/// The ticket that an event carries.
pub(super) fn read(event: &Event) -> Result<Ticket<'_>, String> {
    let id = id_of(event)?;
    let envelope: Envelope<'_> = serde_json::from_slice(&event.payload)
        .map_err(|error| format!("its payload has no ticket: {error}"))?;
    let ticket = envelope.ticket;
    let believed = mutant::is_planted(mutant::TENANT_FROM_PAYLOAD);
    let foreign = ticket.tenant_id != event.identity.tenant_id.as_str() && !believed;
    if ticket.ticket_id != id || foreign {
        return Err("the ticket in its payload is another one".to_owned());
    }
    if ticket.version < 1
        || event
            .version
            .is_some_and(|version| version != ticket.version)
    {
        return Err("the ticket in its payload has another version".to_owned());
    }
    ticket.check_texts()?;
    Ok(ticket)
}

impl<'a> Ticket<'a> {
    /// The tenant whose row it becomes: the event's, whatever the payload says.
    pub(super) fn tenant(&self, event: &'a Event) -> &'a str {
        match &self.tenant_id {
            Cow::Borrowed(named) if mutant::is_planted(mutant::TENANT_FROM_PAYLOAD) => named,
            Cow::Borrowed(_) | Cow::Owned(_) => event.identity.tenant_id.as_str(),
        }
    }

    fn check_texts(&self) -> Result<(), String> {
        let assignee = self.assignee.as_deref().unwrap_or_default();
        let texts = [
            &self.subject,
            &self.body,
            &self.status,
            &self.priority,
            assignee,
        ];
        if texts.iter().any(|text| text.contains('\0')) {
            return Err("the ticket in its payload has a NUL in a text".to_owned());
        }
        let long = self.subject.chars().count() > SUBJECT_CHARS
            || assignee.chars().count() > SUBJECT_CHARS
            || self.body.len() > BODY_BYTES;
        if long {
            return Err("the ticket in its payload is longer than a ticket may be".to_owned());
        }
        Ok(())
    }
}
