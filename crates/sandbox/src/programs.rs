//! Where the installed server programs are.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// Folders that hold `postgres`, beside the search path; `*` stands for one version.
const POSTGRES_FOLDERS: [&str; 4] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
];

/// Folders that hold RabbitMQ's own scripts. The wrappers that distributions put on the search
/// path insist on one user and one folder, so those come last.
const RABBITMQ_FOLDERS: [&str; 5] = [
    "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
    "/opt/rabbitmq_server-*/sbin",
    "/opt/rabbitmq/sbin",
    "/opt/homebrew/opt/rabbitmq/sbin",
    "/usr/local/opt/rabbitmq/sbin",
];

/// Folders that hold Erlang's tools where they are not on the search path.
const ERLANG_FOLDERS: [&str; 3] = [
    "/usr/lib/erlang/erts-*/bin",
    "/usr/lib/erlang/bin",
    "/usr/local/lib/erlang/bin",
];

/// The folder with `postgres` and `initdb`.
pub(crate) fn postgres_folder() -> Result<PathBuf, SandboxError> {
    let found = find(
        "postgres",
        "TICKETFLOW_POSTGRES_BIN",
        &POSTGRES_FOLDERS,
        false,
    )?;
    // The search path may hold a link; initdb is only sure to be beside the real program.
    let real = found
        .canonicalize()
        .map_err(SandboxError::io("resolve postgres"))?;
    Ok(real.parent().unwrap_or(Path::new("/")).to_owned())
}

/// RabbitMQ's start script.
pub(crate) fn rabbitmq_server() -> Result<PathBuf, SandboxError> {
    find(
        "rabbitmq-server",
        "TICKETFLOW_RABBITMQ_BIN",
        &RABBITMQ_FOLDERS,
        true,
    )
}

/// RabbitMQ's command-line tool.
pub(crate) fn rabbitmqctl() -> Result<PathBuf, SandboxError> {
    find(
        "rabbitmqctl",
        "TICKETFLOW_RABBITMQ_BIN",
        &RABBITMQ_FOLDERS,
        true,
    )
}

/// One of Erlang's tools: `epmd` or `erl_call`.
pub(crate) fn erlang(program: &'static str) -> Result<PathBuf, SandboxError> {
    find(program, "TICKETFLOW_ERLANG_BIN", &ERLANG_FOLDERS, false)
}

fn find(
    program: &'static str,
    variable: &str,
    folders: &[&str],
    folders_first: bool,
) -> Result<PathBuf, SandboxError> {
    let named = env::var_os(variable).map(PathBuf::from);
    let mut known: Vec<PathBuf> = folders.iter().flat_map(|folder| expand(folder)).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let mut on_path: Vec<PathBuf> = env::split_paths(&path).collect();
    if folders_first {
        known.append(&mut on_path);
    } else {
        on_path.append(&mut known);
        known = on_path;
    }
    named
        .into_iter()
        .chain(known)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| SandboxError::NotInstalled {
            program,
            hint: format!("not on PATH nor in {}; set {variable}", folders.join(", ")),
        })
}

/// The folders a pattern with one `*` stands for, the highest version first.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort_by_key(|name| version(&name[prefix.len()..]));
    names
        .iter()
        .rev()
        .map(|name| PathBuf::from(format!("{parent}/{name}{after}")))
        .collect()
}

/// The numbers in a version, so that 15 comes after 9.
fn version(text: &str) -> Vec<u32> {
    text.split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{expand, version};

    #[test]
    fn versions_are_numbers() {
        assert!(version("15") > version("9"));
        assert!(version("3.10.8") > version("3.9.27"));
    }

    #[test]
    fn a_pattern_lists_the_newest_version_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["9", "15", "other"] {
            std::fs::create_dir(folder.path().join(format!("v-{name}"))).unwrap();
        }
        std::fs::create_dir(folder.path().join("unrelated")).unwrap();
        let pattern = format!("{}/v-*/bin", folder.path().display());
        let found = expand(&pattern);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], folder.path().join("v-15/bin"));
    }
}
