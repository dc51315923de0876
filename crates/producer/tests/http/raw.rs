//! A client that sends what no well-behaved one would.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::running::{ACME, Running};

/// One connection.
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) async fn connect(producer: &Running) -> Self {
        Self(
            TcpStream::connect(producer.at.http)
                .await
                .expect("it listens"),
        )
    }

    /// The head of a request with acme's key.
    pub(crate) async fn head(&mut self, line: &str, headers: &str) {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: producer\r\nauthorization: Bearer {ACME}\r\n{headers}\r\n"
        );
        self.send(head.as_bytes()).await;
    }

    /// Some bytes; an end that is closed already has said why.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// What comes until the connection is closed, or a whole answer is here.
    pub(crate) async fn answer(&mut self) -> String {
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        while !whole(&answer) {
            match self.0.read(&mut part).await {
                Ok(0) | Err(_) => break,
                Ok(length) => answer.extend_from_slice(&part[..length]),
            }
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Whether the body is as long as the head says.
fn whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.parse().expect("a length"))
}
