//! Making what the broker sends harmless for the client, frame by frame, in place.
//!
//! Two things that anybody with the right to publish can put into a message are fatal to lapin.
//! Short strings that are not UTF-8 count as a broken connection, again and again for as long as
//! the message is there. Tables and arrays are read by recursion: a thousand of them in each
//! other overflow the stack and abort the process. Neither changes the length of anything when it
//! is put right: a byte that is not UTF-8 becomes `?`, and a table or array that is too deep
//! becomes a text of the same bytes, which has the same layout.

/// A frame's type, channel and size, and its last byte.
pub(crate) const FRAME_HEAD: usize = 7;
pub(crate) const FRAME_END: usize = 1;

const METHOD: u8 = 1;
const HEADER: u8 = 2;

const BASIC: u16 = 60;
const RETURN: u16 = 50;
const DELIVER: u16 = 60;
const GET_OK: u16 = 71;

/// How deep tables and arrays may be.
const DEEPEST: usize = 32;

/// Whether frames of this type can hold anything that has to be put right.
pub(crate) fn concerns(kind: u8) -> bool {
    matches!(kind, METHOD | HEADER)
}

/// Puts a whole frame right. What does not look like a frame is left as it is.
pub(crate) fn tame(frame: &mut [u8]) {
    let Some((&mut kind, _)) = frame.split_first_mut() else {
        return;
    };
    let end = frame.len().saturating_sub(FRAME_END);
    let Some(payload) = frame.get_mut(FRAME_HEAD..end) else {
        return;
    };
    let mut bytes = Bytes { rest: payload };
    // None says that the frame ended early: then the client complains of it, rightly.
    let _ = match kind {
        METHOD => tame_method(&mut bytes),
        HEADER => tame_properties(&mut bytes),
        _ => None,
    };
}

/// The bytes of a frame that have not been looked at.
struct Bytes<'a> {
    rest: &'a mut [u8],
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a mut [u8]> {
        let rest = std::mem::take(&mut self.rest);
        if count > rest.len() {
            return None;
        }
        let (taken, rest) = rest.split_at_mut(count);
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<&'a mut u8> {
        self.take(1)?.first_mut()
    }

    fn number16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]))
    }

    /// What follows its length in four bytes.
    fn long(&mut self) -> Option<&'a mut [u8]> {
        let bytes: [u8; 4] = (*self.take(4)?).try_into().ok()?;
        self.take(usize::try_from(u32::from_be_bytes(bytes)).ok()?)
    }

    /// A short string, put right.
    fn short(&mut self) -> Option<()> {
        let length = usize::from(*self.byte()?);
        to_utf8(self.take(length)?);
        Some(())
    }
}

fn tame_method(bytes: &mut Bytes<'_>) -> Option<()> {
    if bytes.number16()? != BASIC {
        return Some(());
    }
    match bytes.number16()? {
        DELIVER => {
            bytes.short()?; // consumer tag
            bytes.take(9)?; // delivery tag and whether redelivered
        }
        GET_OK => drop(bytes.take(9)?),
        RETURN => {
            bytes.take(2)?; // reply code
            bytes.short()?; // reply text
        }
        _ => return Some(()),
    }
    bytes.short()?; // exchange
    bytes.short() // routing key
}

/// The properties of a message, in the order of their flags.
fn tame_properties(bytes: &mut Bytes<'_>) -> Option<()> {
    enum Property {
        Short,
        Table,
        Fixed(usize),
    }
    use Property::{Fixed, Short, Table};
    const ORDER: [Property; 14] = [
        Short,
        Short,
        Table,
        Fixed(1),
        Fixed(1),
        Short,
        Short,
        Short,
        Short,
        Fixed(8),
        Short,
        Short,
        Short,
        Short,
    ];
    bytes.take(12)?; // class, weight and the size of the body
    let flags = bytes.number16()?;
    for (bit, property) in ORDER.iter().enumerate() {
        if flags & (0x8000 >> bit) == 0 {
            continue;
        }
        match property {
            Short => bytes.short()?,
            Table => tame_table(bytes.long()?, 0)?,
            Fixed(count) => drop(bytes.take(*count)?),
        }
    }
    Some(())
}

fn tame_table(entries: &mut [u8], depth: usize) -> Option<()> {
    let mut entries = Bytes { rest: entries };
    while !entries.rest.is_empty() {
        entries.short()?;
        tame_value(&mut entries, depth)?;
    }
    Some(())
}

fn tame_array(values: &mut [u8], depth: usize) -> Option<()> {
    let mut values = Bytes { rest: values };
    while !values.rest.is_empty() {
        tame_value(&mut values, depth)?;
    }
    Some(())
}

