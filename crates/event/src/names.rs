//! Names that are safe by construction: one parse function for each, used by every crate.

use std::fmt;

use crate::limits::{NAME_BYTES, POOL_BYTES, TENANT_BYTES, TYPE_BYTES};

/// A name that breaks its rule. Says which name, the rule, and a shortened form of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {shown} is not valid: {rule}")]
pub struct InvalidName {
    /// Which name it was to be, e.g. `tenant id`.
    pub what: &'static str,
    /// What the name must be.
    pub rule: &'static str,
    /// The refused value, quoted, escaped and cut.
    pub shown: String,
}

impl InvalidName {
    fn new(what: &'static str, rule: &'static str, value: &str) -> Self {
        let cut: String = value.chars().take(80).collect();
        let dots = if cut.len() < value.len() { "…" } else { "" };
        Self {
            what,
            rule,
            shown: format!("{cut:?}{dots}"),
        }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Box<str>);

        impl $type {
            /// Takes the text if it follows the rule of this name.
            ///
            /// # Errors
            /// [`InvalidName`] says what the rule is.
            pub fn parse(value: &str) -> Result<Self, InvalidName> {
                let valid: fn(&str) -> bool = $valid;
                if valid(value) {
                    Ok(Self(value.into()))
                } else {
                    Err(InvalidName::new($what, $rule, value))
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl std::str::FromStr for $type {
            type Err = InvalidName;

            fn from_str(value: &str) -> Result<Self, InvalidName> {
                Self::parse(value)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A tenant. Its alphabet has no character that means something in a routing key.
    TenantId,
    "tenant id",
    "1 to 63 of a-z, 0-9, '_' and '-', starting with a letter or digit",
    |value| is_label(value, TENANT_BYTES)
);
name!(
    /// A set of tenants with queues and processes of their own.
    PoolName,
    "pool",
    "1 to 32 of a-z, 0-9, '_' and '-', starting with a letter or digit, and not 'dead'",
    |value| is_label(value, POOL_BYTES) && value != "dead"
);
name!(
    /// An effect, the last part of its queues' names.
    EffectName,
    "effect",
    "1 to 32 of a-z, 0-9, '_' and '-', starting with a letter or digit, and not 'dead'",
    |value| is_label(value, POOL_BYTES) && value != "dead"
);
name!(
    /// What happened, e.g. `ticket.created`: the last words of a routing key.
    EventType,
    "event type",
    "words of a-z, 0-9 and '_' joined by '.', at most 100 bytes",
    is_dotted
);
name!(
    /// What kind of thing an event is about, e.g. `ticket`.
    AggregateType,
    "aggregate type",
    "words of a-z, 0-9 and '_' joined by '.', at most 100 bytes",
    is_dotted
);
name!(
    /// Which thing an event is about, in its owner's own words.
    AggregateId,
    "aggregate id",
    "1 to 255 bytes of UTF-8 without control characters",
    is_short_text
);
name!(
    /// The system that recorded the event: part of its identity.
    Source,
    "source",
    "1 to 255 bytes of UTF-8 without control characters",
    is_short_text
);
name!(
    /// The media type of a payload.
    ContentType,
    "content type",
    "1 to 255 bytes of UTF-8 without control characters",
    is_short_text
);
name!(
    /// The name of a caller-given header, without the prefix `h-` under which it travels.
    HeaderName,
    "header name",
    "1 to 253 bytes of UTF-8 without control characters",
    |value| is_short_text(value) && value.len() + "h-".len() <= NAME_BYTES
);

fn is_label(value: &str, most: usize) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = value.bytes();
    value.len() <= most
        && bytes.next().is_some_and(alphanumeric)
        && bytes.all(|byte| alphanumeric(byte) || byte == b'_' || byte == b'-')
}

fn is_dotted(value: &str) -> bool {
    let in_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    value.len() <= TYPE_BYTES
        && value
            .split('.')
            .all(|word| !word.is_empty() && word.bytes().all(in_word))
}

fn is_short_text(value: &str) -> bool {
    (1..=NAME_BYTES).contains(&value.len()) && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_ids_that_collide_or_misroute_are_refused() {
        let long = "a".repeat(64);
        let bad = [
            "", " ", "a.b", "a.*", "#", "*", "A", "é", "e\u{301}", "a/b", "..", "a\0", "a\nb",
            "-a", "_a", &long,
        ];
        for id in bad {
            assert!(TenantId::parse(id).is_err(), "{id:?}");
        }
        for id in ["a", "0", "no_tenant", "default", "a-b_c9", &"a".repeat(63)] {
            assert_eq!(
                TenantId::parse(id).map(|t| t.to_string()),
                Ok(id.to_owned())
            );
        }
    }

    #[test]
    fn dead_is_taken() {
        assert!(PoolName::parse("dead").is_err());
        assert!(EffectName::parse("dead").is_err());
        assert!(PoolName::parse("deadly").is_ok());
    }

    #[test]
    fn event_types_are_dotted_words() {
        for good in ["ticket.created", "a", "a_1.b"] {
            assert!(EventType::parse(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "A",
            "a-b",
            "a b",
            &"a".repeat(101),
        ] {
            assert!(EventType::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn short_text_is_counted_in_bytes_and_has_no_control_characters() {
        assert!(AggregateId::parse(&"é".repeat(127)).is_ok());
        assert!(AggregateId::parse(&"é".repeat(128)).is_err());
        for bad in ["", "a\u{7f}", "a\u{85}", "\t"] {
            assert!(Source::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_error_names_the_rule_and_shortens_the_value() {
        let error = TenantId::parse(&"X".repeat(500)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("tenant id") && text.contains("1 to 63"),
            "{text}"
        );
        assert!(text.len() < 250, "{text}");
    }
}
