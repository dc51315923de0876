//! The command line: which bench, its sizes, the seed.

use clap::{Parser, Subcommand};

use crate::benches::drain;
use crate::report::Report;
use crate::rig::Rig;

/// Measures one thing and prints a table and, last, one line of JSON.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub struct Options {
    /// Draws aggregates, texts and moments; the same seed draws the same.
    #[arg(long, global = true, default_value_t = 1)]
    pub seed: u64,
    /// What to measure.
    #[command(subcommand)]
    pub bench: Bench,
}

/// A bench with its sizes.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Pending rows to confirmed messages, against raw publishing.
    Drain(drain::Options),
}

impl Options {
    /// Runs the bench on servers of its own.
    ///
    /// # Errors
    /// What keeps it from measuring; what it finds wrong is in the report.
    pub async fn run(&self) -> anyhow::Result<Report> {
        match &self.bench {
            Bench::Drain(options) => {
                let rig = Rig::start("drain", self.seed).await?;
                drain::run(&rig, options).await
            }
        }
    }
}
