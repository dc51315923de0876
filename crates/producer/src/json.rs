//! Reads a request's JSON byte by byte, so that what is kept of it is exactly what was sent.
//!
//! A parser into values would change numbers, drop repeated names and accept what PostgreSQL or a
//! consumer refuses later. This one only looks: it refuses with the path of what is wrong, and
//! gives the members of the outermost object with the bytes of each value.

use std::borrow::Cow;
use std::collections::HashSet;

/// Deepest nesting, the outermost object counted as one.
pub(crate) const MOST_DEPTH: usize = 64;

/// A member of the outermost object.
#[derive(Debug, PartialEq)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Value<'a>,
    /// The value's own bytes, without the white space around it.
    pub(crate) raw: &'a str,
}

/// As much of a value as a ticket's fields need.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Other,
}

/// Why a body is refused, and where: a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at {}", if pointer.is_empty() { "the outermost value" } else { pointer })]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    pub(crate) pointer: String,
}

/// What is wrong with a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    #[error("not an object")]
    NotAnObject,
    #[error("the character U+0000, which cannot be stored as text,")]
    Nul,
    #[error("half of a surrogate pair")]
    LoneSurrogate,
    #[error("a name that is there twice")]
    Repeated,
    #[error("nesting deeper than {MOST_DEPTH}")]
    TooDeep,
}

