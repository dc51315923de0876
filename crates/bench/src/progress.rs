//! A bar on a terminal, nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const LOOKS: &str = "{msg:28} {wide_bar} {pos}/{len} {eta}";

/// A bar for so many steps of one phase. Invisible where stderr is no terminal.
#[must_use]
pub fn bar(phase: impl Into<String>, steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_message(phase.into());
    let style = ProgressStyle::with_template(LOOKS);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
