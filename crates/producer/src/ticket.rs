//! What a caller may ask to be written, checked field by field.

use bytes::Bytes;

use crate::json::{self, Member, Value};
use crate::problem::{Fault, Kind, Problem};

/// Longest subject and assignee, in characters.
const SHORT_CHARS: usize = 255;
/// Longest body of a ticket, in bytes.
const BODY_BYTES: usize = 64 * 1024;
/// The states of a ticket.
pub(crate) const STATUSES: [&str; 4] = ["open", "pending", "resolved", "closed"];
const PRIORITIES: [&str; 4] = ["low", "normal", "high", "urgent"];
/// What a caller who gives no payload is taken to give.
const NO_PAYLOAD: Bytes = Bytes::from_static(b"null");

/// A ticket to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTicket {
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) priority: String,
    pub(crate) assignee: Option<String>,
    /// The bytes as they came.
    pub(crate) payload: Bytes,
}

/// What is to be changed of a ticket; nothing else is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) subject: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) priority: Option<String>,
    /// A null takes the assignee away.
    pub(crate) assignee: Option<Option<String>>,
    pub(crate) payload: Bytes,
}

impl NewTicket {
    /// Reads `{subject, body?, priority?, assignee?, payload?}`.
    ///
    /// # Errors
    /// [`Problem`] with every field that is wrong.
    pub(crate) fn read(body: &Bytes) -> Result<Self, Problem> {
        let mut fields = Fields::of(
            body,
            &["subject", "body", "priority", "assignee", "payload"],
        )?;
        let subject = fields.text("subject", short);
        if subject.is_none() {
            fields.missing("subject");
        }
        let ticket = Self {
            subject: subject.flatten().unwrap_or_default(),
            body: fields.text("body", long).flatten().unwrap_or_default(),
            priority: fields
                .text("priority", |text| word(text, &PRIORITIES))
                .flatten()
                .unwrap_or_else(|| "normal".to_owned()),
            assignee: fields.text("assignee", short).flatten(),
            payload: fields.payload(body).unwrap_or(NO_PAYLOAD),
        };
        fields.not_null(&["subject"]);
        fields.done(ticket)
    }
}

impl Change {
    /// Reads `{subject?, body?, status?, priority?, assignee?, payload?}`, at least one of them.
    ///
    /// # Errors
    /// [`Problem`] with every field that is wrong.
    pub(crate) fn read(body: &Bytes) -> Result<Self, Problem> {
        let known = [
            "subject", "body", "status", "priority", "assignee", "payload",
        ];
        let mut fields = Fields::of(body, &known)?;
        if fields.members.is_empty() {
            let detail = format!("changes nothing: give one of {}", known.join(", "));
            fields.faults.push(Fault::at("", detail));
        }
        let change = Self {
            subject: fields.text("subject", short).flatten(),
            // The column is never null; a null empties it.
            body: fields.text("body", long).map(Option::unwrap_or_default),
            status: fields
                .text("status", |text| word(text, &STATUSES))
                .flatten(),
            priority: fields
                .text("priority", |text| word(text, &PRIORITIES))
                .flatten(),
            assignee: fields.text("assignee", short),
            payload: fields.payload(body).unwrap_or(NO_PAYLOAD),
        };
        fields.not_null(&["subject", "status", "priority"]);
        fields.done(change)
    }
}

/// The members of a body while they are looked at.
struct Fields<'a> {
    members: Vec<Member<'a>>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    fn of(body: &'a Bytes, known: &[&str]) -> Result<Self, Problem> {
        let members = json::members(body).map_err(refused)?;
        let unknown = members
            .iter()
            .filter(|member| !known.contains(&member.name.as_ref()));
        let faults = unknown
            .map(|member| {
                let name: String = member.name.chars().take(80).collect();
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                Fault::at(pointer, format!("unknown; there is {}", known.join(", ")))
            })
            .collect();
        Ok(Self { members, faults })
    }

    /// A text that may be null; none if it is not there.
    fn text(
        &mut self,
        name: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Option<Option<String>> {
        let member = self.members.iter().find(|member| member.name == name)?;
        let checked = match &member.value {
            Value::Null => return Some(None),
            Value::Other => Err("must be a string".to_owned()),
            Value::Text(text) => check(text).map(|()| text.as_ref().to_owned()),
        };
        match checked {
            Ok(text) => Some(Some(text)),
            Err(detail) => {
                self.faults.push(Fault::at(format!("/{name}"), detail));
                Some(None)
            }
        }
    }

    fn payload(&self, body: &Bytes) -> Option<Bytes> {
        let member = self
            .members
            .iter()
            .find(|member| member.name == "payload")?;
        Some(body.slice_ref(member.raw.as_bytes()))
    }

    fn missing(&mut self, name: &str) {
        self.faults.push(Fault::at(format!("/{name}"), "required"));
    }

    fn not_null(&mut self, names: &[&str]) {
        for member in &self.members {
            if member.value == Value::Null && names.contains(&member.name.as_ref()) {
                let pointer = format!("/{}", member.name);
                self.faults.push(Fault::at(pointer, "must not be null"));
            }
        }
    }

    fn done<T>(self, read: T) -> Result<T, Problem> {
        if self.faults.is_empty() {
            Ok(read)
        } else {
            Err(Problem::of_faults(Kind::Invalid, self.faults))
        }
    }
}

