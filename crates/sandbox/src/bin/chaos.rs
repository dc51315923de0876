//! The binary `chaos`: see the module of that name.

use std::process::ExitCode;

use clap::Parser;
use sandbox::chaos::{self, ChaosOptions};

#[tokio::main]
async fn main() -> ExitCode {
    match chaos::run(&ChaosOptions::parse()).await {
        Ok(summary) => {
            println!("{summary}");
            if summary.is_clean() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("chaos: {error:#}");
            ExitCode::FAILURE
        }
    }
}