fn tame_value(bytes: &mut Bytes<'_>, depth: usize) -> Option<()> {
    let kind = bytes.byte()?;
    match *kind {
        b'A' | b'F' if depth >= DEEPEST => {
            *kind = b'S';
            bytes.long().map(drop)
        }
        b'A' => tame_array(bytes.long()?, depth + 1),
        b'F' => tame_table(bytes.long()?, depth + 1),
        b'S' | b'x' => bytes.long().map(drop),
        b'V' => Some(()),
        b't' | b'b' | b'B' => bytes.take(1).map(drop),
        b's' | b'u' | b'U' => bytes.take(2).map(drop),
        b'I' | b'i' | b'f' => bytes.take(4).map(drop),
        b'D' => bytes.take(5).map(drop),
        b'l' | b'L' | b'd' | b'T' => bytes.take(8).map(drop),
        _ => None,
    }
}

fn to_utf8(mut text: &mut [u8]) {
    while let Err(error) = std::str::from_utf8(text) {
        let bad = error
            .error_len()
            .unwrap_or(text.len() - error.valid_up_to());
        let Some((bad, rest)) = text
            .get_mut(error.valid_up_to()..)
            .and_then(|tail| tail.split_at_mut_checked(bad))
        else {
            return;
        };
        bad.fill(b'?');
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[kind, 0, 1][..], &size, payload, &[0xCE]].concat()
    }

    fn short(text: &[u8]) -> Vec<u8> {
        [&[u8::try_from(text.len()).unwrap()][..], text].concat()
    }

    fn long(kind: u8, content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&[kind][..], &size, content].concat()
    }

    /// A header frame with a table and a message id.
    fn message(table: &[u8], message_id: &[u8]) -> Vec<u8> {
        let head = [0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x20, 0x80];
        let table = &long(b'F', table)[1..];
        framed(HEADER, &[&head[..], table, &short(message_id)].concat())
    }

    fn tamed(mut frame: Vec<u8>) -> Vec<u8> {
        tame(&mut frame);
        frame
    }

    #[test]
    fn short_strings_become_utf8_and_nothing_else_changes() {
        let table = [short(b"caf\xe9"), long(b'S', b"\xff\xfe")].concat();
        let wanted = [short(b"caf?"), long(b'S', b"\xff\xfe")].concat();
        assert_eq!(
            tamed(message(&table, b"\xf0\x9f-\xff")),
            message(&wanted, b"??-?")
        );
        let good = message(
            &[short("é".as_bytes()), vec![b't', 1]].concat(),
            "né".as_bytes(),
        );
        assert_eq!(tamed(good.clone()), good);
    }

    #[test]
    fn the_keys_of_deliveries_and_returns_are_put_right() {
        let deliver = |key: &[u8]| {
            let head = [0, 60, 0, 60];
            let tag = [0, 0, 0, 0, 0, 0, 0, 1, 0];
            framed(
                METHOD,
                &[&head[..], &short(b"tag"), &tag, &short(b"ex"), &short(key)].concat(),
            )
        };
        assert_eq!(tamed(deliver(b"a.\x80")), deliver(b"a.?"));
        let returned = |key: &[u8]| {
            let head = [0, 60, 0, 50, 1, 56];
            framed(
                METHOD,
                &[&head[..], &short(b"NO_ROUTE"), &short(b""), &short(key)].concat(),
            )
        };
        assert_eq!(tamed(returned(b"\xc3")), returned(b"?"));
    }

    #[test]
    fn what_is_too_deep_becomes_a_text_of_its_bytes() {
        let nested = |depth: usize, innermost: Vec<u8>| {
            (0..depth).fold(innermost, |inner, _| long(b'A', &inner))
        };
        let bottom = nested(5, vec![b'V']);
        let as_text = [&[b'S'][..], &bottom[1..]].concat();
        let at = |value: Vec<u8>| message(&[short(b"deep"), value].concat(), b"id");
        assert_eq!(
            tamed(at(nested(DEEPEST, bottom))),
            at(nested(DEEPEST, as_text))
        );
        let just_so = at(nested(DEEPEST, vec![b'V']));
        assert_eq!(tamed(just_so.clone()), just_so);
    }

    #[test]
    fn twenty_thousand_arrays_in_each_other_are_no_matter() {
        let mut value = vec![b'V'];
        for _ in 0..20_000 {
            let size = u32::try_from(value.len()).unwrap().to_le_bytes();
            // Built backwards, since each one goes around the last.
            value.extend(size);
            value.push(b'A');
        }
        value.reverse();
        let frame = message(&[short(b"deep"), value].concat(), b"id");
        let kinds = |frame: &[u8]| frame.iter().filter(|byte| **byte == b'S').count();
        assert_eq!(kinds(&tamed(frame.clone())), kinds(&frame) + 1);
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic_or_changes_its_length(
            kind in 0_u8..4,
            mut payload in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let [_, class, ..] = &mut payload[..] {
                *class = 60;
            }
            let frame = framed(kind, &payload);
            let tamed = tamed(frame.clone());
            prop_assert_eq!(tamed.len(), frame.len());
            prop_assert_eq!(&tamed[..FRAME_HEAD], &frame[..FRAME_HEAD]);
        }
    }
}