fn refused(refused: json::Refused) -> Problem {
    let json::Refused { fault, pointer } = refused;
    let kind = match fault {
        json::Fault::Syntax(_) | json::Fault::NotUtf8(_) => Kind::BadRequest,
        json::Fault::NotAnObject
        | json::Fault::Nul
        | json::Fault::LoneSurrogate
        | json::Fault::Repeated
        | json::Fault::TooDeep => Kind::Invalid,
    };
    Problem::of_faults(kind, vec![Fault::at(pointer, fault.to_string())])
}

fn short(text: &str) -> Result<(), String> {
    // Counted no further than needed.
    match text.chars().take(SHORT_CHARS + 1).count() {
        1..=SHORT_CHARS => Ok(()),
        _ => Err(format!("must have 1 to {SHORT_CHARS} characters")),
    }
}

fn long(text: &str) -> Result<(), String> {
    match text.len() {
        0..=BODY_BYTES => Ok(()),
        bytes => Err(format!("has {bytes} bytes, the limit is {BODY_BYTES}")),
    }
}

fn word(text: &str, words: &[&str]) -> Result<(), String> {
    if words.contains(&text) {
        Ok(())
    } else {
        Err(format!("must be one of {}", words.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(problem: &Problem) -> Vec<String> {
        let answer = format!("{problem:?}");
        answer
            .match_indices("pointer: Some(\"")
            .map(|(at, found)| {
                answer[at + found.len()..]
                    .split('"')
                    .next()
                    .unwrap_or("")
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn a_ticket_needs_only_a_subject() {
        let read = NewTicket::read(&Bytes::from_static(
            b"{\"subject\":\"s\",\"assignee\":null}",
        ));
        let wanted = NewTicket {
            subject: "s".to_owned(),
            body: String::new(),
            priority: "normal".to_owned(),
            assignee: None,
            payload: NO_PAYLOAD,
        };
        assert_eq!(read.expect("a ticket"), wanted);
    }

    #[test]
    fn every_wrong_field_is_named() {
        let body = Bytes::from(format!(
            "{{\"subject\":\"\",\"body\":\"{}\",\"priority\":\"p\",\"assignee\":1,\"x/y\":0}}",
            "b".repeat(BODY_BYTES + 1)
        ));
        let problem = NewTicket::read(&body).expect_err("all wrong");
        let mut named = pointers(&problem);
        named.sort();
        assert_eq!(
            named,
            ["/assignee", "/body", "/priority", "/subject", "/x~1y"]
        );
    }

    #[test]
    fn lengths_are_counted_in_characters_where_the_database_does() {
        for (length, good) in [(1, true), (255, true), (256, false)] {
            let body = Bytes::from(format!("{{\"subject\":\"{}\"}}", "é".repeat(length)));
            assert_eq!(NewTicket::read(&body).is_ok(), good, "{length}");
        }
    }

    #[test]
    fn a_change_changes_what_it_names() {
        let body = Bytes::from_static(b"{\"assignee\":null,\"payload\": {\"n\": 1.0} }");
        let change = Change::read(&body).expect("a change");
        assert_eq!(change.assignee, Some(None));
        assert_eq!(change.payload, "{\"n\": 1.0}");
        assert_eq!((change.subject, change.status), (None, None));
        assert!(Change::read(&Bytes::from_static(b"{}")).is_err());
        for null in ["subject", "status", "priority"] {
            let body = Bytes::from(format!("{{\"{null}\":null}}"));
            let problem = Change::read(&body).expect_err(null);
            assert_eq!(pointers(&problem), [format!("/{null}")]);
        }
    }
}
