//! One value: from text to what its kind means, within its bounds.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;

use super::{Kind, Setting};

/// A checked value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Duration(Duration),
    Number(u64),
    Text(String),
    List(Vec<String>),
    Flag(bool),
    Address(SocketAddr),
    Secret(Option<SecretString>),
}

const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Reads a value. The error says what is wrong with it, and never shows a secret.
pub(super) fn parse(setting: &Setting, texts: &[String]) -> Result<Value, String> {
    let single = || match texts {
        [text] => Ok(text.as_str()),
        _ => Err(format!("given {} times, takes one value", texts.len())),
    };
    match setting.kind {
        Kind::Duration(least, most) => duration(single()?, least, most).map(Value::Duration),
        Kind::Count(least, most) => count(single()?, least, most).map(Value::Number),
        Kind::Bytes(least, most) => bytes(single()?, least, most).map(Value::Number),
        Kind::Text(check) => {
            let text = single()?;
            if !text.is_empty() {
                check(text)?;
            }
            Ok(Value::Text(text.to_owned()))
        }
        Kind::List(check) => list(texts, check).map(Value::List),
        Kind::Choice(words) => choice(single()?, words).map(Value::Text),
        Kind::Flag => flag(single()?).map(Value::Flag),
        Kind::Address => address(single()?).map(Value::Address),
        Kind::Secret => Ok(Value::Secret(
            Some(single()?)
                .filter(|text| !text.is_empty())
                .map(SecretString::from),
        )),
    }
}

fn duration(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let value = humantime::parse_duration(text)
        .map_err(|error| format!("{text:?} is not a duration such as 1500ms or 3s: {error}"))?;
    let shown = humantime::format_duration;
    within(value, least, most).ok_or_else(|| {
        let (least, most) = (shown(least), shown(most));
        format!("{text:?} is outside its bounds, {least} to {most}")
    })
}

fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let value: u64 = text
        .replace('_', "")
        .parse()
        .map_err(|_| format!("{text:?} is not a whole number"))?;
    within(value, least, most)
        .ok_or_else(|| format!("{text:?} is outside its bounds, {least} to {most}"))
}

fn bytes(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.trim();
    let factor = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .or_else(|| unit.is_empty().then_some(1));
    let value = digits.parse::<u64>().ok().zip(factor);
    let value = value.and_then(|(number, factor)| number.checked_mul(factor));
    let value = value.ok_or_else(|| format!("{text:?} is not a size such as 8MiB or 65536"))?;
    within(value, least, most).ok_or_else(|| {
        let (least, most) = (shown_bytes(least), shown_bytes(most));
        format!("{text:?} is outside its bounds, {least} to {most}")
    })
}

/// A size with the largest binary unit that divides it.
pub(super) fn shown_bytes(bytes: u64) -> String {
    let unit = UNITS[..3]
        .iter()
        .rev()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    unit.map_or_else(
        || format!("{bytes}B"),
        |(name, factor)| format!("{}{name}", bytes / factor),
    )
}

fn within<T: PartialOrd>(value: T, least: T, most: T) -> Option<T> {
    (value >= least && value <= most).then_some(value)
}

fn list(texts: &[String], check: super::Check) -> Result<Vec<String>, String> {
    let items: Vec<String> = texts
        .iter()
        .flat_map(|text| text.split(','))
        .map(|item| item.trim().to_owned())
        .filter(|item| !item.is_empty())
        .collect();
    items.iter().try_for_each(|item| check(item))?;
    Ok(items)
}

fn choice(text: &str, words: &[&str]) -> Result<String, String> {
    if words.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not one of {}", words.join(", ")))
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not an address such as 127.0.0.1:9100 or [::]:9100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(setting: &Setting, text: &str) -> String {
        parse(setting, &[text.to_owned()]).expect_err(text)
    }

    #[test]
    fn bytes_have_units_and_never_overflow() {
        for (text, wanted) in [
            ("1", 1),
            ("8MiB", 8 << 20),
            ("64 KiB", 65_536),
            ("2kB", 2000),
        ] {
            assert_eq!(bytes(text, 0, u64::MAX), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "8mib",
            "99999999999999999999",
            "99999999999GiB",
        ] {
            assert!(bytes(text, 0, u64::MAX).is_err(), "{text:?}");
        }
        assert_eq!(shown_bytes(8 << 20), "8MiB");
        assert_eq!(shown_bytes(1000), "1000B");
    }

    #[test]
    fn a_value_outside_its_bounds_is_told_the_bounds() {
        let second = Duration::from_secs(1);
        let lease = Setting::duration("lease", "3s", (second, 60 * second), "");
        let told = refused(&lease, "61s");
        assert!(told.contains("1s to 1m"), "{told}");
        assert!(
            refused(&lease, "3").contains("3"),
            "a number without a unit"
        );
        let batch = Setting::count("batch", "1", (1, 512), "");
        assert!(refused(&batch, "0").contains("1 to 512"));
    }

    #[test]
    fn a_list_takes_commas_and_repeats() {
        let pools = Setting::list("pool", "", "");
        let texts = ["a, b".to_owned(), "c".to_owned()];
        let Ok(Value::List(items)) = parse(&pools, &texts) else {
            panic!("not a list");
        };
        assert_eq!(items, ["a", "b", "c"]);
    }
}
