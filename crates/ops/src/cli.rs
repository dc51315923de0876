//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use event::{EffectName, EventType, PoolName, TenantId};
use secrecy::SecretString;

/// Operates TicketFlow: tenants, backlog, what needs a person.
#[derive(Debug, Parser)]
#[command(
    name = "ticketflow",
    version = version(),
    max_term_width = 100,
    after_help = "Ends 0 when done, 1 when refused or when `doctor` finds a problem, 2 for a command \
line it does not understand, 3 when what was named is not there, 4 when a server is away."
)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} (schema {})", schema::SCHEMA_VERSION)
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// PostgreSQL, e.g. postgres://user:password@host/database.
    #[arg(
        long,
        global = true,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) database_url: Option<SecretString>,
    /// A file with that URL in its first line; wins over the URL.
    #[arg(
        long,
        global = true,
        env = "TICKETFLOW_OPS_DATABASE_URL_FILE",
        value_name = "FILE"
    )]
    pub(crate) database_url_file: Option<PathBuf>,
    /// PEM certificates to trust instead of the system's, for sslmode require and above.
    #[arg(
        long,
        global = true,
        env = "TICKETFLOW_OPS_DATABASE_CA_FILE",
        value_name = "FILE"
    )]
    pub(crate) database_ca_file: Option<PathBuf>,
    /// RabbitMQ, e.g. amqps://user:password@host/vhost; for the commands that ask it.
    #[arg(
        long,
        global = true,
        env = "AMQP_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) amqp_url: Option<SecretString>,
    /// A file with that URL in its first line; wins over the URL.
    #[arg(
        long,
        global = true,
        env = "TICKETFLOW_OPS_AMQP_URL_FILE",
        value_name = "FILE"
    )]
    pub(crate) amqp_url_file: Option<PathBuf>,
    /// PEM certificates to trust instead of the system's, for amqps.
    #[arg(
        long,
        global = true,
        env = "TICKETFLOW_OPS_AMQP_CA_FILE",
        value_name = "FILE"
    )]
    pub(crate) amqp_ca_file: Option<PathBuf>,
    /// The role that is taken; empty keeps the login's own.
    #[arg(
        long,
        global = true,
        env = "TICKETFLOW_OPS_DATABASE_ROLE",
        default_value = "ticketflow_operator",
        value_name = "ROLE"
    )]
    pub(crate) database_role: String,
    /// Who is noted in operator_actions; the login name if not given.
    #[arg(long, global = true, env = "TICKETFLOW_OPS_ACTOR", value_name = "NAME")]
    pub(crate) actor: Option<String>,
    /// JSON instead of tables.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How long the database may take for one step.
    #[arg(long, global = true, default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub(crate) deadline: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Brings the database's tables to this version; any number may run at once.
    Migrate,
    /// Adds, shows and changes tenants and their keys.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Shows, adds, pauses and resumes effects and their queues.
    #[command(subcommand)]
    Effect(EffectCommand),
    /// Lists, shows and removes pools.
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Declares the queues that must exist, and sends each what it has missed.
    Topology(Topology),
    /// Shows the backlog, the queues and what waits, at a glance.
    Status,
    /// Tells where an event is: its row, its receipts, and what it waits for.
    Event {
        /// The event's id.
        id: uuid::Uuid,
    },
    /// Follows events as they are recorded.
    Tail(Tail),
    /// Lists lanes that are leased, have work or ended unsettled.
    Lanes {
        #[command(flatten)]
        filter: TenantFilter,
        /// Idle ones too.
        #[arg(long)]
        all: bool,
    },
    /// Lists aggregates that wait for their head.
    Held {
        #[command(flatten)]
        filter: TenantFilter,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Lists and shows what is parked: it waits for a person.
    #[command(subcommand)]
    Parked(ParkedCommand),
    /// Sends parked events, deliveries and outside tasks round again, with their ids.
    Redrive(Redrive),
    /// Gives one parked or refused thing up; what waits behind it goes on.
    Skip(Skip),
    /// Sends published events of a time to one effect's queue again, with their ids.
    Replay(Replay),
    /// Makes partitions ahead and removes what is older than its retention.
    Retention(Retention),
    /// Looks for what is wrong, and says what to do about it.
    Doctor(Doctor),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// Lists pools with their tenants and effects.
    List,
    /// Shows what is in a pool and in its queues.
    Show {
        /// Which.
        pool: PoolName,
        /// Ends 1 unless nothing is in it: no tenant, no message, no delivery that waits.
        #[arg(long)]
        idle: bool,
    },
    /// Removes a pool in which nothing is, with its queues.
    Remove {
        /// Which.
        pool: PoolName,
        /// How long to wait until nothing is in it; the broker's counts follow after some seconds.
        #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
        within: Duration,
        #[command(flatten)]
        because: Because,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Topology {
    /// Of this pool, which may be new; may be given more than once. All in use if not given.
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Vec<PoolName>,
    /// The pool whose effects one without any gets.
    #[arg(long, value_name = "POOL", default_value = "shared")]
    pub(crate) like: PoolName,
    /// Changes nothing: tells which queues are missing or not ready, and ends 1 if there are any.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TenantFilter {
    /// Of this tenant only.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
}

/// Why something is changed.
#[derive(Debug, Args)]
pub(crate) struct Because {
    /// Why, for operator_actions.
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) because: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Adds a tenant.
    Add(AddTenant),
    /// Lists the tenants.
    List,
    /// Shows a tenant: backlog, keys, lanes.
    Show {
        /// Which.
        tenant: TenantId,
    },
    /// Stops publishing its events; it still records them.
    Pause {
        /// Which.
        tenant: TenantId,
        #[command(flatten)]
        because: Because,
    },
    /// Publishes its events again.
    Resume {
        /// Which.
        tenant: TenantId,
        #[command(flatten)]
        because: Because,
    },
    /// Moves it to another pool, while it is in use.
    Move(Move),
    /// Makes a key for the HTTP API and prints it, this once; or lists, revokes, expires keys.
    Key(Key),
}

#[derive(Debug, Args)]
pub(crate) struct AddTenant {
    /// Its id: a-z, 0-9, '_' and '-'.
    pub(crate) tenant: TenantId,
    /// The pool whose queues and processes serve it.
    #[arg(long, default_value = "shared")]
    pub(crate) pool: PoolName,
    /// HTTP requests a second; the producer's setting if not given.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    pub(crate) rate: Option<i32>,
    /// HTTP requests at once; the producer's setting if not given.
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    pub(crate) burst: Option<i32>,
    /// Ends well if the tenant is there already, in this pool.
    #[arg(long)]
    pub(crate) if_missing: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Which.
    pub(crate) tenant: TenantId,
    /// Where to.
    #[arg(long)]
    pub(crate) pool: PoolName,
    /// How long to wait for consumers of the pool, and for relays to give the lanes back.
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "DURATION")]
    pub(crate) within: Duration,
    /// Moves it even if no consumer is subscribed to the pool's queues, or nobody can tell.
    #[arg(long)]
    pub(crate) without_consumers: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Key {
    /// Whose.
    pub(crate) tenant: TenantId,
    /// Lists the tenant's keys instead of making one.
    #[arg(long, conflicts_with_all = ["revoke", "expire"])]
    pub(crate) list: bool,
    /// Ends this key now (its id, or the key itself).
    #[arg(long, value_name = "KEY", conflicts_with = "expire")]
    pub(crate) revoke: Option<String>,
    /// Ends this key after --after (its id, or the key itself).
    #[arg(long, value_name = "KEY")]
    pub(crate) expire: Option<String>,
    /// How long a new key is valid (for ever if not given), or until the named one expires.
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) after: Option<Duration>,
    /// What the new key is for.
    #[arg(long, default_value = "")]
    pub(crate) label: String,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EffectCommand {
    /// Lists effects and their queues.
    List,
    /// Adds an effect to a pool; it gets the published events that are still there, too.
    Add {
        /// Its name, the last part of its queue's.
        effect: EffectName,
        /// The pool.
        #[arg(long, default_value = "shared")]
        pool: PoolName,
        /// Patterns of event types, e.g. `ticket.#`.
        #[arg(long, required = true, value_delimiter = ',', value_parser = pattern)]
        types: Vec<String>,
        #[command(flatten)]
        because: Because,
    },
    /// Makes its consumers leave its queue alone.
    Pause(EffectOfPool),
    /// Lets its consumers go on.
    Resume(EffectOfPool),
}

