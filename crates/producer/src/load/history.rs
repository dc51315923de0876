//! The history: one line for each intent, written when its outcome is known or given up.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use uuid::Uuid;

/// What became of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It is committed, once.
    Ok,
    /// It is not, and never will be.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// One line.
#[derive(Debug, Serialize)]
pub(super) struct Entry<'a> {
    /// Counted from 0, in the order of their start.
    pub(super) intent: u64,
    pub(super) tenant: &'a str,
    pub(super) operation: &'static str,
    pub(super) idempotency_key: &'a str,
    pub(super) outcome: Outcome,
    /// The status of the last answer; none if there was none.
    pub(super) status: Option<u16>,
    pub(super) tries: u32,
    pub(super) took_ms: f64,
    /// Known before for a change, from the answer for a new ticket.
    pub(super) ticket_id: Option<Uuid>,
    /// The version the change is for.
    pub(super) expected_version: Option<i64>,
    /// From the answer.
    pub(super) version: Option<i64>,
    /// From the answer.
    pub(super) event_id: Option<Uuid>,
    /// What was sent as the payload.
    pub(super) payload: &'a str,
}

/// Where lines go, if anywhere.
#[derive(Debug)]
pub(super) struct History(Option<Mutex<BufWriter<File>>>);

impl History {
    pub(super) fn create(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(File::create).transpose()?;
        Ok(Self(file.map(|file| Mutex::new(BufWriter::new(file)))))
    }

    pub(super) fn write(&self, entry: &Entry<'_>) -> io::Result<()> {
        let Some(file) = &self.0 else {
            return Ok(());
        };
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line)?;
        // A driver that is killed must not take known outcomes with it.
        file.flush()
    }
}