/// The members of the object that the body is.
///
/// # Errors
/// [`Refused`] with the first thing that is wrong.
pub(crate) fn members(body: &[u8]) -> Result<Vec<Member<'_>>, Refused> {
    let text = std::str::from_utf8(body).map_err(|error| Refused {
        fault: Fault::NotUtf8(error.valid_up_to()),
        pointer: String::new(),
    })?;
    let mut reader = Reader {
        text,
        at: 0,
        path: Vec::new(),
    };
    let read = reader.document();
    read.map_err(|fault| Refused {
        pointer: reader.pointer(),
        fault,
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    path: Vec<Step<'a>>,
}

enum Step<'a> {
    Name(Cow<'a, str>),
    Index(usize),
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Vec<Member<'a>>, Fault> {
        self.space();
        if self.peek() != Some(b'{') {
            // Tells what is no JSON at all from what is some other value.
            self.value()?;
            return Err(Fault::NotAnObject);
        }
        let mut members = Vec::new();
        self.object(|member| members.push(member))?;
        self.space();
        match self.peek() {
            None => Ok(members),
            Some(_) => Err(self.syntax()),
        }
    }

    fn value(&mut self) -> Result<Value<'a>, Fault> {
        match self.peek() {
            Some(b'{') => self.object(|_| ()).map(|()| Value::Other),
            Some(b'[') => self.array().map(|()| Value::Other),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| Value::Other),
            Some(b'n') => self.word("null").map(|()| Value::Null),
            Some(b't') => self.word("true").map(|()| Value::Other),
            Some(b'f') => self.word("false").map(|()| Value::Other),
            _ => Err(self.syntax()),
        }
    }

    fn object(&mut self, mut found: impl FnMut(Member<'a>)) -> Result<(), Fault> {
        self.descend()?;
        let mut names = HashSet::new();
        self.space();
        if self.skip(b'}') {
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.syntax());
            }
            let name = self.string()?;
            self.path.push(Step::Name(name.clone()));
            if !names.insert(name.clone()) {
                return Err(Fault::Repeated);
            }
            self.space();
            self.expect(b':')?;
            self.space();
            let start = self.at;
            let value = self.value()?;
            self.path.pop();
            let raw = &self.text[start..self.at];
            found(Member { name, value, raw });
            self.space();
            if self.skip(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self) -> Result<(), Fault> {
        self.descend()?;
        self.space();
        if self.skip(b']') {
            return Ok(());
        }
        for index in 0.. {
            self.path.push(Step::Index(index));
            self.space();
            self.value()?;
            self.path.pop();
            self.space();
            if self.skip(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
        Ok(())
    }

    /// Goes past the bracket, unless that is one too many: each open one has a step of the path.
    fn descend(&mut self) -> Result<(), Fault> {
        self.at += 1;
        if self.path.len() < MOST_DEPTH {
            Ok(())
        } else {
            Err(Fault::TooDeep)
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let start = self.at;
        let plain = self.plain();
        if self.skip(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = String::from(&self.text[start..self.at]);
        loop {
            self.expect(b'\\')?;
            text.push(self.escaped()?);
            text.push_str(self.plain());
            if self.skip(b'"') {
                return Ok(Cow::Owned(text));
            }
        }
    }

    /// The characters up to the next quote, backslash or control character.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        self.at += rest.iter().position(stops).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn escaped(&mut self) -> Result<char, Fault> {
        let letter = self.peek().ok_or_else(|| self.syntax())?;
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' => Ok(char::from(letter)),
            b'b' => Ok('\u{8}'),
            b'f' => Ok('\u{c}'),
            b'n' => Ok('\n'),
            b'r' => Ok('\r'),
            b't' => Ok('\t'),
            b'u' => self.unicode(),
            _ => {
                self.at -= 1;
                Err(self.syntax())
            }
        }
    }

    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.hex()?;
        if first == 0 {
            return Err(Fault::Nul);
        }
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or(Fault::LoneSurrogate);
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(Fault::LoneSurrogate);
        }
        self.at += 2;
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(Fault::LoneSurrogate);
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        char::from_u32(code).ok_or(Fault::LoneSurrogate)
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        let code = code.ok_or_else(|| self.syntax())?;
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.skip(b'-');
        if !self.skip(b'0') {
            self.digits()?;
        }
        if self.skip(b'.') {
            self.digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _ = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.syntax());
        }
        self.at += count;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.skip(byte) {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    fn syntax(&self) -> Fault {
        Fault::Syntax(self.at)
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                Step::Name(name) => {
                    let cut: String = name.chars().take(80).collect();
                    pointer.push_str(&cut.replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(body: &str) -> (Fault, String) {
        let refused = members(body.as_bytes()).expect_err(body);
        (refused.fault, refused.pointer)
    }

    #[test]
    fn the_bytes_of_a_value_are_those_that_were_sent() {
        let payload = r#"{ "z":1.10, "big" :12345678901234567890123,"e":[1e400,-0.0],"u":"\u00e9\ud83d\ude00\\u0000" }"#;
        let body = format!("{{\"subject\" : \"a\\tb\",\n \"payload\": {payload} \t}}");
        let members = members(body.as_bytes()).expect("good JSON");
        assert_eq!(members[0].value, Value::Text("a\tb".into()));
        assert_eq!(members[1].raw, payload);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_its_path() {
        let cases = [
            (r#"{"a":"x\u0000y"}"#, Fault::Nul, "/a"),
            (r#"{"p":[1,{"x\u0000":1}]}"#, Fault::Nul, "/p/1"),
            (r#"{"a":"\ud800"}"#, Fault::LoneSurrogate, "/a"),
            (r#"{"a":"\ude00"}"#, Fault::LoneSurrogate, "/a"),
            (r#"{"a":"\ud800\u0041"}"#, Fault::LoneSurrogate, "/a"),
            (r#"{"p":{"k":1,"k":2}}"#, Fault::Repeated, "/p/k"),
            (r#"{"p":{"k":1,"\u006b":2}}"#, Fault::Repeated, "/p/k"),
            (r#"{"a/b":{"~":"\u0000"}}"#, Fault::Nul, "/a~1b/~0"),
            ("[1]", Fault::NotAnObject, ""),
            ("null", Fault::NotAnObject, ""),
        ];
        for (body, fault, pointer) in cases {
            assert_eq!(refused(body), (fault, pointer.to_owned()), "{body}");
        }
    }

    #[test]
    fn depth_is_counted_from_the_outermost_object() {
        let nested = |inner: usize| format!("{{\"a\":{}{}}}", "[".repeat(inner), "]".repeat(inner));
        assert!(members(nested(MOST_DEPTH - 1).as_bytes()).is_ok());
        assert_eq!(refused(&nested(MOST_DEPTH)).0, Fault::TooDeep);
        assert_eq!(refused(&nested(100_000)).0, Fault::TooDeep);
    }

    #[test]
    fn what_is_not_json_is_told_by_its_place() {
        for body in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":+1}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":nul}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\u12g4\"}",
            "{\"a\":\"\n\"}",
            "{\"a\":1}}",
            "{\"a\":'b'}",
            "{\"a\":NaN}",
            "{a:1}",
            "\u{feff}{}",
            "{\"a\":[1,]}",
            "{\"a\":\"\\u00",
            "{\"a\":\"",
        ] {
            assert!(matches!(refused(body).0, Fault::Syntax(_)), "{body:?}");
        }
        let error = members(b"{\"a\":\"\xff\"}").expect_err("not UTF-8");
        assert_eq!(error.fault, Fault::NotUtf8(6));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body: Vec<u8>) {
            let _ = members(&body);
        }

        #[test]
        fn it_takes_and_refuses_what_another_parser_does(
            body in r#"\{"a": ?([\[\]{}:,"\\u0-9eE.+\- ntrfalse]|\[|\{"b":){0,24}\}"#,
        ) {
            let ours = members(body.as_bytes());
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&body);
            let only_ours = ours.as_ref().is_err_and(|refused| {
                matches!(refused.fault, Fault::Nul | Fault::LoneSurrogate | Fault::Repeated)
            });
            prop_assert!(ours.is_ok() == theirs.is_ok() || only_ours, "{body}");
        }

        #[test]
        fn strings_read_as_another_parser_reads_them(text: String) {
            prop_assume!(!text.contains('\0'));
            let body = serde_json::json!({ "t": text }).to_string();
            let members = members(body.as_bytes()).expect("good JSON");
            prop_assert_eq!(&members[0].value, &Value::Text(text.into()));
        }
    }
}
