//! What an event is and how it travels: names and limits, lane, content digest, message; no I/O.
//!
//! A caller hands over a [`NewEvent`]; the outbox stores it as an [`Event`]; the relay turns that
//! into a [`Message`]; the consumer reads a delivery back into an [`Event`] with
//! [`Delivered::read`]. Lane and digest are defined by the test vectors in `tests/vectors.json`,
//! which the SQL functions of the same names satisfy too.

mod delivered;
mod digest;
mod lane;
mod limits;
mod message;
mod model;
mod names;

pub use delivered::{Delivered, HeaderValue, Malformed, PartialIdentity};
pub use digest::Digest;
pub use lane::{LANES, Lane};
pub use limits::{
    HEADER_VALUE_BYTES, HEADERS_BYTES, HTTP_BODY_BYTES, NAME_BYTES, PAYLOAD_BYTES, POOL_BYTES,
    TENANT_BYTES, TYPE_BYTES,
};
pub use message::{APP_ID, DEAD_EXCHANGE, EXCHANGE, Message, ROUTING_KEY_HEADER, Unpublishable};
pub use message::{dead_queue_name, queue_name, routing_key};
pub use model::{Aggregate, Event, Headers, Identity, NewEvent, TraceContext};
pub use names::{
    AggregateId, AggregateType, ContentType, EffectName, EventType, HeaderName, InvalidName,
    PoolName, Source, TenantId,
};
