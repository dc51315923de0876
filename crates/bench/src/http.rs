//! A client that costs next to nothing: one kept connection, one request at a time.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A kept connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    line: String,
    body: Vec<u8>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The system's.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .context("connect to the producer")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            line: String::new(),
            body: Vec::new(),
        })
    }

    /// Creates a ticket; the answer's status.
    ///
    /// # Errors
    /// An answer that is no HTTP, or none.
    pub async fn create(&mut self, key: &str, body: &str) -> anyhow::Result<u16> {
        let request = format!(
            "POST /v1/tickets HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let status = self.read_line().await?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut length = 0;
        loop {
            let line = self.read_line().await?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("read Content-Length")?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await?;
        status.context("the answer has no status")
    }

    /// The last answer's body.
    #[must_use]
    pub fn answer(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    async fn read_line(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        if self.stream.read_line(&mut self.line).await? == 0 {
            bail!("the producer closed the connection");
        }
        Ok(self.line.trim_end())
    }
}
