//! The command line: which bench, its sizes, the seed.

use clap::{Parser, Subcommand};

use crate::benches::{consume, create, drain, fairness, growth, latency, pinned, recover, scale};
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
    /// A full queue to applied effects, against a bare loop writing the same rows.
    Consume(consume::Options),
    /// Tickets over HTTP, against the same rows by pgbench.
    Create(create::Options),
    /// Commit to broker and to effect, against a bare commit, publish, confirm.
    Latency(latency::Options),
    /// CPU an event with more backlog, more tenants, and published rows before.
    Growth(growth::Options),
    /// What quiet tenants feel of a noisy one, and it of them.
    Fairness(fairness::Options),
    /// The drain rate under an old snapshot, against the rate before.
    Pinned(pinned::Options),
    /// How long the lanes of a killed relay stand still.
    Recover(recover::Options),
    /// 1, 2 and 4 relays; 1, 2 and 4 consumers.
    Scale(scale::Options),
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
            Bench::Consume(options) => consume::run(&rig, options).await,
            Bench::Create(options) => create::run(&rig, options).await,
            Bench::Latency(options) => latency::run(&rig, options).await,
            Bench::Growth(options) => growth::run(&rig, options).await,
            Bench::Fairness(options) => fairness::run(&rig, options).await,
            Bench::Pinned(options) => pinned::run(&rig, options).await,
            Bench::Recover(options) => recover::run(&rig, options).await,
            Bench::Scale(options) => scale::run(&rig, options).await,
        }
    }
}