#[derive(Debug, Args)]
pub(crate) struct EffectOfPool {
    /// Its name.
    pub(crate) effect: EffectName,
    /// The pool; all that have it if not given.
    #[arg(long)]
    pub(crate) pool: Option<PoolName>,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) filter: TenantFilter,
    /// Of this event type only.
    #[arg(long = "type", value_name = "EVENT_TYPE")]
    pub(crate) event_type: Option<EventType>,
    /// How far back to start.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub(crate) since: Duration,
    /// Prints what is there and ends.
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Retention {
    /// How long published and skipped events are kept.
    #[arg(long, default_value = "14d", value_parser = days, value_name = "DURATION")]
    pub(crate) outbox_retention: Duration,
    /// How long receipts are kept: what is older can no longer be told from a duplicate.
    #[arg(long, default_value = "35d", value_parser = days, value_name = "DURATION")]
    pub(crate) dedup_window: Duration,
    /// How far ahead an event may be delayed.
    #[arg(long, default_value = "7d", value_parser = duration, value_name = "DURATION")]
    pub(crate) max_delay: Duration,
    /// After which time of refusals an event is parked.
    #[arg(long, default_value = "24h", value_parser = duration, value_name = "DURATION")]
    pub(crate) park_after: Duration,
    /// The oldest event that is ever redriven or replayed.
    #[arg(long, default_value = "14d", value_parser = duration, value_name = "DURATION")]
    pub(crate) oldest_redrive: Duration,
    /// The longest a message waits in a queue.
    #[arg(long, default_value = "7d", value_parser = duration, value_name = "DURATION")]
    pub(crate) max_queue_time: Duration,
    /// Only says what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// From which age on the oldest due event is a problem.
    #[arg(long, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) due_age: Duration,
    /// Lets events go that are held without a hold.
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ParkedCommand {
    /// Lists what is parked, the oldest first.
    List(Selection),
    /// Shows one parked thing, with the exact bytes if asked for.
    Show {
        /// The id of an event or task, or the number of a delivery.
        id: ParkedId,
        /// Writes the body to stdout, byte for byte, and nothing else.
        #[arg(long)]
        body: bool,
    },
}

/// Which parked things are meant.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Of this kind only.
    #[arg(long, value_enum)]
    pub(crate) kind: Option<ParkedKind>,
    /// Of this tenant only.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Of this effect only (deliveries).
    #[arg(long)]
    pub(crate) effect: Option<EffectName>,
    /// With this text in the reason.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Recorded or received at least so long ago.
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) older_than: Option<Duration>,
    /// So many of each kind at most.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    pub(crate) limit: i64,
}

