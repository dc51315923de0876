//! The settings of the loop, a group of the consumer's table.

use std::time::Duration;

use runtime::{Problems, Setting, Settings};

use crate::config::Config;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Kept of a lease for the settle.
const SETTLING: Duration = Duration::from_secs(10);

/// All of them. The process that runs the loop has `grace` besides.
pub const SETTINGS: &[Setting] = &[
    Setting::choice(
        "outside",
        "local",
        &["off", "local", "webhook"],
        "Where outside tasks of tenants without an endpoint of their own go; off leaves them.",
    ),
    Setting::text(
        "webhook_url",
        "",
        "The URL that takes tasks by POST; https.",
    ),
    Setting::text(
        "webhook_status_url",
        "",
        "The URL that is asked about a task in doubt, with {task_id} in it: 200 taken, 404 not.",
    ),
    Setting::secret(
        "webhook_secret",
        "TICKETFLOW_WEBHOOK_SECRET",
        "What requests are signed with: whsec_ and Base64; two, separated by a space, while it is changed.",
    ),
    Setting::text(
        "webhook_endpoints_file",
        "",
        "A TOML file of [[endpoint]] with name, tenants, url, status_url, secrets, rate_per_second.",
    ),
    Setting::count(
        "webhook_rate",
        "0",
        (0, 100_000),
        "How many requests a second this process may make to webhook_url; 0 is no limit.",
    ),
    Setting::count(
        "webhook_concurrency",
        "16",
        (1, 256),
        "How many requests to one endpoint may be under way at once.",
    ),
    Setting::duration(
        "webhook_connect_timeout",
        "5s",
        (MILLISECOND, MINUTE),
        "How long connecting to an endpoint may take.",
    ),
    Setting::duration(
        "webhook_timeout",
        "20s",
        (MILLISECOND, FIVE_MINUTES),
        "How long a request may take, connecting and answer included.",
    ),
    Setting::flag(
        "webhook_allow_private",
        false,
        "Whether loopback, private and link-local addresses may be called, also without TLS.",
    ),
    Setting::duration(
        "outside_lease",
        "90s",
        (SECOND, HOUR),
        "How long a claimed task is left alone; above twice webhook_timeout.",
    ),
    Setting::count(
        "outside_max_attempts",
        "100",
        (1, 1_000_000),
        "After so many tries a task is parked.",
    ),
    Setting::duration(
        "outside_backoff",
        "1s",
        (MILLISECOND, HOUR),
        "The longest wait after the first failed try; it doubles, with full jitter.",
    ),
    Setting::duration(
        "outside_backoff_max",
        "10m",
        (MILLISECOND, DAY),
        "The longest wait between two tries of a task.",
    ),
    Setting::duration(
        "outside_retry_after_max",
        "1h",
        (MILLISECOND, DAY),
        "The longest wait that an endpoint may ask for.",
    ),
    Setting::count(
        "outside_circuit_failures",
        "5",
        (1, 1000),
        "After so many failures in a row an endpoint is only probed.",
    ),
    Setting::duration(
        "outside_circuit_wait_max",
        "1m",
        (MILLISECOND, HOUR),
        "The longest wait between two probes of an endpoint that fails.",
    ),
    Setting::duration(
        "outside_idle_poll",
        "250ms",
        (MILLISECOND, MINUTE),
        "The longest wait before looking for due tasks again.",
    ),
];

/// A check for the table: endpoints must be valid, and times must nest.
pub fn check(settings: &Settings, problems: &mut Problems) {
    if let Err(found) = Config::of(settings, &[], "") {
        for problem in found.lines() {
            problems.push(problem.clone());
        }
    }
    let (lease, timeout) = ("outside_lease", "webhook_timeout");
    // The question for a key and the request itself, and a while to settle.
    let least = settings.duration(timeout) * 2 + SETTLING;
    if settings.duration(lease) < least {
        problems.push(format!(
            "{} is below twice that of {} and {SETTLING:?}",
            settings.origin(lease),
            settings.origin(timeout)
        ));
    }
    if settings.duration("outside_backoff") > settings.duration("outside_backoff_max") {
        problems.push(format!(
            "{} is above {}",
            settings.origin("outside_backoff"),
            settings.origin("outside_backoff_max")
        ));
    }
}
