//! A delivery as the inbox takes it: what was received, and what of it could be read.

use event::{Delivered, Digest, Event, Identity, Malformed, PoolName};

use crate::stored;

/// A delivery of one effect's queue.
#[derive(Debug, Clone)]
pub struct Delivery {
    pool: PoolName,
    delivered: Delivered,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Readable(Box<Event>, Digest),
    Unreadable(Malformed, Digest),
}

impl Delivery {
    /// Reads what was received from a queue of this pool.
    #[must_use]
    pub fn read(pool: PoolName, delivered: Delivered) -> Self {
        let content = match delivered.read() {
            Ok(event) => {
                let digest = Digest::of(&event);
                Content::Readable(Box::new(event), digest)
            }
            Err(malformed) => {
                let digest = stored::digest_of_all(&delivered);
                Content::Unreadable(malformed, digest)
            }
        };
        Self {
            pool,
            delivered,
            content,
        }
    }

    /// The pool whose queue it came from.
    #[must_use]
    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// What was received.
    #[must_use]
    pub fn delivered(&self) -> &Delivered {
        &self.delivered
    }

    /// The event, if it could be read.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        match &self.content {
            Content::Readable(event, _) => Some(event),
            Content::Unreadable(..) => None,
        }
    }

    /// Why it could not be read.
    #[must_use]
    pub fn malformed(&self) -> Option<&Malformed> {
        match &self.content {
            Content::Readable(..) => None,
            Content::Unreadable(malformed, _) => Some(malformed),
        }
    }

    /// The content digest; of everything received if no event could be read.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        match &self.content {
            Content::Readable(_, digest) | Content::Unreadable(_, digest) => digest,
        }
    }
}

/// A readable delivery, borrowed: what the steps of a transaction work on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readable<'a> {
    pub(crate) delivery: &'a Delivery,
    pub(crate) event: &'a Event,
    pub(crate) digest: &'a Digest,
}

impl<'a> Readable<'a> {
    pub(crate) fn of(delivery: &'a Delivery) -> Option<Self> {
        match &delivery.content {
            Content::Readable(event, digest) => Some(Self {
                delivery,
                event,
                digest,
            }),
            Content::Unreadable(..) => None,
        }
    }

    pub(crate) fn identity(&self) -> &'a Identity {
        &self.event.identity
    }

    /// The order in which receipts are locked.
    pub(crate) fn key(&self) -> (uuid::Uuid, &'a str, &'a str) {
        let identity = self.identity();
        (
            identity.event_id,
            identity.tenant_id.as_str(),
            identity.source.as_str(),
        )
    }
}
