//! Breaking the link at the very bytes a test is about.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Direction;

/// Generous: reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(90);

/// What happens to the connection on which a trap's pattern was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is cut before the bytes that hold the pattern go on.
    CutBefore,
    /// The bytes go on, then it is cut.
    CutAfter,
    /// The bytes go on, the next answer is awaited, and it is cut instead of passing that on: the
    /// other side has done its part, and this side cannot know.
    DropAnswer,
}

/// Resolves when the trap has closed.
#[derive(Debug)]
pub struct Trap {
    closed: oneshot::Receiver<()>,
}

impl Trap {
    /// Waits until the connection was broken as asked.
    ///
    /// Returns false if the trap was taken away first (another was armed, or the proxy restored),
    /// or if its bytes never came.
    pub async fn closed(self) -> bool {
        let closed = tokio::time::timeout(PATIENCE, self.closed).await;
        matches!(closed, Ok(Ok(())))
    }
}

/// The trap of a proxy, if one is armed.
#[derive(Debug, Default)]
pub(crate) struct TrapHolder(Mutex<Option<TrapState>>);

pub(crate) type TrapSlot = std::sync::Arc<TrapHolder>;

/// What is looked for, and how often it is still to be seen.
#[derive(Debug)]
pub(crate) struct TrapState {
    direction: Direction,
    pattern: Vec<u8>,
    left: usize,
    then: Then,
    closed: Option<oneshot::Sender<()>>,
}

impl TrapState {
    pub(crate) fn new(direction: Direction, pattern: &[u8], nth: usize, then: Then) -> Self {
        Self {
            direction,
            pattern: pattern.to_vec(),
            left: nth.max(1),
            then,
            closed: None,
        }
    }
}

/// A trap that has seen its pattern and is to be carried out by the link.
#[derive(Debug)]
pub(crate) struct Sprung {
    pub(crate) then: Then,
    closed: Option<oneshot::Sender<()>>,
}

impl Sprung {
    pub(crate) fn report(self) {
        if let Some(closed) = self.closed {
            // Nobody has to wait for it.
            let _ = closed.send(());
        }
    }
}

impl TrapHolder {
    pub(crate) fn arm(&self, mut state: TrapState) -> Trap {
        let (sender, closed) = oneshot::channel();
        state.closed = Some(sender);
        *self.lock() = Some(state);
        Trap { closed }
    }

    pub(crate) fn disarm(&self) {
        *self.lock() = None;
    }

    /// Looks through bytes that are about to go on. `tail` holds the end of what went before on
    /// this connection, so that a pattern cut by a segment's border is seen.
    pub(crate) fn look(
        &self,
        direction: Direction,
        tail: &mut Tail,
        bytes: &[u8],
    ) -> Option<Sprung> {
        let mut slot = self.lock();
        let state = slot.as_mut().filter(|state| state.direction == direction)?;
        let seen = tail.count(&state.pattern, bytes);
        if seen < state.left {
            state.left -= seen;
            return None;
        }
        let state = slot.take()?;
        Some(Sprung {
            then: state.then,
            closed: state.closed,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TrapState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of what went by, shorter than the pattern.
#[derive(Debug, Default)]
pub(crate) struct Tail(Vec<u8>);

impl Tail {
    /// How often the pattern ends within the new bytes.
    fn count(&mut self, pattern: &[u8], bytes: &[u8]) -> usize {
        self.0.extend_from_slice(bytes);
        let mut seen = 0;
        let mut at = 0;
        while let Some(window) = self.0.get(at..at + pattern.len()) {
            if window == pattern {
                seen += 1;
                at += pattern.len();
            } else {
                at += 1;
            }
        }
        let keep = self.0.len().saturating_sub(at).min(pattern.len() - 1);
        self.0.drain(..self.0.len() - keep);
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn a_pattern_is_counted_across_segments_and_once() {
        let mut tail = Tail::default();
        assert_eq!(tail.count(b"COMMIT", b"xxCOM"), 0);
        assert_eq!(tail.count(b"COMMIT", b"MITyyCOMMITCOMMI"), 2);
        assert_eq!(tail.count(b"COMMIT", b"T"), 1);
        assert_eq!(tail.count(b"COMMIT", b"OMMIT"), 0);
    }
}
