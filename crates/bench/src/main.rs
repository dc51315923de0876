//! The binary `bench`.

use std::process::ExitCode;

use bench::Options;
use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let report = Options::parse().run().await?;
    print!("{report}");
    Ok(match report.is_sound() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
