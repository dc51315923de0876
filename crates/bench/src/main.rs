//! The binary `bench`.

use std::process::ExitCode;

use bench::Options;
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match Options::parse().run().await {
        Ok(report) => {
            print!("{report}");
            match report.is_sound() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
