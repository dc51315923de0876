//! The content digest: what makes two deliveries of one identity the same event.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::model::Event;

/// The first byte of what is hashed: the version of this format.
const FORMAT: u8 = 1;

/// SHA-256 over identity, what the event is about, type and payload.
///
/// Headers and trace context are not part of it, since a replay may change them. The rule and
/// test vectors are in `tests/vectors.json`; `ticketflow.event_digest` computes the same in SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of an event.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        let id = event.identity.event_id.hyphenated().to_string();
        let version = event
            .version
            .map(|version| version.to_string())
            .unwrap_or_default();
        let fields: [&[u8]; 9] = [
            id.as_bytes(),
            event.identity.tenant_id.as_str().as_bytes(),
            event.identity.source.as_str().as_bytes(),
            event.aggregate.aggregate_type.as_str().as_bytes(),
            event.aggregate.aggregate_id.as_str().as_bytes(),
            version.as_bytes(),
            event.event_type.as_str().as_bytes(),
            event.content_type.as_str().as_bytes(),
            &event.payload,
        ];
        let mut hash = Sha256::new();
        hash.update([FORMAT]);
        for field in fields {
            // Names and payloads are bounded far below 4 GiB; a longer field could not be stored.
            let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
            hash.update(length.to_be_bytes());
            hash.update(field);
        }
        Self(hash.finalize().into())
    }

    /// The digest of bytes that could not be read as an event: the whole message as received.
    #[must_use]
    pub fn of_bytes<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        hash.update([0]);
        for part in parts {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            hash.update(length.to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// A stored digest, if it has the right length.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
