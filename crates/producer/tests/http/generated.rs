//! Requests made from the OpenAPI document, sound ones and odd ones: none ends in a 5xx, and each
//! answer is one that the document names.

use std::fmt::Write as _;
use std::sync::Arc;

use fastrand::Rng;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::running::Running;

const CLIENTS: u64 = 8;
const REQUESTS_EACH: usize = 625;

/// Makes values for schemas.
struct Maker {
    document: Arc<Value>,
    random: Rng,
    /// Tickets that exist.
    known: Vec<String>,
}

/// One call of the document.
struct Call {
    path: String,
    method: String,
}

struct Request {
    path: String,
    headers: Vec<(String, HeaderValue)>,
    body: Option<Vec<u8>>,
}

impl Maker {
    fn one_in(&mut self, many: u32) -> bool {
        self.random.u32(..many) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())].clone()
    }

    /// A value as the schema wants it, or, one time in eight, something else.
    fn value(&mut self, schema: &Value) -> Value {
        if self.one_in(8) {
            return self.odd(0);
        }
        let schema = &self.resolved(schema);
        for choice in ["oneOf", "anyOf"] {
            if let Some(schemas) = schema[choice].as_array() {
                let schema = self.pick(schemas);
                return self.value(&schema);
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.pick(values);
        }
        let kind = match schema["type"].as_array() {
            Some(kinds) => self.pick(kinds),
            None => schema["type"].clone(),
        };
        match kind.as_str() {
            Some("object") => self.object(schema),
            Some("string") => self.string(schema).into(),
            Some("integer" | "number") => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                let most = schema["maximum"].as_i64().unwrap_or(1000);
                let exact = self.random.i64(least..=most);
                self.pick(&[least, most, exact]).into()
            }
            Some("boolean") => self.random.bool().into(),
            Some("array") => (0..self.random.usize(..3))
                .map(|_| self.value(&schema["items"]))
                .collect(),
            Some("null") => Value::Null,
            _ => self.odd(0),
        }
    }

    fn resolved(&self, schema: &Value) -> Value {
        let Some(reference) = schema["$ref"].as_str() else {
            return schema.clone();
        };
        let pointer = reference.trim_start_matches('#');
        self.document.pointer(pointer).expect(reference).clone()
    }

    fn object(&mut self, schema: &Value) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let leave_out = if required.contains(&name.as_str().into()) {
                16
            } else {
                2
            };
            if !self.one_in(leave_out) {
                let value = self.value(property);
                object.insert(name.clone(), value);
            }
        }
        if self.one_in(16) {
            let value = self.odd(0);
            object.insert(self.text(12), value);
        }
        object.into()
    }

    fn string(&mut self, schema: &Value) -> String {
        match schema["format"].as_str() {
            Some("uuid") if self.random.bool() && !self.known.is_empty() => {
                let known = self.known.clone();
                return self.pick(&known);
            }
            Some("uuid") => return uuid::Uuid::from_u128(self.random.u128(..)).to_string(),
            _ => {}
        }
        let number = |name: &str| schema[name].as_u64().and_then(|n| usize::try_from(n).ok());
        let least = number("minLength").unwrap_or(0);
        let most = number("maxLength").unwrap_or(40);
        // At and just beyond the bounds, too.
        let length = match self.random.u32(..12) {
            0 => least.saturating_sub(1),
            1 => most,
            2 => most + 1,
            _ => self.random.usize(least..=most.min(least + 60)),
        };
        self.text(length)
    }

    /// So many characters, some of them such as break things.
    fn text(&mut self, length: usize) -> String {
        const ODD: [char; 14] = [
            '\0', '\n', '"', '\\', '\'', '%', '/', ';', '\u{7f}', '\u{a0}', 'ß', '\u{2028}',
            '\u{fffd}', '😀',
        ];
        let is_plain = !self.one_in(4);
        (0..length)
            .map(|_| match is_plain || self.random.bool() {
                true => self.random.alphanumeric(),
                false => self.pick(&ODD),
            })
            .collect()
    }

    fn odd(&mut self, depth: u32) -> Value {
        match self.random.u32(..10) {
            0 => Value::Null,
            1 => self.random.bool().into(),
            2 => self.random.i64(..).into(),
            3 => json!(f64::MAX),
            4 => json!(-0.0),
            5 => "".into(),
            6 if depth < 4 => json!([self.odd(depth + 1), self.odd(depth + 1)]),
            7 if depth < 4 => json!({ self.text(3): self.odd(depth + 1) }),
            _ => {
                let length = self.random.usize(..300);
                self.text(length).into()
            }
        }
    }

    fn request(&mut self, call: &Call) -> Request {
        let operation = self.document["paths"][&call.path][&call.method].clone();
        let mut path = call.path.clone();
        let mut query = Vec::new();
        let mut headers = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let is_required = parameter["required"] == true;
            if self.one_in(if is_required { 24 } else { 2 }) && parameter["in"] != "path" {
                continue;
            }
            let value = self.value(&parameter["schema"]);
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str().unwrap() {
                "path" => path = path.replace(&format!("{{{name}}}"), &escaped(&value)),
                "query" => query.push(format!("{}={}", escaped(name), escaped(&value))),
                "header" if name.eq_ignore_ascii_case("if-match") && !self.one_in(8) => {
                    let version = self.random.u32(1..4);
                    let tag = HeaderValue::try_from(format!("\"{version}\"")).unwrap();
                    headers.push((name.to_owned(), tag));
                }
                _ => headers.extend(
                    HeaderValue::from_bytes(value.as_bytes())
                        .ok()
                        .map(|value| (name.to_owned(), value)),
                ),
            }
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let body = operation["requestBody"].is_object().then(|| {
            let content = operation["requestBody"]["content"].as_object().unwrap();
            let (kind, media) = content.iter().next().unwrap();
            let kind = if self.one_in(32) { "text/plain" } else { kind };
            headers.push((
                "content-type".to_owned(),
                HeaderValue::try_from(kind).unwrap(),
            ));
            self.body(&media["schema"])
        });
        Request {
            path,
            headers,
            body,
        }
    }

    /// A body of the schema's, or what is left of one.
    fn body(&mut self, schema: &Value) -> Vec<u8> {
        let mut bytes = self.value(schema).to_string().into_bytes();
        match self.random.u32(..24) {
            0 => bytes.truncate(self.random.usize(..=bytes.len())),
            1 => {
                let place = self.random.usize(..=bytes.len());
                bytes.insert(place, self.random.u8(..));
            }
            2 => bytes = "[".repeat(self.random.usize(..4000)).into_bytes(),
            3 => bytes = br#"{"subject":"a","subject":"b"}"#.to_vec(),
            4 => bytes = br#"{"subject":"\ud800","payload":1e99999}"#.to_vec(),
            _ => {}
        }
        bytes
    }
}

