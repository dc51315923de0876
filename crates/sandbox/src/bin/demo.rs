//! The binary `demo`: see the module of that name.

use std::process::ExitCode;

use clap::Parser;
use sandbox::demo::{self, DemoOptions};

#[tokio::main]
async fn main() -> ExitCode {
    match demo::run(&DemoOptions::parse()).await {
        Ok(summary) => {
            println!("{summary}");
            if summary.is_clean() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}
