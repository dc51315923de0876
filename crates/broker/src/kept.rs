//! A delivery's properties as JSON, to be kept in the database and read again later.
//!
//! Every AMQP type has a form of its own, so that nothing is lost: text and whole numbers as they
//! are, everything else under a name, e.g. `{"timestamp": 1}`. PostgreSQL's `jsonb` refuses NUL in
//! text, hence text with a NUL is kept as base64, like bytes that are not text at all.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use event::{Delivered, HeaderValue};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use serde_json::{Map, Value, json};

use crate::decode::{
    ARRAY, BOOLEAN, BYTES, DECIMAL, FLOAT, INTEGER, NOT_UTF8, NOTHING, TABLE, TIMESTAMP,
};

/// How deep tables and arrays are followed: what is deeper is nobody's business data.
const DEEPEST: usize = 32;

/// A delivery's key and properties as JSON.
pub(crate) fn keep(exchange: &str, routing_key: &str, properties: &BasicProperties) -> Value {
    let mut kept = Map::new();
    kept.insert("exchange".into(), text(exchange.as_bytes()));
    kept.insert("routing_key".into(), text(routing_key.as_bytes()));
    let texts: [(&str, &Option<ShortString>); 10] = [
        ("message_id", properties.message_id()),
        ("type", properties.kind()),
        ("content_type", properties.content_type()),
        ("content_encoding", properties.content_encoding()),
        ("correlation_id", properties.correlation_id()),
        ("reply_to", properties.reply_to()),
        ("expiration", properties.expiration()),
        ("user_id", properties.user_id()),
        ("app_id", properties.app_id()),
        ("cluster_id", properties.cluster_id()),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            kept.insert(name.into(), text(value.as_str().as_bytes()));
        }
    }
    let numbers = [
        ("timestamp", *properties.timestamp()),
        ("delivery_mode", properties.delivery_mode().map(u64::from)),
        ("priority", properties.priority().map(u64::from)),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            kept.insert(name.into(), value.into());
        }
    }
    if let Some(headers) = properties.headers() {
        kept.insert("headers".into(), table(headers, 0));
    }
    Value::Object(kept)
}

/// The delivery that was kept, with its body. What does not look like something kept here is
/// read as missing, which the inbox then says.
#[must_use]
pub fn restore(kept: &Value, body: Bytes) -> Delivered {
    let property = |name: &str| match kept.get(name).map(header) {
        Some(HeaderValue::Text(text)) => Some(text),
        Some(HeaderValue::Other(_)) | None => None,
    };
    let headers = kept.get("headers").and_then(Value::as_object);
    Delivered {
        routing_key: property("routing_key").unwrap_or_default(),
        message_id: property("message_id"),
        kind: property("type"),
        content_type: property("content_type"),
        headers: headers
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), header(value)))
            .collect::<HashMap<_, _>>(),
        body,
    }
}

fn header(kept: &Value) -> HeaderValue {
    HeaderValue::Other(match kept {
        Value::String(text) => return HeaderValue::Text(text.clone()),
        Value::Null => NOTHING,
        Value::Bool(_) => BOOLEAN,
        Value::Number(_) => INTEGER,
        Value::Array(_) => ARRAY,
        Value::Object(form) => match form.iter().next() {
            Some((name, Value::String(base64))) if name == "text" => match decoded(base64) {
                Some(text) => return HeaderValue::Text(text),
                None => NOT_UTF8,
            },
            Some((name, _)) => match name.as_str() {
                "float" => FLOAT,
                "decimal" => DECIMAL,
                "timestamp" => TIMESTAMP,
                "bytes" => BYTES,
                _ => TABLE,
            },
            None => TABLE,
        },
    })
}

fn decoded(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text.into(),
        Ok(_) | Err(_) => json!({ "text": STANDARD.encode(bytes) }),
    }
}

fn table(table: &FieldTable, depth: usize) -> Value {
    let entries = table.inner().iter();
    Value::Object(
        entries
            // A name with a NUL is no header of ours; a visible stand-in will do.
            .map(|(name, entry)| (name.as_str().replace('\0', "␀"), value(entry, depth + 1)))
            .collect(),
    )
}

