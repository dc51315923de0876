//! From an AMQP delivery to what the inbox reads; nothing in it is trusted.

use bytes::Bytes;
use event::{DEAD_EXCHANGE, Delivered, HeaderValue};
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};

/// Where a dead letter died, from the broker's `x-death` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The effect's queue: the dead letter's routing key, and the entry of `x-death` for it.
    pub queue: String,
    /// Why, e.g. `delivery_limit`, `rejected`; empty if the broker did not say.
    pub reason: String,
    /// How often it died there.
    pub count: i64,
    /// The key under which it came to that queue.
    pub routing_key: Option<String>,
}

/// Reads a delivery. The body is moved out of it, not copied.
pub(crate) fn delivered(delivery: &mut Delivery) -> (Delivered, Option<Death>) {
    let properties = &delivery.properties;
    let text = |property: &Option<ShortString>| property.as_ref().map(ToString::to_string);
    let headers = properties.headers().as_ref();
    let came_as = delivery.routing_key.to_string();
    let death = (delivery.exchange.as_str() == DEAD_EXCHANGE).then(|| death(headers, &came_as));
    let original = death.as_ref().and_then(|death| death.routing_key.clone());
    let read = Delivered {
        routing_key: original.unwrap_or(came_as),
        message_id: text(properties.message_id()),
        kind: text(properties.kind()),
        content_type: text(properties.content_type()),
        headers: headers
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.to_string(), header(value)))
            .collect(),
        body: Bytes::from(std::mem::take(&mut delivery.data)),
    };
    (read, death)
}

/// What a header is to the inbox. The words are those that [`crate::restore`] gives back.
fn header(value: &AMQPValue) -> HeaderValue {
    let utf8 = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
    HeaderValue::Other(match value {
        AMQPValue::ShortString(text) => return HeaderValue::Text(text.to_string()),
        AMQPValue::LongString(text) => match utf8(text.as_bytes()) {
            Ok(text) => return HeaderValue::Text(text),
            Err(_) => NOT_UTF8,
        },
        AMQPValue::Boolean(_) => BOOLEAN,
        AMQPValue::ShortShortInt(_)
        | AMQPValue::ShortShortUInt(_)
        | AMQPValue::ShortInt(_)
        | AMQPValue::ShortUInt(_)
        | AMQPValue::LongInt(_)
        | AMQPValue::LongUInt(_)
        | AMQPValue::LongLongInt(_) => INTEGER,
        AMQPValue::Float(_) | AMQPValue::Double(_) => FLOAT,
        AMQPValue::DecimalValue(_) => DECIMAL,
        AMQPValue::FieldArray(_) => ARRAY,
        AMQPValue::Timestamp(_) => TIMESTAMP,
        AMQPValue::FieldTable(_) => TABLE,
        AMQPValue::ByteArray(_) => BYTES,
        AMQPValue::Void => NOTHING,
    })
}

pub(crate) const NOT_UTF8: &str = "text that is not UTF-8";
pub(crate) const BOOLEAN: &str = "a boolean";
pub(crate) const INTEGER: &str = "an integer";
pub(crate) const FLOAT: &str = "a float";
pub(crate) const DECIMAL: &str = "a decimal";
pub(crate) const ARRAY: &str = "an array";
pub(crate) const TIMESTAMP: &str = "a timestamp";
pub(crate) const TABLE: &str = "a table";
pub(crate) const BYTES: &str = "bytes";
pub(crate) const NOTHING: &str = "nothing";

/// The entry of `x-death` for the queue that the letter's key names. A publisher can forge other
/// entries, so none of them counts.
fn death(headers: Option<&FieldTable>, queue: &str) -> Death {
    let entries = match headers.and_then(|headers| headers.inner().get("x-death")) {
        Some(AMQPValue::FieldArray(entries)) => entries.as_slice(),
        _ => &[],
    };
    let mut tables = entries.iter().filter_map(as_table);
    let entry = tables.find(|table| text(table, "queue").as_deref() == Some(queue));
    Death {
        queue: queue.to_owned(),
        reason: entry
            .and_then(|entry| text(entry, "reason"))
            .unwrap_or_default(),
        count: entry.map_or(0, |entry| match entry.inner().get("count") {
            Some(AMQPValue::LongLongInt(count)) => *count,
            _ => 0,
        }),
        routing_key: entry.and_then(first_routing_key),
    }
}

fn as_table(value: &AMQPValue) -> Option<&FieldTable> {
    if let AMQPValue::FieldTable(table) = value {
        Some(table)
    } else {
        None
    }
}

fn first_routing_key(entry: &FieldTable) -> Option<String> {
    match entry.inner().get("routing-keys") {
        Some(AMQPValue::FieldArray(keys)) => keys.as_slice().first().and_then(as_text),
        _ => None,
    }
}

fn text(table: &FieldTable, name: &str) -> Option<String> {
    table.inner().get(name).and_then(as_text)
}

fn as_text(value: &AMQPValue) -> Option<String> {
    match header(value) {
        HeaderValue::Text(text) => Some(text),
        HeaderValue::Other(_) => None,
    }
}
