//! The layers: what flags, environment and file say, before it is checked.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Kind, Problems, Setting, Sources};

/// What a layer says about one setting, and where.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) texts: Vec<String>,
    pub(super) origin: String,
    pub(super) rank: u8,
}

/// By the name of the setting.
pub(super) type Layer = BTreeMap<&'static str, Said>;

/// What the arguments ask for.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) layer: Layer,
    pub(super) help: bool,
    pub(super) version: bool,
}

/// Reads `--name value`, `--name=value`, and for a flag also `--name` and `--no-name`.
pub(super) fn flags(settings: &[Setting], sources: &Sources, problems: &mut Problems) -> Flags {
    let mut found = Flags::default();
    let mut arguments = sources.argument_texts(problems).into_iter().peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => found.help = true,
            "-V" | "--version" => found.version = true,
            _ if !argument.starts_with("--") => {
                problems.push(format!("argument {argument:?} is not expected"));
            }
            _ => {
                let (flag, inline) = match argument.split_once('=') {
                    Some((flag, value)) => (flag, Some(value.to_owned())),
                    None => (argument.as_str(), None),
                };
                let Some((setting, implied)) = find_flag(settings, flag) else {
                    problems.push(unknown_flag(settings, flag));
                    // Its value would only be a second problem.
                    arguments.next_if(|next| inline.is_none() && !next.starts_with("--"));
                    continue;
                };
                let separate =
                    || arguments.next_if(|next| implied.is_none() && !next.starts_with("--"));
                match inline.or_else(separate).or(implied.map(str::to_owned)) {
                    Some(text) => say(&mut found.layer, setting, text),
                    None => problems.push(format!("flag {flag} takes a value")),
                }
            }
        }
    }
    found
}

fn say(layer: &mut Layer, setting: &Setting, text: String) {
    let said = layer.entry(setting.name).or_insert_with(|| Said {
        texts: Vec::new(),
        origin: format!("flag {}", setting.flag_name()),
        rank: 3,
    });
    said.texts.push(text);
}

/// The setting of a flag, and the value that the flag alone stands for.
fn find_flag<'a>(
    settings: &'a [Setting],
    flag: &str,
) -> Option<(&'a Setting, Option<&'static str>)> {
    let exact = settings.iter().find(|setting| setting.flag_name() == flag);
    if let Some(setting) = exact {
        let implied = matches!(setting.kind, Kind::Flag).then_some("true");
        return Some((setting, implied));
    }
    let negated = flag.strip_prefix("--no-").map(|name| format!("--{name}"))?;
    settings
        .iter()
        .find(|setting| matches!(setting.kind, Kind::Flag) && setting.flag_name() == negated)
        .map(|setting| (setting, Some("false")))
}

fn unknown_flag(settings: &[Setting], flag: &str) -> String {
    let names: Vec<String> = settings.iter().map(Setting::flag_name).collect();
    format!("flag {flag} is unknown{}", nearest(flag, &names))
}

/// Reads the process's own variables; one of them that no setting has is a problem.
pub(super) fn environment(
    settings: &[Setting],
    prefix: &str,
    sources: &Sources,
    problems: &mut Problems,
) -> Layer {
    let mut layer = Layer::new();
    let shared = |name: &str| {
        settings
            .iter()
            .any(|setting| setting.variable == Some(name))
    };
    let ours = |name: &str| name.starts_with(prefix) || is_slip_of(name, prefix);
    let variables = sources.variables(|name| ours(name) || shared(name), problems);
    for (variable, text) in variables {
        let own = settings
            .iter()
            .find(|setting| setting.variable_name(prefix) == variable);
        let common = || {
            settings
                .iter()
                .find(|setting| setting.variable == Some(variable.as_str()))
        };
        let Some(setting) = own.or_else(common) else {
            let names: Vec<String> = settings.iter().map(|s| s.variable_name(prefix)).collect();
            let hint = nearest(&variable, &names);
            problems.push(format!("environment {variable} is unknown{hint}"));
            continue;
        };
        // An empty DATABASE_URL is none: there is no other way to unset it in many places.
        if matches!(setting.kind, Kind::Secret) && text.is_empty() {
            continue;
        }
        let said = Said {
            texts: vec![text],
            origin: format!("environment {variable}"),
            rank: 2,
        };
        if own.is_some() {
            layer.insert(setting.name, said);
        } else {
            layer.entry(setting.name).or_insert(said);
        }
    }
    layer
}

/// Whether a variable names no process of ours, but nearly the one of `prefix`:
/// `TICKETFLOW_RELAYS_…`.
fn is_slip_of(variable: &str, prefix: &str) -> bool {
    let Some(common) = prefix.trim_end_matches('_').rfind('_').map(|end| end + 1) else {
        return false;
    };
    let (family, process) = prefix.split_at(common);
    let Some(named) = variable
        .strip_prefix(family)
        .and_then(|rest| rest.split('_').next())
    else {
        return false;
    };
    let process = process.trim_end_matches('_');
    named != process && distance(named, process) <= SLIP && variable.len() > prefix.len()
}

/// Reads a TOML file of settings by name.
pub(super) fn file(settings: &[Setting], path: &Path, problems: &mut Problems) -> Layer {
    let mut layer = Layer::new();
    let shown = path.display();
    let table: toml::Table = match std::fs::read_to_string(path) {
        Err(error) => {
            problems.push(format!("file {shown} cannot be read: {error}"));
            return layer;
        }
        Ok(text) => match text.parse() {
            Ok(table) => table,
            Err(error) => {
                problems.push(format!("file {shown} is not TOML: {}", told(&text, &error)));
                return layer;
            }
        },
    };
    for (key, value) in table {
        let Some(setting) = settings.iter().find(|setting| setting.name == key) else {
            let names: Vec<String> = settings.iter().map(|s| s.name.to_owned()).collect();
            let hint = nearest(&key, &names);
            problems.push(format!("file {shown}: {key} is unknown{hint}"));
            continue;
        };
        let origin = format!("file {shown}: {key}");
        match texts_of(value) {
            Some(texts) => {
                let rank = 1;
                let said = Said {
                    texts,
                    origin,
                    rank,
                };
                layer.insert(setting.name, said);
            }
            None => problems.push(format!("{origin}: takes a text, a number, true or false")),
        }
    }
    layer
}

/// The parser's message without its excerpt of the file, which may hold a password.
fn told(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(0, |span| {
        text.get(..span.start)
            .map_or(0, |before| before.matches('\n').count())
    });
    format!("line {}: {}", line + 1, error.message())
}

fn texts_of(value: toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Boolean(flag) => Some(vec![flag.to_string()]),
        toml::Value::Array(items) => {
            let texts: Option<Vec<_>> = items.into_iter().map(texts_of).collect();
            texts.map(|texts| texts.into_iter().flatten().collect())
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// How many letters a slip has at most.
const SLIP: usize = 2;

/// `; did you mean …?` if a known name is only a slip away.
fn nearest(name: &str, known: &[String]) -> String {
    let closest = known
        .iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .min();
    closest
        .filter(|(distance, _)| *distance <= SLIP)
        .map_or_else(String::new, |(_, known)| format!("; did you mean {known}?"))
}

/// How many letters have to be put in, taken out or changed.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
