//! Variables of the environment that this program would read by their prefix, but does not know.

use std::collections::BTreeSet;

use clap::CommandFactory as _;

use crate::cli::Cli;

const PREFIX: &str = "TICKETFLOW_OPS_";

/// Says which variables are unknown: a slip in a name would silently leave the default.
pub(crate) fn unknown(names: impl Iterator<Item = String>) -> Option<String> {
    let command = Cli::command();
    let known: BTreeSet<&str> = command
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    let ours = names.filter(|name| name.starts_with(PREFIX));
    let unknown: BTreeSet<String> = ours.filter(|name| !known.contains(name.as_str())).collect();
    if unknown.is_empty() {
        return None;
    }
    let listed = |names: Vec<&str>| names.join(", ");
    let unknown = listed(unknown.iter().map(String::as_str).collect());
    let known = listed(
        known
            .into_iter()
            .filter(|name| name.starts_with(PREFIX))
            .collect(),
    );
    Some(format!(
        "environment {unknown} is unknown; there are {known}"
    ))
}
