//! Reading a delivery back into an event, distrusting every part of it.

use std::collections::HashMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::limits::PAYLOAD_BYTES;
use crate::message::ROUTING_KEY_HEADER;
use crate::model::{Aggregate, Event, Headers, Identity, TraceContext};
use crate::names::{
    AggregateId, AggregateType, ContentType, EventType, InvalidName, PoolName, Source, TenantId,
};

/// A header as received: text, or the name of another AMQP type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// A string of either length.
    Text(String),
    /// Anything else, with what it is.
    Other(&'static str),
}

/// What a delivery says of itself, before any of it is believed.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    /// The key under which it came to the effect's queue, or the original one of a dead letter.
    pub routing_key: String,
    /// The `message_id` property.
    pub message_id: Option<String>,
    /// The `type` property.
    pub kind: Option<String>,
    /// The `content_type` property.
    pub content_type: Option<String>,
    /// All headers.
    pub headers: HashMap<String, HeaderValue>,
    /// The body.
    pub body: Bytes,
}

/// What of an identity could be read from a delivery that is not an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialIdentity {
    /// The event id.
    pub event_id: Option<Uuid>,
    /// The tenant.
    pub tenant_id: Option<TenantId>,
    /// The source.
    pub source: Option<Source>,
}

/// Why a delivery is not an event. It is parked with this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A header or property that must be there is not.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A header is not text.
    #[error("{name} is {kind}, not text")]
    NotText {
        /// The header.
        name: &'static str,
        /// Its AMQP type.
        kind: &'static str,
    },
    /// A value breaks the rule of its name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A value cannot be parsed.
    #[error("{name} {shown} is not {wanted}")]
    Unparsable {
        /// The header.
        name: &'static str,
        /// The value, quoted and cut.
        shown: String,
        /// What it should have been.
        wanted: &'static str,
    },
    /// Two parts of the message disagree.
    #[error("{one} and {other} disagree")]
    Contradiction {
        /// The one part.
        one: &'static str,
        /// The other part.
        other: &'static str,
    },
    /// The body is larger than any event's.
    #[error("the body has {bytes} bytes, the limit is {PAYLOAD_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl Delivered {
    /// Reads the event.
    ///
    /// # Errors
    /// [`Malformed`] with the first thing that is wrong.
    pub fn read(&self) -> Result<Event, Malformed> {
        self.check_spec_version()?;
        let identity = self.identity()?;
        let aggregate = Aggregate {
            aggregate_type: AggregateType::parse(self.required("aggregatetype")?)?,
            aggregate_id: AggregateId::parse(self.required("subject")?)?,
        };
        let event_type = self.event_type()?;
        let (version, previous_version) = self.versions()?;
        let event = Event {
            identity,
            aggregate,
            version,
            previous_version,
            event_type,
            content_type: ContentType::parse(
                self.content_type
                    .as_deref()
                    .ok_or(Malformed::Missing("content_type"))?,
            )?,
            payload: self.body.clone(),
            headers: self.caller_headers(),
            trace_context: TraceContext {
                traceparent: self.text("traceparent").map(str::to_owned),
                tracestate: self.text("tracestate").map(str::to_owned),
            },
            occurred_at: self.time()?,
        };
        self.check_routing_key(&event)?;
        if self.body.len() > PAYLOAD_BYTES {
            return Err(Malformed::TooLarge {
                bytes: self.body.len(),
            });
        }
        Ok(event)
    }

    /// What of the identity can be read, for a delivery that [`Delivered::read`] refuses.
    #[must_use]
    pub fn partial_identity(&self) -> PartialIdentity {
        PartialIdentity {
            event_id: self
                .required("id")
                .ok()
                .and_then(|id| Uuid::parse_str(id).ok()),
            tenant_id: self
                .required("tenantid")
                .ok()
                .and_then(|id| TenantId::parse(id).ok()),
            source: self
                .required("source")
                .ok()
                .and_then(|name| Source::parse(name).ok()),
        }
    }

    /// The key the event was first published under: that of the header for a replayed message.
    #[must_use]
    pub fn original_routing_key(&self) -> &str {
        self.text(ROUTING_KEY_HEADER).unwrap_or(&self.routing_key)
    }

    fn check_spec_version(&self) -> Result<(), Malformed> {
        match self.required("specversion")? {
            "1.0" => Ok(()),
            other => Err(unparsable(
                "specversion",
                other,
                "1.0, the version this one speaks",
            )),
        }
    }

    fn identity(&self) -> Result<Identity, Malformed> {
        let id = self.required("id")?;
        let event_id = Uuid::parse_str(id).map_err(|_| unparsable("id", id, "a UUID"))?;
        let message_id = self
            .message_id
            .as_deref()
            .ok_or(Malformed::Missing("message_id"))?;
        if Uuid::parse_str(message_id) != Ok(event_id) {
            return Err(Malformed::Contradiction {
                one: "message_id",
                other: "cloudEvents:id",
            });
        }
        if event_id.get_version_num() != 7 {
            return Err(unparsable("id", id, "a UUIDv7"));
        }
        Ok(Identity {
            event_id,
            tenant_id: TenantId::parse(self.required("tenantid")?)?,
            source: Source::parse(self.required("source")?)?,
        })
    }

    fn event_type(&self) -> Result<EventType, Malformed> {
        let event_type = EventType::parse(self.required("type")?)?;
        if self
            .kind
            .as_deref()
            .is_some_and(|kind| kind != event_type.as_str())
        {
            return Err(Malformed::Contradiction {
                one: "type",
                other: "cloudEvents:type",
            });
        }
        Ok(event_type)
    }

    fn versions(&self) -> Result<(Option<i64>, Option<i64>), Malformed> {
        let version = self.integer("aggregateversion")?;
        let previous = self.integer("aggregateprevious")?;
        match (version, previous) {
            (None, None) => Ok((None, None)),
            (Some(version), Some(previous)) if previous >= 0 && version > previous => {
                Ok((Some(version), Some(previous)))
            }
            (Some(_), Some(_)) => Err(Malformed::Contradiction {
                one: "cloudEvents:aggregateversion",
                other: "cloudEvents:aggregateprevious",
            }),
            (Some(_), None) => Err(Malformed::Missing("cloudEvents:aggregateprevious")),
            (None, Some(_)) => Err(Malformed::Missing("cloudEvents:aggregateversion")),
        }
    }

    fn integer(&self, name: &'static str) -> Result<Option<i64>, Malformed> {
        match self.cloud(name)? {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| unparsable(name, text, "a whole number of 64 bits")),
        }
    }

    fn time(&self) -> Result<DateTime<Utc>, Malformed> {
        let text = self.required("time")?;
        DateTime::parse_from_rfc3339(text)
            .map(|time| time.to_utc())
            .map_err(|_| unparsable("time", text, "a time of RFC 3339"))
    }

    fn caller_headers(&self) -> Headers {
        let named = self.headers.iter().filter_map(|(name, value)| match value {
            HeaderValue::Text(text) => name
                .strip_prefix("h-")
                .map(|name| (name.to_owned(), text.clone())),
            HeaderValue::Other(_) => None,
        });
        named.collect()
    }

    /// A tenant's event must have come under that tenant's key: the broker's permissions are
    /// given by routing key, so a key of another tenant is somebody else's message.
    fn check_routing_key(&self, event: &Event) -> Result<(), Malformed> {
        let contradiction = Malformed::Contradiction {
            one: "routing key",
            other: "tenant or type",
        };
        let mut parts = self.original_routing_key().splitn(4, '.');
        let pool = parts.next().unwrap_or_default();
        let lane = parts.next().unwrap_or_default();
        let tenant = parts.next();
        let kind = parts.next();
        let fits = PoolName::parse(pool).is_ok()
            && lane == format!("{:02}", event.lane().number())
            && tenant == Some(event.identity.tenant_id.as_str())
            && kind == Some(event.event_type.as_str());
        if fits { Ok(()) } else { Err(contradiction) }
    }

    fn required(&self, name: &'static str) -> Result<&str, Malformed> {
        self.cloud(name)?.ok_or(Malformed::Missing(name))
    }

    /// A `CloudEvents` attribute under either of the two prefixes the binding allows.
    fn cloud(&self, name: &'static str) -> Result<Option<&str>, Malformed> {
        let colon = self.headers.get(&format!("cloudEvents:{name}"));
        let underscore = self.headers.get(&format!("cloudEvents_{name}"));
        if let (Some(one), Some(other)) = (colon, underscore)
            && one != other
        {
            return Err(Malformed::Contradiction {
                one: "cloudEvents:",
                other: "cloudEvents_",
            });
        }
        match colon.or(underscore) {
            None => Ok(None),
            Some(HeaderValue::Text(text)) => Ok(Some(text)),
            Some(HeaderValue::Other(kind)) => Err(Malformed::NotText { name, kind }),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.headers.get(name) {
            Some(HeaderValue::Text(text)) => Some(text),
            Some(HeaderValue::Other(_)) | None => None,
        }
    }
}

fn unparsable(name: &'static str, value: &str, wanted: &'static str) -> Malformed {
    let shown: String = value.chars().take(80).collect();
    Malformed::Unparsable {
        name,
        shown: format!("{shown:?}"),
        wanted,
    }
}
