//! One connection through the proxy: two pumps under the faults of the moment.

use std::future::pending;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::Instant;

use super::trap::{Sprung, Tail, Then, TrapSlot};
use super::{Direction, Fault, Faults};

/// Read at most at once; a slow or delayed side holds back [`HELD_CHUNKS`] of them.
const CHUNK_BYTES: usize = 16 * 1024;
const HELD_CHUNKS: usize = 1024;

/// How long a server may take to read what it was sent before a trap cut the client.
const DRAIN: Duration = Duration::from_secs(5);

/// What both pumps of a connection look at.
pub(crate) struct Link {
    faults: watch::Receiver<Faults>,
    trap: TrapSlot,
    epoch: u64,
    /// Set once bytes have gone on whose answer is to be lost.
    lost_answer: Mutex<Option<(Direction, Sprung)>>,
}

/// Why a connection ends other than by both sides closing it.
enum Break {
    /// One side broke off, or the proxy cuts.
    Reset,
    /// A trap closed on it.
    Sprung(Sprung),
}

/// Bytes on their way.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
    sprung: Option<Sprung>,
}

impl Link {
    pub(crate) fn new(faults: watch::Receiver<Faults>, trap: TrapSlot, epoch: u64) -> Self {
        Self {
            faults,
            trap,
            epoch,
            lost_answer: Mutex::new(None),
        }
    }

    /// Forwards until both sides have closed, one breaks off, or the proxy or a trap cuts.
    pub(crate) async fn run(self, client: TcpStream, server: TcpStream) {
        // Segments are to arrive as they are sent.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (mut from_client, mut into_client) = client.into_split();
        let (mut from_server, mut into_server) = server.into_split();
        let mut faults = self.faults.clone();
        let ended = tokio::select! {
            biased;
            _ = faults.wait_for(|faults| faults.epoch != self.epoch) => Err(Break::Reset),
            ended = async { tokio::try_join!(
                self.pump(Direction::ToServer, &mut from_client, &mut into_server),
                self.pump(Direction::ToClient, &mut from_server, &mut into_client),
            ) } => ended.map(drop),
        };
        let Err(broken) = ended else {
            return;
        };
        reset_halves(from_client, into_client);
        match broken {
            Break::Reset => reset_halves(from_server, into_server),
            Break::Sprung(sprung) => {
                sprung.report();
                part(from_server, into_server).await;
            }
        }
    }

    async fn pump(
        &self,
        direction: Direction,
        from: &mut OwnedReadHalf,
        into: &mut OwnedWriteHalf,
    ) -> Result<(), Break> {
        let (sender, receiver) = mpsc::channel(HELD_CHUNKS);
        let read = self.read(direction, from, sender);
        let write = self.write(direction, into, receiver);
        tokio::try_join!(read, write).map(drop)
    }

    async fn read(
        &self,
        direction: Direction,
        from: &mut OwnedReadHalf,
        sender: mpsc::Sender<Chunk>,
    ) -> Result<(), Break> {
        let mut tail = Tail::default();
        loop {
            let mut bytes = vec![0; CHUNK_BYTES];
            let length = from.read(&mut bytes).await;
            let fault = self.fault(direction);
            match length {
                Ok(1..) if fault.swallow => continue,
                // A black hole swallows the end of the connection as well.
                Ok(0) | Err(_) if fault.swallow => return pending().await,
                Ok(0) => return Ok(()),
                Err(_) => return Err(Break::Reset),
                Ok(length) => bytes.truncate(length),
            }
            let chunk = Chunk {
                due: Instant::now() + fault.delay,
                sprung: self.trap.look(direction, &mut tail, &bytes),
                bytes,
            };
            sender.send(chunk).await.map_err(|_| Break::Reset)?;
        }
    }

    /// Apart from the reading, so that a delay holds bytes back without slowing them down.
    async fn write(
        &self,
        direction: Direction,
        into: &mut OwnedWriteHalf,
        mut chunks: mpsc::Receiver<Chunk>,
    ) -> Result<(), Break> {
        while let Some(chunk) = chunks.recv().await {
            tokio::time::sleep_until(chunk.due).await;
            self.lose_answer(direction).await?;
            match chunk.sprung {
                None => self.put(direction, into, &chunk.bytes).await?,
                Some(sprung) if sprung.then == Then::CutBefore => {
                    return Err(Break::Sprung(sprung));
                }
                Some(sprung) if sprung.then == Then::CutAfter => {
                    self.put(direction, into, &chunk.bytes).await?;
                    return Err(Break::Sprung(sprung));
                }
                Some(sprung) => {
                    // Held while writing: an answer that is faster than us must not pass.
                    let mut lost_answer = self.lost_answer.lock().await;
                    self.put(direction, into, &chunk.bytes).await?;
                    *lost_answer = Some((direction, sprung));
                }
            }
        }
        into.shutdown().await.map_err(|_| Break::Reset)
    }

    /// Ends the connection if what is about to go on is the answer that a trap is to lose.
    async fn lose_answer(&self, direction: Direction) -> Result<(), Break> {
        let mut lost_answer = self.lost_answer.lock().await;
        match lost_answer.take() {
            Some((asked, sprung)) if asked != direction => Err(Break::Sprung(sprung)),
            other => {
                *lost_answer = other;
                Ok(())
            }
        }
    }

    async fn put(
        &self,
        direction: Direction,
        into: &mut OwnedWriteHalf,
        bytes: &[u8],
    ) -> Result<(), Break> {
        let segment_bytes = match self.fault(direction).segment_bytes {
            0 => bytes.len().max(1),
            segment_bytes => segment_bytes,
        };
        for segment in bytes.chunks(segment_bytes) {
            into.write_all(segment).await.map_err(|_| Break::Reset)?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn fault(&self, direction: Direction) -> Fault {
        self.faults.borrow().towards(direction)
    }
}

/// Closes a connection with a reset when it is dropped.
pub(super) fn reset(stream: &TcpStream) {
    // If it cannot be set the peer sees an orderly close instead.
    let _ = stream.set_zero_linger();
}

fn reset_halves(from: OwnedReadHalf, into: OwnedWriteHalf) {
    reset(from.as_ref());
    // Without this, dropping the half would send an orderly end first.
    into.forget();
}

/// Ends the server's side in order: a reset would throw away what it has not read yet.
async fn part(mut from: OwnedReadHalf, mut into: OwnedWriteHalf) {
    let drained = async {
        into.shutdown().await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await
    };
    // A server that does not end by then never read it.
    let _ = tokio::time::timeout(DRAIN, drained).await;
}