fn value(value: &AMQPValue, depth: usize) -> Value {
    if depth > DEEPEST {
        return json!({ "table": "too deep" });
    }
    match value {
        AMQPValue::Void => Value::Null,
        AMQPValue::Boolean(value) => (*value).into(),
        AMQPValue::ShortShortInt(value) => (*value).into(),
        AMQPValue::ShortShortUInt(value) => (*value).into(),
        AMQPValue::ShortInt(value) => (*value).into(),
        AMQPValue::ShortUInt(value) => (*value).into(),
        AMQPValue::LongInt(value) => (*value).into(),
        AMQPValue::LongUInt(value) => (*value).into(),
        AMQPValue::LongLongInt(value) => (*value).into(),
        AMQPValue::Float(value) => json!({ "float": value.to_string() }),
        AMQPValue::Double(value) => json!({ "float": value.to_string() }),
        AMQPValue::DecimalValue(value) => json!({ "decimal": [value.scale, value.value] }),
        AMQPValue::ShortString(value) => text(value.as_str().as_bytes()),
        AMQPValue::LongString(value) => text(value.as_bytes()),
        AMQPValue::Timestamp(value) => json!({ "timestamp": value }),
        AMQPValue::ByteArray(value) => json!({ "bytes": STANDARD.encode(value.as_slice()) }),
        AMQPValue::FieldTable(value) => json!({ "table": table(value, depth) }),
        AMQPValue::FieldArray(array) => {
            let entries = array.as_slice().iter();
            entries.map(|entry| self::value(entry, depth + 1)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use lapin::message::Delivery;
    use lapin::types::{ByteArray, DecimalValue, FieldArray, LongString};
    use proptest::prelude::*;

    use super::*;
    use crate::decode::delivered;

    fn any_text() -> impl Strategy<Value = ShortString> {
        "[a-zA-Zé\u{0} :_-]{0,12}".prop_map(|text| ShortString::try_new(text).unwrap_or_default())
    }

    fn any_value() -> impl Strategy<Value = AMQPValue> {
        let leaf = prop_oneof![
            Just(AMQPValue::Void),
            any::<bool>().prop_map(AMQPValue::Boolean),
            any::<i8>().prop_map(AMQPValue::ShortShortInt),
            any::<u8>().prop_map(AMQPValue::ShortShortUInt),
            any::<i16>().prop_map(AMQPValue::ShortInt),
            any::<u16>().prop_map(AMQPValue::ShortUInt),
            any::<i32>().prop_map(AMQPValue::LongInt),
            any::<u32>().prop_map(AMQPValue::LongUInt),
            any::<i64>().prop_map(AMQPValue::LongLongInt),
            any::<f32>().prop_map(AMQPValue::Float),
            any::<f64>().prop_map(AMQPValue::Double),
            any::<u64>().prop_map(AMQPValue::Timestamp),
            (any::<u8>(), any::<u32>())
                .prop_map(|(scale, value)| AMQPValue::DecimalValue(DecimalValue { scale, value })),
            any_text().prop_map(AMQPValue::ShortString),
            prop::collection::vec(any::<u8>(), 0..12)
                .prop_map(|bytes| AMQPValue::LongString(LongString::from(bytes))),
            prop::collection::vec(any::<u8>(), 0..12)
                .prop_map(|bytes| AMQPValue::ByteArray(ByteArray::from(bytes))),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|values| AMQPValue::FieldArray(FieldArray::from(values))),
                prop::collection::btree_map(any_text(), inner, 0..4)
                    .prop_map(|fields| AMQPValue::FieldTable(FieldTable::from(fields))),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_restored_reads_like_what_was_received(
            headers in prop::collection::btree_map("[a-z:-]{1,12}", any_value(), 0..6),
            texts in prop::collection::vec(prop::option::of(any_text()), 3),
            routing_key in any_text(),
            body in prop::collection::vec(any::<u8>(), 0..32),
        ) {
            let mut properties = BasicProperties::default().with_headers(FieldTable::from(
                headers.into_iter().map(|(name, value)| (ShortString::from(name), value)).collect::<std::collections::BTreeMap<_, _>>(),
            ));
            let setters = [BasicProperties::with_message_id, BasicProperties::with_type, BasicProperties::with_content_type];
            for (set, text) in setters.into_iter().zip(texts) {
                if let Some(text) = text {
                    properties = set(properties, text);
                }
            }
            let kept = keep("ticketflow.events", routing_key.as_str(), &properties);
            prop_assert!(!kept.to_string().contains("\\u0000"), "{kept}");
            let mut delivery = Delivery::mock(1, "ticketflow.events".into(), routing_key, false, body.clone());
            delivery.properties = properties;
            let (received, death) = delivered(&mut delivery);
            prop_assert_eq!(death, None);
            let restored = restore(&kept, body.into());
            prop_assert_eq!(&restored.routing_key, &received.routing_key);
            prop_assert_eq!(&restored.message_id, &received.message_id);
            prop_assert_eq!(&restored.kind, &received.kind);
            prop_assert_eq!(&restored.content_type, &received.content_type);
            prop_assert_eq!(&restored.headers, &received.headers);
            prop_assert_eq!(&restored.body, &received.body);
        }
    }

    #[test]
    fn what_was_not_kept_here_is_read_as_missing() {
        for odd in [
            json!(null),
            json!([]),
            json!({"headers": 1, "message_id": 2}),
            json!("x"),
        ] {
            let restored = restore(&odd, Bytes::new());
            assert_eq!(restored.message_id, None);
            assert!(restored.headers.is_empty() && restored.read().is_err());
        }
    }
}
