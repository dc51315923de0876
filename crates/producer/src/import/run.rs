//! The import: line by line into batches, batch by batch into the database.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};

use bytes::Bytes;
use event::HTTP_BODY_BYTES;
use indicatif::{ProgressBar, ProgressStyle};
use runtime::database::{Database, DatabaseError, StartError};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, ticket_id};
use super::config::ImportConfig;
use super::lines::{Line, Lines};
use crate::ticket::NewTicket;

/// Why an import ended early. What was imported stays; running it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read, or its side file not be written.
    #[error("{file}")]
    File {
        /// Which one.
        file: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The tables are of another version, or the database cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A batch could not be written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// What came of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Lines with something on them.
    pub lines: u64,
    /// Tickets made by this run.
    pub created: u64,
    /// Tickets that were there already.
    pub known: u64,
    /// Lines that are no ticket.
    pub rejected: u64,
    /// Whether it was stopped before the end of the file.
    pub stopped: bool,
}

/// A line of the side file.
#[derive(Debug, Serialize)]
struct Rejected<'a> {
    line: u64,
    reason: &'a str,
}

/// Imports the file, until its end or until stopped after a batch.
///
/// # Errors
/// [`ImportError`]; the import may be run again.
pub async fn run(
    config: ImportConfig,
    shutdown: CancellationToken,
) -> Result<Imported, ImportError> {
    let database = Database::open(config.database.clone())?;
    database.check_schema().await?;
    let mut import = Import::open(&config)?;
    while !shutdown.is_cancelled() {
        let (batch, more) = import.read(&config)?;
        let many = batch.len() as u64;
        if many > 0 {
            let made = batch
                .write(&database, &config.tenant, config.patience)
                .await?;
            import.imported.created += made;
            import.imported.known += many - made.min(many);
        }
        import.show();
        if !more {
            import.bar.finish_and_clear();
            return Ok(import.imported);
        }
    }
    import.imported.stopped = true;
    Ok(import.imported)
}

struct Import {
    lines: Lines<BufReader<File>>,
    rejected: BufWriter<File>,
    imported: Imported,
    bar: ProgressBar,
    read: u64,
}

impl Import {
    fn open(config: &ImportConfig) -> Result<Self, ImportError> {
        let unusable = |path: &std::path::Path| {
            let file = path.display().to_string();
            move |source| ImportError::File { file, source }
        };
        let file = File::open(&config.file).map_err(unusable(&config.file))?;
        let size = file.metadata().map_err(unusable(&config.file))?.len();
        let rejected = File::create(&config.rejected).map_err(unusable(&config.rejected))?;
        let style = "{elapsed_precise} {bar:30} {bytes}/{total_bytes}, {msg}, {eta} left";
        let bar = ProgressBar::new(size);
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Ok(Self {
            lines: Lines::new(BufReader::new(file), HTTP_BODY_BYTES),
            rejected: BufWriter::new(rejected),
            imported: Imported::default(),
            bar,
            read: 0,
        })
    }

    /// The next batch, and whether there may be more after it.
    fn read(&mut self, config: &ImportConfig) -> Result<(Batch, bool), ImportError> {
        let broken = |source| ImportError::File {
            file: config.file.display().to_string(),
            source,
        };
        let mut batch = Batch::default();
        while batch.len() < config.batch && batch.bytes() < config.batch_bytes {
            let Some(line) = self.lines.next().map_err(broken)? else {
                self.rejected.flush().map_err(broken)?;
                return Ok((batch, false));
            };
            self.imported.lines += 1;
            self.read = line.read;
            match ticket(&line) {
                Ok((bytes, ticket)) => {
                    let id = ticket_id(&config.tenant, line.number, &bytes);
                    batch.add(id, ticket, bytes.len());
                }
                Err(reason) => self.reject(line.number, &reason).map_err(broken)?,
            }
        }
        self.rejected.flush().map_err(broken)?;
        Ok((batch, true))
    }

    fn reject(&mut self, line: u64, reason: &str) -> io::Result<()> {
        self.imported.rejected += 1;
        serde_json::to_writer(&mut self.rejected, &Rejected { line, reason })?;
        self.rejected.write_all(b"\n")
    }

    fn show(&self) {
        let Imported {
            created,
            known,
            rejected,
            ..
        } = self.imported;
        self.bar.set_position(self.read);
        self.bar.set_message(format!(
            "{created} made, {known} there, {rejected} rejected"
        ));
    }
}

fn ticket(line: &Line) -> Result<(Bytes, NewTicket), String> {
    let too_long = || format!("longer than {HTTP_BODY_BYTES} bytes");
    let bytes = Bytes::from(line.bytes.clone().ok_or_else(too_long)?);
    let ticket = NewTicket::read(&bytes).map_err(|problem| problem.reason())?;
    Ok((bytes, ticket))
}
