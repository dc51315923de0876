//! What can go wrong around the servers, by what the reader can do about it.

use std::path::PathBuf;

/// Why the sandbox cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A program is not on this machine: install it, or say where it is.
    #[error("{program} is not installed ({hint}); `deploy/bootstrap` installs it")]
    NotInstalled {
        /// The program that was looked for.
        program: &'static str,
        /// Where it was looked for and how to point elsewhere.
        hint: String,
    },
    /// A server did not come up; its own words say why.
    #[error("{server} did not {what}:\n{words}")]
    Server {
        /// Which server.
        server: &'static str,
        /// What it did not do.
        what: &'static str,
        /// The end of its log.
        words: String,
    },
    /// A program of the workspace is not there: build it.
    #[error("{program} is not built: `cargo build --workspace --bins` makes it")]
    NotBuilt {
        /// Which.
        program: &'static str,
    },
    /// A program of the workspace did not do what it should; its own words say why.
    #[error("{program} {what}:\n{words}")]
    Program {
        /// Which.
        program: String,
        /// What it did.
        what: String,
        /// The end of its log.
        words: String,
    },
    /// No private servers run in that folder.
    #[error("no private servers in {folder}: {reason}")]
    NoServers {
        /// The folder.
        folder: PathBuf,
        /// What is missing there.
        reason: String,
    },
    /// A file or a process could not be worked with.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// The private database refused something.
    #[error("the private database: cannot {what}")]
    Database {
        /// What was tried.
        what: String,
        /// Its answer.
        #[source]
        source: tokio_postgres::Error,
    },
    /// The tables could not be made.
    #[error("the private database: cannot migrate")]
    Migration(#[from] schema::SchemaError),
    /// The private broker refused something.
    #[error("the private broker: cannot {what}: {words}")]
    Broker {
        /// What was tried.
        what: String,
        /// Its answer.
        words: String,
    },
}

impl SandboxError {
    /// For `map_err`: an I/O error with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// For `map_err`: a database error with what was tried.
    pub(crate) fn database(what: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let what = what.into();
        move |source| Self::Database { what, source }
    }
}
