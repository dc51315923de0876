//! From a message to AMQP properties, refusing what would break the channel or the connection.

use event::{APP_ID, Message};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};

/// Persistent: written to disk before it is confirmed.
const PERSISTENT: u8 = 2;

/// What a header frame holds beside the properties: its own head and end, class, size, flags,
/// and the lengths of the fields.
const FRAME_OVERHEAD: usize = 128;

/// Type byte and length of a text in a header table, and the length of its name.
const HEADER_OVERHEAD: usize = 6;

/// A message ready for the client.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) routing_key: ShortString,
    pub(crate) properties: BasicProperties,
}

/// Encodes a message for a connection with the given largest frame. The error says which limit
/// it breaks.
pub(crate) fn encode(message: &Message, frame_max: u32) -> Result<Parcel, String> {
    check_size(message, frame_max)?;
    let mut headers = FieldTable::default();
    for (name, value) in &message.headers {
        let value = AMQPValue::LongString(LongString::from(value.as_bytes()));
        headers.insert(short("a header's name", name)?, value);
    }
    let properties = BasicProperties::default()
        .with_message_id(short("the message id", &message.message_id)?)
        .with_type(short("the type", &message.kind)?)
        .with_timestamp(message.timestamp)
        .with_content_type(short("the content type", &message.content_type)?)
        .with_delivery_mode(PERSISTENT)
        .with_app_id(short("the app id", APP_ID)?)
        .with_headers(headers);
    Ok(Parcel {
        routing_key: short("the routing key", &message.routing_key)?,
        properties,
    })
}

/// AMQP never splits the frame of the headers; one over the limit costs the whole connection.
fn check_size(message: &Message, frame_max: u32) -> Result<(), String> {
    let headers = message.headers.iter();
    let bytes = FRAME_OVERHEAD
        + message.message_id.len()
        + message.kind.len()
        + message.content_type.len()
        + APP_ID.len()
        + headers
            .map(|(name, value)| name.len() + value.len() + HEADER_OVERHEAD)
            .sum::<usize>();
    let most = usize::try_from(frame_max).unwrap_or(usize::MAX);
    if most != 0 && bytes > most {
        return Err(format!(
            "headers and properties take {bytes} bytes, a frame holds {most}"
        ));
    }
    Ok(())
}

fn short(what: &str, text: &str) -> Result<ShortString, String> {
    ShortString::try_new(text)
        .map_err(|_| format!("{what} has {} bytes, AMQP takes 255", text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            routing_key: "shared.00.acme.ticket.created".to_owned(),
            message_id: "019ad7b2-7c1d-7e3a-9f00-0000000000dd".to_owned(),
            kind: "ticket.created".to_owned(),
            timestamp: 1,
            content_type: "application/json".to_owned(),
            headers: vec![("h-a".to_owned(), "b".to_owned())],
            body: "{}".into(),
        }
    }

    #[test]
    fn it_is_persistent_and_says_what_it_is() {
        let parcel = encode(&message(), 131_072).expect("fits");
        assert_eq!(*parcel.properties.delivery_mode(), Some(2));
        assert_eq!(
            parcel
                .properties
                .message_id()
                .as_ref()
                .map(ShortString::as_str),
            Some(message().message_id.as_str())
        );
        assert_eq!(
            parcel.properties.app_id().as_ref().map(ShortString::as_str),
            Some("ticketflow-relay")
        );
    }

    #[test]
    fn whatever_is_too_long_is_named_and_nothing_panics() {
        let long = "x".repeat(256);
        type Change = fn(&mut Message, String);
        let changes: [(Change, &str); 5] = [
            (|m, long| m.routing_key = long, "the routing key"),
            (|m, long| m.message_id = long, "the message id"),
            (|m, long| m.kind = long, "the type"),
            (|m, long| m.content_type = long, "the content type"),
            (
                |m, long| m.headers.push((long, String::new())),
                "a header's name",
            ),
        ];
        for (change, what) in changes {
            let mut message = message();
            change(&mut message, long.clone());
            let reason = encode(&message, 131_072).expect_err(what);
            assert_eq!(reason, format!("{what} has 256 bytes, AMQP takes 255"));
        }
    }

    #[test]
    fn headers_that_a_frame_cannot_hold_are_refused() {
        let mut large = message();
        large
            .headers
            .push(("h-big".to_owned(), "x".repeat(131_072)));
        assert!(encode(&large, 131_072).is_err());
        assert!(encode(&large, 0).is_ok(), "0 means no limit");
    }
}
