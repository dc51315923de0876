//! Settings as a person gives them: layers, refusals, help.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::time::Duration;

use runtime::settings::{Invocation, SecretUrl, Sources, database};
use runtime::{Problems, Process, Setting, Settings};
use secrecy::ExposeSecret;

const SECOND: Duration = Duration::from_secs(1);

const OWN: &[Setting] = &[
    Setting::duration(
        "lease",
        "3s",
        (SECOND, Duration::from_secs(60)),
        "How long.",
    ),
    Setting::duration(
        "renewal",
        "1s",
        (SECOND, Duration::from_secs(60)),
        "How often.",
    ),
    Setting::count("batch_size", "512", (1, 4096), "How many."),
    Setting::bytes("batch_bytes", "8MiB", (1024, 64 << 20), "How much."),
    Setting::list("pool", "", "Which pools.").checked(|text| match text {
        "dead" => Err("\"dead\" is taken".to_owned()),
        _ => Ok(()),
    }),
    Setting::choice("hint", "on", &["on", "off"], "Whether to listen."),
    Setting::flag("dry", false, "Only look."),
    Setting::address("admin", "127.0.0.1:9101", "Where."),
];
const DATABASE: &[Setting] = &database("ticketflow_relay");

fn nested(settings: &Settings, problems: &mut Problems) {
    if settings.duration("renewal") >= settings.duration("lease") {
        problems.push("renewal must be shorter than lease");
    }
}

const PROCESS: Process = Process {
    name: "relay",
    about: "publishes recorded events",
    version: "1.2.3",
    schema_version: 7,
    settings: &[OWN, DATABASE],
    checks: &[nested],
};

fn read(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Settings, Problems> {
    match PROCESS.read(&Sources::of(arguments, environment))? {
        Invocation::Run(settings) => Ok(settings),
        Invocation::Say(text) => panic!("said {text}"),
    }
}

fn problems(arguments: &[&str], environment: &[(&str, &str)]) -> Vec<String> {
    let problems = read(arguments, environment).expect_err("something is wrong");
    problems.lines().to_vec()
}

fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
    let (_kept, path) = file("lease = '4s'\nbatch_size = 7\ndry = true\npool = ['a', 'b']\n");
    let variables = [
        ("TICKETFLOW_RELAY_CONFIG", path.as_str()),
        ("TICKETFLOW_RELAY_LEASE", "5s"),
        ("TICKETFLOW_RELAY_BATCH_BYTES", "1MiB"),
        ("TICKETFLOW_CONSUMER_NONSENSE", "another process's"),
    ];
    let settings = read(&["--lease=6s", "--admin", "[::1]:1"], &variables).unwrap();
    assert_eq!(settings.duration("lease"), 6 * SECOND);
    assert_eq!(settings.number("batch_bytes"), 1 << 20);
    assert_eq!(settings.number("batch_size"), 7);
    assert!(settings.flag("dry"));
    assert_eq!(settings.list("pool"), ["a", "b"]);
    assert_eq!(settings.text("hint"), "on");
    assert_eq!(settings.text("database_role"), "ticketflow_relay");
    assert_eq!(settings.origin("lease"), "flag --lease");
    assert_eq!(settings.origin("hint"), "default of hint");
}

#[test]
fn flags_can_stand_alone_be_negated_and_be_repeated() {
    let settings = read(&["--dry", "--pool", "a", "--pool=b,c"], &[]).unwrap();
    assert!(settings.flag("dry"));
    assert_eq!(settings.list("pool"), ["a", "b", "c"]);
    let settings = read(&["--no-dry"], &[("TICKETFLOW_RELAY_DRY", "true")]).unwrap();
    assert!(!settings.flag("dry"));
}