/// Every byte but letters and digits as %XX: dots too, lest a path be shortened.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || byte == b'-' {
            true => escaped.push(char::from(byte)),
            false => write!(escaped, "%{byte:02X}").unwrap(),
        }
    }
    escaped
}

fn calls(document: &Value) -> Vec<Call> {
    let paths = document["paths"].as_object().unwrap();
    let calls = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(|method| Call {
            path: path.clone(),
            method: method.clone(),
        })
    });
    calls.collect()
}

async fn send_many(producer: &Running, document: Arc<Value>, seed: u64) -> [usize; 6] {
    let mut maker = Maker {
        document: document.clone(),
        random: Rng::with_seed(seed),
        known: Vec::new(),
    };
    let calls = calls(&document);
    let mut by_class = [0; 6];
    for _ in 0..REQUESTS_EACH {
        let call = &calls[maker.random.usize(..calls.len())];
        let request = maker.request(call);
        let method: Method = call.method.to_uppercase().parse().unwrap();
        let key = if maker.one_in(24) {
            "nobody's"
        } else {
            crate::running::ACME
        };
        let mut sent = producer.request(method, &request.path, key);
        for (name, value) in request.headers {
            sent = sent.header(name, value);
        }
        if let Some(body) = request.body.clone() {
            sent = sent.body(body);
        }
        let answer = sent.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let told = || {
            let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default());
            format!(
                "seed {seed}: {status} for {} {} {body}",
                call.method, request.path
            )
        };
        assert!(status < 500, "{}", told());
        let named = &document["paths"][&call.path][&call.method]["responses"];
        assert!(
            named[status.to_string()].is_object(),
            "not in the document: {}",
            told()
        );
        by_class[usize::from(status / 100)] += 1;
        if status == 201 {
            let ticket: Value = answer.json().await.expect("JSON");
            maker
                .known
                .push(ticket["ticket_id"].as_str().unwrap().to_owned());
        }
    }
    by_class
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_generated_requests_end_without_a_5xx() {
    let flags = ["--rate-per-second", "1000000", "--rate-burst", "1000000"];
    let producer = Running::start_with("generated", &flags, None).await;
    let document = producer.get("/openapi.json").send().await.unwrap();
    let document: Arc<Value> = Arc::new(document.json().await.unwrap());
    let clients = (0..CLIENTS).map(|seed| send_many(&producer, document.clone(), seed));
    let by_client = futures_util::future::join_all(clients).await;
    let of_class = |class: usize| by_client.iter().map(|counts| counts[class]).sum::<usize>();
    let (done, refused) = (of_class(2), of_class(4));
    // Neither kind alone would say much.
    assert!(
        done > 1000 && refused > 500,
        "{done} done, {refused} refused"
    );
}
