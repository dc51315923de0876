//! How a delivery is kept in a row, and read back from it: the exact body beside properties and
//! headers as JSON. Text that PostgreSQL cannot store (it has a NUL) is kept as hex.

use bytes::Bytes;
use event::{Delivered, Digest, HeaderValue};
use serde::{Deserialize, Serialize};

/// Properties and headers of a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Properties {
    message_id: Option<Text>,
    #[serde(rename = "type")]
    kind: Option<Text>,
    content_type: Option<Text>,
    routing_key: Text,
    headers: Vec<Header>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    name: Text,
    #[serde(flatten)]
    value: Value,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Value {
    Text(Text),
    Other(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Hex { hex: String },
}

impl Text {
    fn of(text: &str) -> Self {
        if text.contains('\0') {
            Self::Hex {
                hex: hex::encode(text),
            }
        } else {
            Self::Plain(text.to_owned())
        }
    }

    fn read(self) -> Option<String> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Hex { hex } => String::from_utf8(hex::decode(hex).ok()?).ok(),
        }
    }
}

impl Properties {
    pub(crate) fn of(delivered: &Delivered) -> Self {
        let text = |value: &Option<String>| value.as_deref().map(Text::of);
        let mut headers: Vec<_> = delivered.headers.iter().collect();
        headers.sort_by_key(|(name, _)| name.as_str());
        let header = |(name, value): (&String, &HeaderValue)| Header {
            name: Text::of(name),
            value: match value {
                HeaderValue::Text(text) => Value::Text(Text::of(text)),
                HeaderValue::Other(kind) => Value::Other((*kind).to_owned()),
            },
        };
        Self {
            message_id: text(&delivered.message_id),
            kind: text(&delivered.kind),
            content_type: text(&delivered.content_type),
            routing_key: Text::of(&delivered.routing_key),
            headers: headers.into_iter().map(header).collect(),
        }
    }

    /// The delivery these were taken from; none if they were changed into something else.
    pub(crate) fn delivered(self, body: Vec<u8>) -> Option<Delivered> {
        let text = |value: Option<Text>| match value {
            None => Some(None),
            Some(text) => text.read().map(Some),
        };
        let mut headers = std::collections::HashMap::new();
        for Header { name, value } in self.headers {
            let value = match value {
                Value::Text(text) => HeaderValue::Text(text.read()?),
                // The type's own name is for people; once stored it only says "not text".
                Value::Other(_) => HeaderValue::Other("of another type"),
            };
            headers.insert(name.read()?, value);
        }
        Some(Delivered {
            routing_key: self.routing_key.read()?,
            message_id: text(self.message_id)?,
            kind: text(self.kind)?,
            content_type: text(self.content_type)?,
            headers,
            body: Bytes::from(body),
        })
    }
}

/// Text as PostgreSQL takes it, for columns that people read.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A digest over everything received, for a delivery that is no event.
pub(crate) fn digest_of_all(delivered: &Delivered) -> Digest {
    let properties = serde_json::to_vec(&Properties::of(delivered)).unwrap_or_default();
    Digest::of_bytes([properties.as_slice(), &delivered.body])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test stops at its first surprise")]

    use super::*;

    #[test]
    fn a_delivery_comes_back_as_it_was_even_with_nul_in_its_texts() {
        let text = |value: &str| HeaderValue::Text(value.to_owned());
        let delivered = Delivered {
            routing_key: "a\0b".to_owned(),
            message_id: Some("m".to_owned()),
            kind: None,
            content_type: Some("x/\0".to_owned()),
            headers: [
                ("h-\0".to_owned(), text("v")),
                ("h-b".to_owned(), text("\0")),
                ("h-c".to_owned(), text("{\"hex\":\"00\"}")),
            ]
            .into(),
            body: Bytes::from_static(b"\0\xff"),
        };
        let json = serde_json::to_string(&Properties::of(&delivered)).expect("serializes");
        assert!(!json.contains("\\u0000"), "{json}");
        let read: Properties = serde_json::from_str(&json).expect("parses");
        let back = read.delivered(delivered.body.to_vec()).expect("reads");
        assert_eq!(back.headers, delivered.headers);
        assert_eq!(back.routing_key, delivered.routing_key);
        assert_eq!(back.content_type, delivered.content_type);
        assert_eq!(back.kind, None);
        assert_eq!(digest_of_all(&back), digest_of_all(&delivered));
    }
}
