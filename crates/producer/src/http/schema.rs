//! The bodies as the OpenAPI document describes them. They are read and written elsewhere, byte
//! for byte; a test holds the two to each other.

#![expect(
    dead_code,
    reason = "they only describe; no request is read into them, which would change its bytes"
)]

use chrono::{DateTime, Utc};
use utoipa::ToSchema;
use uuid::Uuid;

/// A ticket to be made.
#[derive(ToSchema)]
#[schema(as = NewTicket)]
pub(super) struct NewTicketBody {
    /// 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255)]
    pub(super) subject: String,
    /// At most 64 KiB.
    #[schema(max_length = 65536)]
    pub(super) body: Option<String>,
    pub(super) priority: Option<Priority>,
    #[schema(min_length = 1, max_length = 255)]
    pub(super) assignee: Option<String>,
    /// Any JSON; it reaches the consumer as the same bytes.
    #[schema(value_type = Value)]
    pub(super) payload: Option<serde_json::Value>,
}

/// What is to be changed; at least one member.
#[derive(ToSchema)]
#[schema(as = Change)]
pub(super) struct ChangeBody {
    /// 1 to 255 characters.
    #[schema(min_length = 1, max_length = 255, nullable = false)]
    pub(super) subject: Option<String>,
    /// At most 64 KiB; null empties it.
    #[schema(max_length = 65536)]
    pub(super) body: Option<String>,
    #[schema(nullable = false)]
    pub(super) status: Option<Status>,
    #[schema(nullable = false)]
    pub(super) priority: Option<Priority>,
    /// Null takes the assignee away.
    #[schema(min_length = 1, max_length = 255)]
    pub(super) assignee: Option<String>,
    /// Any JSON; it reaches the consumer as the same bytes.
    #[schema(value_type = Value)]
    pub(super) payload: Option<serde_json::Value>,
}

/// A ticket.
#[derive(ToSchema)]
#[schema(as = Ticket)]
pub(super) struct TicketBody {
    pub(super) tenant_id: String,
    pub(super) ticket_id: Uuid,
    /// Also the entity tag, in quotes.
    #[schema(minimum = 1)]
    pub(super) version: i64,
    pub(super) subject: String,
    pub(super) body: String,
    pub(super) status: Status,
    pub(super) priority: Priority,
    #[schema(required)]
    pub(super) assignee: Option<String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
}

/// A ticket as it was made or changed, with the event that tells so.
#[derive(ToSchema)]
#[schema(as = WrittenTicket)]
pub(super) struct WrittenBody {
    #[schema(inline)]
    #[serde(flatten)]
    pub(super) ticket: TicketBody,
    pub(super) event_id: Uuid,
}

/// Tickets, newest first.
#[derive(ToSchema)]
#[schema(as = Page)]
pub(super) struct PageBody {
    pub(super) tickets: Vec<TicketBody>,
    /// Give it as `after` for the next page; null on the last one.
    #[schema(required)]
    pub(super) next: Option<Uuid>,
}

/// Where a ticket stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Status {
    Open,
    Pending,
    Resolved,
    Closed,
}

/// How much it matters.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Priority {
    Low,
    Normal,
    High,
    Urgent,
}
