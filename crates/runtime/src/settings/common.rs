//! The settings that several processes share, in groups.

use std::time::Duration;

use super::Setting;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// How a process writes its logs.
pub const LOG: &[Setting] = &[
    Setting::text(
        "log",
        "info",
        "What is logged: a level, or a filter such as info,relay=debug.",
    ),
    Setting::choice(
        "log_format",
        "text",
        &["text", "json"],
        "How a line of the log looks, on stderr.",
    ),
];

/// How long a clean stop may take.
pub const GRACE: Setting = Setting::duration(
    "grace",
    "25s",
    (Duration::from_millis(100), HOUR),
    "How long a clean stop may take; below what the service manager waits before it kills.",
);

/// Where a process answers for its health, by default at `address`.
#[must_use]
pub const fn admin(address: &'static str) -> Setting {
    Setting::address(
        "admin",
        address,
        "Where /healthz, /readyz and /metrics are served; port 0 picks a free one.",
    )
}

/// How a process reaches PostgreSQL, by default in the role `role`.
#[must_use]
pub const fn database(role: &'static str) -> [Setting; 10] {
    [
        Setting::secret(
            "database_url",
            "DATABASE_URL",
            "PostgreSQL, e.g. postgres://user:password@host/database?sslmode=verify-full.",
        ),
        Setting::text(
            "database_url_file",
            "",
            "A file with that URL, read again for each connection: passwords may rotate.",
        ),
        Setting::text(
            "database_ca_file",
            "",
            "PEM certificates to trust instead of the system's, for sslmode require and above.",
        ),
        Setting::text(
            "database_role",
            role,
            "The role that each connection takes; empty keeps the login's own.",
        ),
        Setting::count(
            "database_pool_size",
            "8",
            (1, 500),
            "How many connections the pool has.",
        ),
        Setting::duration(
            "database_connect_timeout",
            "5s",
            (Duration::from_millis(100), MINUTE),
            "How long making a connection may take.",
        ),
        Setting::duration(
            "database_wait_timeout",
            "5s",
            (MILLISECOND, MINUTE),
            "How long to wait for a free connection of the pool.",
        ),
        Setting::duration(
            "database_statement_timeout",
            "30s",
            (SECOND, HOUR),
            "How long one statement may take.",
        ),
        Setting::duration(
            "database_lock_timeout",
            "5s",
            (MILLISECOND, HOUR),
            "How long a statement may wait for a lock.",
        ),
        Setting::duration(
            "database_idle_in_transaction_timeout",
            "30s",
            (SECOND, HOUR),
            "After how long the server ends a transaction that nobody continues.",
        ),
    ]
}

/// How a process reaches RabbitMQ.
pub const BROKER: &[Setting] = &[
    Setting::secret(
        "amqp_url",
        "AMQP_URL",
        "RabbitMQ, e.g. amqps://user:password@host/vhost.",
    ),
    Setting::text(
        "amqp_url_file",
        "",
        "A file with that URL in its first line, read again for each connection.",
    ),
];
