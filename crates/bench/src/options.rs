//! The command line: which bench, its sizes, the seed.

use clap::{Parser, Subcommand};

use crate::benches::{drain, latency};
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
    /// Commit to broker and to effect, against a bare commit, publish, confirm.
    Latency(latency::Options),
}

impl Options {
    /// Runs the bench on servers of its own.
    ///
    /// # Errors
    /// What keeps it from measuring; what it finds wrong is in the report.
    pub async fn run(&self) -> anyhow::Result<Report> {
        let rig = Rig::start("bench", self.seed).await?;
        match &self.bench {
            Bench::Drain(options) => drain::run(&rig, options).await,
            Bench::Latency(options) => latency::run(&rig, options).await,
        }
    }
}
