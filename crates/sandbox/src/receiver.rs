//! A receiver of webhooks on loopback that follows a script: it answers, or does what foreign
//! systems do instead. It honours idempotency keys, so what it has taken is what was delivered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `POST` or `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What the receiver does with a request.
#[derive(Debug, Clone)]
pub struct Reply {
    takes: bool,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    Status(u16, Vec<(&'static str, String)>, String),
    Late(Duration),
    Close,
    Silence,
    Giant,
}

type Script = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

/// A running receiver; it ends when this is dropped.
#[derive(Debug)]
pub struct Receiver {
    port: u16,
    seen: Arc<Mutex<Seen>>,
    _server: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Request>,
    taken: BTreeMap<String, usize>,
}

impl Reply {
    /// Takes it and says so.
    #[must_use]
    pub fn take() -> Self {
        Self::answer(200)
    }

    /// Answers with a status; 2xx takes it, anything else does not.
    #[must_use]
    pub fn answer(status: u16) -> Self {
        let how = How::Status(status, Vec::new(), String::new());
        let takes = (200..300).contains(&status);
        Self { takes, how }
    }

    /// The same answer with a header more.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let How::Status(_, headers, _) = &mut self.how {
            headers.push((name, value.into()));
        }
        self
    }

    /// The same answer with a body.
    #[must_use]
    pub fn body(mut self, text: impl Into<String>) -> Self {
        if let How::Status(_, _, body) = &mut self.how {
            *body = text.into();
        }
        self
    }

    /// Takes it and closes the connection instead of saying so.
    #[must_use]
    pub fn take_and_close() -> Self {
        Self {
            takes: true,
            how: How::Close,
        }
    }

    /// Takes it and never says anything.
    #[must_use]
    pub fn take_in_silence() -> Self {
        Self {
            takes: true,
            how: How::Silence,
        }
    }

    /// Takes it and says so late.
    #[must_use]
    pub fn take_late(after: Duration) -> Self {
        Self {
            takes: true,
            how: How::Late(after),
        }
    }

    /// Closes the connection without having taken it.
    #[must_use]
    pub fn close() -> Self {
        Self {
            takes: false,
            how: How::Close,
        }
    }

    /// Takes it and answers with a body that does not end.
    #[must_use]
    pub fn take_giant() -> Self {
        Self {
            takes: true,
            how: How::Giant,
        }
    }
}

impl Request {
    /// The idempotency key, or for a question the last part of its path.
    #[must_use]
    pub fn key(&self) -> &str {
        let of_path = || self.path.rsplit('/').next().unwrap_or_default();
        self.headers
            .get("idempotency-key")
            .map_or_else(of_path, String::as_str)
    }
}

impl Receiver {
    /// Starts one on a free port. Where the script says nothing a POST is taken, and a GET answered
    /// with 200 if the key at the end of its path was taken, else 404.
    ///
    /// # Errors
    /// If no port can be opened.
    pub async fn start<S>(script: S) -> io::Result<Self>
    where
        S: Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (seen, script) = (Arc::<Mutex<Seen>>::default(), Arc::new(script));
        let server = serve(listener, Arc::clone(&seen), script);
        Ok(Self {
            port,
            seen,
            _server: AbortOnDropHandle::new(tokio::spawn(server)),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL that takes.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// The URL that can be asked for a key.
    #[must_use]
    pub fn status_url(&self) -> String {
        format!("http://127.0.0.1:{}/status/{{task_id}}", self.port)
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.seen).requests.clone()
    }

    /// How many requests took or tried to take each key.
    #[must_use]
    pub fn posts(&self) -> HashMap<String, usize> {
        let mut posts = HashMap::new();
        for request in &lock(&self.seen).requests {
            if request.method == "POST" {
                *posts.entry(request.key().to_owned()).or_default() += 1;
            }
        }
        posts
    }

    /// The keys that were taken.
    #[must_use]
    pub fn taken(&self) -> BTreeSet<String> {
        lock(&self.seen).taken.keys().cloned().collect()
    }

    /// The keys that were taken more than once: doubled, if it did not honour keys.
    #[must_use]
    pub fn taken_again(&self) -> BTreeSet<String> {
        let seen = lock(&self.seen);
        let again = seen.taken.iter().filter(|(_, times)| **times > 1);
        again.map(|(key, _)| key.clone()).collect()
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, seen: Arc<Mutex<Seen>>, script: Arc<Script>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
        connections.spawn(async move {
            // A client that goes away in the middle is its own affair.
            let _ = converse(stream, &seen, script.as_ref()).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, seen: &Mutex<Seen>, script: &Script) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let reply = script(&request).unwrap_or_else(|| usual(&request, seen));
        {
            let mut seen = lock(seen);
            if reply.takes && request.method == "POST" {
                *seen.taken.entry(request.key().to_owned()).or_default() += 1;
            }
            seen.requests.push(request);
        }
        match reply.how {
            How::Status(status, headers, body) => {
                let answer = answer(status, &headers, &body);
                stream.write_all(answer.as_bytes()).await?;
            }
            How::Late(after) => {
                tokio::time::sleep(after).await;
                stream.write_all(answer(200, &[], "").as_bytes()).await?;
            }
            How::Close => return Ok(()),
            How::Silence => std::future::pending().await,
            How::Giant => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
                stream.write_all(head).await?;
                loop {
                    stream.write_all(&[b'x'; 65_536]).await?;
                }
            }
        }
    }
    Ok(())
}

fn usual(request: &Request, seen: &Mutex<Seen>) -> Reply {
    let known = lock(seen).taken.contains_key(request.key());
    match request.method.as_str() {
        "GET" if !known => Reply::answer(404),
        _ => Reply::take(),
    }
}

fn answer(status: u16, headers: &[(&str, String)], body: &str) -> String {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next(), words.next());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request {
        method: method.unwrap_or_default(),
        path: path.unwrap_or_default(),
        headers,
        body,
    }))
}
