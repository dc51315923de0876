//! The command line: what all commands take, and their list; the rest is beside it by subject.

mod parked;
mod queues;
mod tenants;
mod upkeep;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use event::{EventType, TenantId};
use secrecy::SecretString;

pub(crate) use parked::{ParkedCommand, ParkedId, ParkedKind, Redrive, Selection, Skip};
pub(crate) use queues::{EffectCommand, EffectOfPool, PoolCommand, Replay, Topology};
pub(crate) use tenants::{AddTenant, Key, Move, TenantCommand};
pub(crate) use upkeep::{Doctor, Retention};
use value::{duration, event_id};

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

impl Cli {
    /// The program's arguments and environment. Ends the program on what it does not understand,
    /// and after `--help`.
    #[must_use]
    pub fn read() -> Self {
        let matches = Self::command().get_matches();
        match Self::from_arg_matches(&matches) {
            Ok(mut cli) => {
                cli.global.prefer_arguments(&matches);
                cli
            }
            Err(error) => error.exit(),
        }
    }
}

impl Global {
    /// A URL among the arguments wins over a file that the environment names.
    fn prefer_arguments(&mut self, matches: &ArgMatches) {
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_given("database_url") && !is_given("database_url_file") {
            self.database_url_file = None;
        }
        if is_given("amqp_url") && !is_given("amqp_url_file") {
            self.amqp_url_file = None;
        }
    }
}

fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} (schema {})", schema::SCHEMA_VERSION)
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "For every command")]
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
    /// A file with that URL in its first line; wins over a URL from the environment.
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
    /// A file with that URL in its first line; wins over a URL from the environment.
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
        /// The event's id, a UUID.
        #[arg(value_parser = event_id)]
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
