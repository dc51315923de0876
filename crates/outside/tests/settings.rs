//! What the settings accept, and what they say when they do not.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::io::Write as _;

use outside::{Config, SETTINGS, Tenants};
use runtime::settings::{GRACE, Invocation, Problems, Process, Setting, Sources};
use tempfile::NamedTempFile;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHERS: &[Setting] = &[GRACE];
const PROCESS: Process = Process {
    name: "consumer",
    about: "a test",
    version: "0",
    schema_version: 0,
    settings: &[SETTINGS, OTHERS],
    checks: &[outside::check],
};

fn read(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Config, Problems> {
    match PROCESS.read(&Sources::of(arguments, environment))? {
        Invocation::Run(settings) => Config::of(&settings, &[], "test"),
        Invocation::Say(text) => panic!("{text}"),
    }
}

fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    read(arguments, environment)
        .expect_err("a problem")
        .to_string()
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn without_any_setting_tasks_are_completed_here() {
    let config = read(&[], &[]).unwrap();
    assert_eq!(config.endpoints.len(), 1);
    assert_eq!(config.endpoints[0].name, "local");
    assert_eq!(config.endpoints[0].tenants, Tenants::AllBut(Vec::new()));
    assert!(
        read(&["--outside", "off"], &[])
            .unwrap()
            .endpoints
            .is_empty()
    );
}

#[test]
fn a_tenant_with_an_endpoint_of_its_own_is_left_out_of_the_others() {
    let endpoints = file(&format!(
        "[[endpoint]]\nname = \"acme\"\ntenants = [\"acme\"]\nurl = \"https://hooks.example/x\"\n\
         secrets = [\"{SECRET}\", \"{SECRET}\"]\nrate_per_second = 5\n"
    ));
    let path = endpoints.path().to_str().unwrap();
    let config = read(&["--webhook-endpoints-file", path], &[]).unwrap();
    assert_eq!(config.endpoints[0].name, "acme");
    assert_eq!(config.endpoints[0].rate_per_second, 5);
    assert!(config.endpoints[0].tenants.include("acme"));
    assert!(!config.endpoints[1].tenants.include("acme"));
    assert!(config.endpoints[1].tenants.include("globex"));
}

#[test]
fn a_webhook_needs_a_url_that_leads_out_and_a_secret() {
    let webhook = ["--outside", "webhook", "--webhook-url"];
    let with = |url: &'static str| [&webhook[..], &[url]].concat();
    let secret = [("TICKETFLOW_WEBHOOK_SECRET", SECRET)];
    assert!(read(&with("https://hooks.example/x"), &secret).is_ok());
    let told = refused(&with("https://hooks.example/x"), &[]);
    assert!(told.contains("needs webhook_secret"), "{told}");
    for url in [
        "http://hooks.example/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "nonsense",
    ] {
        assert!(refused(&with(url), &secret).contains("url: "), "{url}");
    }
}

#[test]
fn a_bad_file_of_endpoints_is_told_without_its_secrets() {
    for (text, wanted) in [
        ("[[endpoint]]\nname = \"hunter2", "invalid"),
        ("[[endpoint]]\nsecret = \"hunter2\"", "unknown field"),
        (
            "[[endpoint]]\nname = \"a\"\ntenants = [\"A.b\"]\nurl = \"https://h.example\"\n\
             secrets = [\"hunter2\"]\n",
            "tenant id",
        ),
    ] {
        let endpoints = file(text);
        let path = endpoints.path().to_str().unwrap();
        let told = refused(&["--webhook-endpoints-file", path], &[]);
        assert!(told.contains(wanted), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    let one = |tenant| {
        format!(
            "[[endpoint]]\nname = \"a\"\ntenants = [\"{tenant}\"]\nurl = \"https://h.example\"\n\
             secrets = [\"{SECRET}\"]\n"
        )
    };
    let twice = file(&(one("acme") + &one("acme")));
    let told = refused(
        &["--webhook-endpoints-file", twice.path().to_str().unwrap()],
        &[],
    );
    assert!(told.contains("another one has this name"), "{told}");
    assert!(
        told.contains("tenant acme has an endpoint already"),
        "{told}"
    );
    let told = refused(&["--webhook-endpoints-file", "/nowhere/at.all"], &[]);
    assert!(told.contains("/nowhere/at.all"), "{told}");
}

#[test]
fn times_that_do_not_nest_are_refused() {
    let told = refused(&["--outside-lease", "30s", "--webhook-timeout", "20s"], &[]);
    assert!(
        told.contains("--outside-lease") && told.contains("--webhook-timeout"),
        "{told}"
    );
    let told = refused(&["--outside-backoff", "1h"], &[]);
    assert!(told.contains("--outside-backoff"), "{told}");
}