#[derive(Debug, Args)]
pub(crate) struct Redrive {
    /// Ids of events or tasks, numbers of deliveries.
    pub(crate) ids: Vec<ParkedId>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Everything that is parked.
    #[arg(long)]
    pub(crate) all: bool,
    /// They become due one after the other within this time.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub(crate) stagger: Duration,
    /// What is older is left alone: its receipts may be gone.
    #[arg(long, default_value = "14d", value_parser = duration, value_name = "DURATION")]
    pub(crate) oldest_redrive: Duration,
    /// Only says what would be sent.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

#[derive(Debug, Args)]
pub(crate) struct Skip {
    /// The id of an event or task, or the number of a delivery.
    pub(crate) id: ParkedId,
    /// Of this tenant, should several have used the id.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Why, for operator_actions.
    #[arg(long, required = true, value_name = "TEXT")]
    pub(crate) because: String,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The effect whose queue they go to.
    #[arg(long)]
    pub(crate) effect: EffectName,
    /// The pool they were published to.
    #[arg(long, default_value = "shared")]
    pub(crate) pool: PoolName,
    /// Of this tenant only.
    #[arg(long)]
    pub(crate) tenant: Option<TenantId>,
    /// Published from then on: a time such as 2026-11-30T12:00:00Z, or a duration ago such as 2h.
    #[arg(long, value_parser = moment, value_name = "WHEN")]
    pub(crate) from: DateTime<Utc>,
    /// Published before then; now if not given.
    #[arg(long, value_parser = moment, value_name = "WHEN")]
    pub(crate) to: Option<DateTime<Utc>>,
    /// Only those for which the effect has no receipt in this database.
    #[arg(long)]
    pub(crate) missing: bool,
    /// Only says how many there are.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) because: Because,
}

/// Which kind of parked thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParkedKind {
    /// Of the outbox: could not be published.
    Event,
    /// Of a consumer: could not be applied.
    Delivery,
    /// Of the notification effect: could not be sent to the outside.
    Task,
}

/// What a parked thing is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkedId {
    /// An event or a task.
    Uuid(uuid::Uuid),
    /// A delivery.
    Number(i64),
}

impl std::str::FromStr for ParkedId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().map(Self::Number).ok();
        let id = || uuid::Uuid::parse_str(text).map(Self::Uuid).ok();
        number
            .or_else(id)
            .ok_or_else(|| "neither the id of an event or task nor a delivery's number".to_owned())
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("not a duration such as 10s: {error}"))
}

/// A time, or how long ago it was.
fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    let told = "neither a time such as 2026-11-30T12:00:00Z nor a duration such as 2h";
    let ago = humantime::parse_duration(text).map_err(|_| told.to_owned())?;
    Utc::now()
        .checked_sub_signed(chrono::TimeDelta::from_std(ago).map_err(|_| told.to_owned())?)
        .ok_or_else(|| told.to_owned())
}

fn days(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < Duration::from_secs(86_400) {
        return Err("partitions are a day each: at least 1d".to_owned());
    }
    Ok(duration)
}

/// A binding pattern: an event type in which words may be `*` or `#`.
fn pattern(text: &str) -> Result<String, String> {
    let word = |word: &str| word == "*" || word == "#" || EventType::parse(word).is_ok();
    let valid = text.len() <= 100 && text.split('.').all(word);
    valid
        .then(|| text.to_owned())
        .ok_or_else(|| "not a pattern such as ticket.# or ticket.created".to_owned())
}