#[test]
fn all_problems_are_told_at_once_each_with_its_origin() {
    let (_kept, path) = file("leese = '4s'\nbatch_size = 1.5\n");
    let found = problems(
        &[
            "--config",
            &path,
            "--nonsense",
            "3",
            "stray",
            "--lease",
            "never",
            "--pool",
            "dead",
        ],
        &[
            ("TICKETFLOW_RELAY_BATCH_BYTES", "1GiB"),
            ("TICKETFLOW_RELAY_RENEWLA", "1s"),
            ("TICKETFLOW_RELAY_HINT", "maybe"),
            ("TICKETFLOW_RELAYS_LEASE", "30s"),
            ("TICKETFLOW_CONSUMER_LEASE", "30s"),
        ],
    );
    let all = found.join("\n");
    for wanted in [
        "flag --nonsense is unknown",
        "argument \"stray\" is not expected",
        "environment TICKETFLOW_RELAY_RENEWLA is unknown; did you mean TICKETFLOW_RELAY_RENEWAL?",
        "leese is unknown; did you mean lease?",
        "batch_size: takes a text, a number",
        "flag --lease: \"never\" is not a duration",
        "environment TICKETFLOW_RELAY_BATCH_BYTES: \"1GiB\" is outside its bounds, 1KiB to 64MiB",
        "environment TICKETFLOW_RELAYS_LEASE is unknown; did you mean TICKETFLOW_RELAY_LEASE?",
        "environment TICKETFLOW_RELAY_HINT: \"maybe\" is not one of on, off",
        "flag --pool: \"dead\" is taken",
    ] {
        assert!(all.contains(wanted), "{wanted:?} is not in\n{all}");
    }
    assert_eq!(found.len(), 10, "{all}");
}

#[test]
fn settings_must_fit_each_other() {
    assert_eq!(
        problems(&["--renewal", "3s"], &[]),
        ["renewal must be shorter than lease"]
    );
}

#[test]
fn a_file_that_is_not_there_or_not_toml_is_named() {
    let found = problems(&["--config", "/nowhere/x.toml"], &[]);
    assert!(
        found[0].contains("/nowhere/x.toml cannot be read"),
        "{found:?}"
    );
    let (_kept, path) = file("lease = '3s'\ndatabase_url = 'postgres://u:hunter2@h\n");
    let found = problems(&["--config", &path], &[]);
    assert!(found[0].contains("is not TOML: line 2"), "{found:?}");
    assert!(!found[0].contains("hunter2"), "{found:?}");
}

#[test]
fn the_url_of_the_higher_layer_counts_and_two_of_one_layer_are_refused() {
    let (_kept, path) = file("postgres://u:of-file@h/d\n");
    let shared = ("DATABASE_URL", "postgres://u:shared@h/d");
    let own = ("TICKETFLOW_RELAY_DATABASE_URL", "postgres://u:own@h/d");
    let url = |arguments: &[&str], environment: &[(&str, &str)]| {
        let settings = read(arguments, environment).unwrap();
        let url = SecretUrl::of(&settings, "database_url").unwrap();
        url.read().unwrap().expose_secret().to_owned()
    };
    assert!(url(&[], &[shared]).contains("shared"));
    assert!(url(&[], &[shared, own]).contains("own"));
    assert!(url(&["--database-url-file", &path], &[shared]).contains("of-file"));
    let both = [
        shared,
        ("TICKETFLOW_RELAY_DATABASE_URL_FILE", path.as_str()),
    ];
    let mut found = Problems::default();
    SecretUrl::check(
        &read(&[], &both).unwrap(),
        "database_url",
        &mut found,
        |_| Ok(()),
    );
    assert!(found.lines()[0].contains("both given"), "{found}");
    let mut found = Problems::default();
    let empty = read(&[], &[("DATABASE_URL", "")]).unwrap();
    SecretUrl::check(&empty, "database_url", &mut found, |_| Ok(()));
    assert!(found.lines()[0].contains("set DATABASE_URL"), "{found}");
}

#[test]
fn a_secret_is_never_shown() {
    let settings = read(&["--database-url", "postgres://u:hunter2@h/d"], &[]).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn help_lists_every_setting_with_unit_bounds_default_and_variable() {
    let Ok(Invocation::Say(help)) = PROCESS.read(&Sources::of(&["--nonsense", "--help"], &[]))
    else {
        panic!("no help");
    };
    for setting in OWN.iter().chain(DATABASE) {
        let flag = format!("--{} <", setting.name.replace('_', "-"));
        let variable = format!("TICKETFLOW_RELAY_{}", setting.name.to_uppercase());
        assert!(
            help.contains(&flag) && help.contains(&variable),
            "{}",
            setting.name
        );
    }
    for wanted in [
        "--lease <duration, 1s to 1m>",
        "--batch-bytes <bytes, 1KiB to 64MiB>",
        "default 8MiB",
        "or DATABASE_URL",
    ] {
        assert!(help.contains(wanted), "{wanted} is not in\n{help}");
    }
    assert!(help.lines().all(|line| line.len() <= 110), "{help}");
}

#[test]
fn version_tells_the_schema_too() {
    let said = PROCESS.read(&Sources::of(&["-V"], &[]));
    assert!(matches!(said, Ok(Invocation::Say(text)) if text == "relay 1.2.3 (schema 7)\n"));
}
