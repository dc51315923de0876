//! `--help`: every setting with its kind, unit, bounds, default and variable, from the table.

use std::fmt::Write as _;

use super::value::shown_bytes;
use super::{Kind, Process, Setting};

/// The whole text.
pub(super) fn text(process: &Process, table: &[Setting]) -> String {
    let Process {
        name,
        about,
        version,
        ..
    } = process;
    let prefix = process.prefix();
    let mut text = format!(
        "{name} {version}: {about}\n\n\
         Usage: {name} [--SETTING VALUE]...\n\n\
         A setting is taken from its flag, else from its variable in the environment, else from\n\
         the TOML file of --config (by its name, with '_'), else it has its default.\n\n\
         Settings:\n"
    );
    for setting in table {
        one(&mut text, setting, &prefix);
    }
    text.push_str(
        "\n  -h, --help\n        This text.\n\
         \x20 -V, --version\n        The version, and the version of the tables that it works with.\n",
    );
    text
}

fn one(text: &mut String, setting: &Setting, prefix: &str) {
    let flag = setting.flag_name();
    let variable = setting.variable_name(prefix);
    let also = setting
        .variable
        .map_or_else(String::new, |name| format!(" or {name}"));
    let default = match setting.default {
        "" => "none".to_owned(),
        default => default.to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {flag} <{}>", kind(&setting.kind));
    let _ = writeln!(text, "        {}", setting.help);
    let _ = writeln!(text, "        default {default}; {variable}{also}");
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Duration(least, most) => {
            let (least, most) = (
                humantime::format_duration(*least),
                humantime::format_duration(*most),
            );
            format!("duration, {least} to {most}")
        }
        Kind::Count(least, most) => format!("number, {least} to {most}"),
        Kind::Bytes(least, most) => {
            format!("bytes, {} to {}", shown_bytes(*least), shown_bytes(*most))
        }
        Kind::Text(_) => "text".to_owned(),
        Kind::List(_) => "list: a,b,c or given several times".to_owned(),
        Kind::Choice(words) => words.join("|"),
        Kind::Flag => "true|false".to_owned(),
        Kind::Address => "address:port".to_owned(),
        Kind::Secret => "url".to_owned(),
    }
}
