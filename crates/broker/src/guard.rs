//! A stream that puts right what comes in before the client sees it (see `tame`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_util::Stream;
use futures_util::io::{AsyncRead, AsyncWrite};
use lapin::AsyncTcpStream;

use crate::tame::{FRAME_END, FRAME_HEAD, concerns, tame};

/// What is read at once.
const READ: usize = 64 * 1024;

/// No frame that is put right is larger; the client refuses such a one anyway.
const LARGEST: usize = 16 * 1024 * 1024;

/// The stream below: plain, or with TLS.
type Inner = AsyncTcpStream<<Tokio as Reactor>::TcpStream>;

/// A stream whose incoming frames are harmless.
pub(crate) struct Guard<S> {
    inner: S,
    incoming: Incoming,
}

impl<S> Guard<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            incoming: Incoming::default(),
        }
    }
}

/// What has come in: handed out already, harmless, and not yet looked at, in this order.
#[derive(Default)]
struct Incoming {
    buffer: Vec<u8>,
    taken: usize,
    tamed: usize,
    end: usize,
    /// How much of a frame that needs no taming has yet to pass.
    passing: usize,
}

impl Incoming {
    /// Room to read into.
    fn room(&mut self) -> &mut [u8] {
        if self.taken > 0 {
            self.buffer.copy_within(self.taken..self.end, 0);
            self.tamed -= self.taken;
            self.end -= self.taken;
            self.taken = 0;
        }
        if self.buffer.len() - self.end < READ {
            self.buffer.resize(self.end + READ, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// So much has been read. Tames every frame that is complete.
    fn came(&mut self, count: usize) {
        self.end += count;
        while self.step() {}
    }

    fn step(&mut self) -> bool {
        let rest = &mut self.buffer[self.tamed..self.end];
        if self.passing > 0 {
            let passed = self.passing.min(rest.len());
            self.passing -= passed;
            self.tamed += passed;
            return passed > 0;
        }
        let [kind, _, _, a, b, c, d, ..] = rest else {
            return false;
        };
        let size = u32::from_be_bytes([*a, *b, *c, *d]);
        let size = usize::try_from(size).unwrap_or(LARGEST);
        let whole = size.saturating_add(FRAME_HEAD + FRAME_END);
        if !concerns(*kind) || whole > LARGEST {
            self.passing = whole;
            return true;
        }
        let Some(frame) = rest.get_mut(..whole) else {
            return false;
        };
        tame(frame);
        self.tamed += whole;
        true
    }

    fn has_any(&self) -> bool {
        self.taken < self.tamed
    }

    fn hand_out(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.tamed - self.taken);
        out[..count].copy_from_slice(&self.buffer[self.taken..self.taken + count]);
        self.taken += count;
        count
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let Self { inner, incoming } = &mut *self;
        while !incoming.has_any() {
            let read = Pin::new(&mut *inner).poll_read(context, incoming.room());
            match ready!(read)? {
                0 => return Poll::Ready(Ok(0)),
                count => incoming.came(count),
            }
        }
        Poll::Ready(Ok(incoming.hand_out(out)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}

/// tokio, with streams that are guarded.
#[derive(Debug, Clone)]
pub(crate) struct Guarded(Tokio);

/// What lapin runs on.
pub(crate) type GuardedRuntime = Runtime<RuntimeParts<Tokio, Guarded>>;

/// The runtime this task is on, with streams that are guarded.
pub(crate) fn runtime() -> GuardedRuntime {
    Runtime::new(RuntimeParts::new(
        Tokio::current(),
        Guarded(Tokio::current()),
    ))
}

impl Reactor for Guarded {
    type TcpStream = Guard<Inner>;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: io::Read + io::Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connecting = self.0.tcp_connect_addr(address);
        async move { Ok(Guard::new(AsyncTcpStream::Plain(connecting.await?))) }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::AsyncReadExt;
    use futures_util::io::Cursor;
    use proptest::prelude::*;

    use super::*;

    /// Gives out no more than so much at a time.
    struct Slices(Cursor<Vec<u8>>, usize);

    impl AsyncRead for Slices {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            out: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            let most = self.1.min(out.len());
            Pin::new(&mut self.0).poll_read(context, &mut out[..most])
        }
    }

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[kind, 0, 1][..], &size, payload, &[0xCE]].concat()
    }

    fn through(bytes: Vec<u8>, slice: usize) -> Vec<u8> {
        let mut guard = Guard::new(Slices(Cursor::new(bytes), slice));
        let mut out = Vec::new();
        let reading = guard.read_to_end(&mut out);
        futures_util::FutureExt::now_or_never(reading)
            .expect("never pending")
            .expect("no error");
        out
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_frames_come_out_tamed(
            frames in prop::collection::vec((1_u8..4, prop::collection::vec(any::<u8>(), 0..300)), 1..20),
            slice in 1_usize..500,
        ) {
            let frames: Vec<_> = frames.iter().map(|(kind, payload)| frame(*kind, payload)).collect();
            let mut wanted = frames.clone();
            wanted.iter_mut().for_each(|frame| if concerns(frame[0]) { tame(frame) });
            prop_assert_eq!(through(frames.concat(), slice), wanted.concat());
        }
    }

    #[test]
    fn what_is_no_frame_at_all_passes() {
        let greeting = b"AMQP\0\0\x09\x01".to_vec();
        assert_eq!(through(greeting.clone(), 3), greeting);
        let endless = frame(2, b"")[..3].to_vec();
        assert_eq!(through([&endless[..], &[0xFF; 20]].concat(), 7).len(), 23);
    }
}
