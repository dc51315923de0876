//! What a caller may want otherwise about a pair of servers.

/// Settings of a private pair of servers. The default is what production would have, so that
/// benches mean something: `fsync` is on.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// Whether PostgreSQL forces its writes to disk.
    pub fsync: bool,
    /// PostgreSQL's limit of connections.
    pub max_connections: u16,
    /// Further lines of `postgresql.conf`, as name and value; the value is quoted.
    pub postgres_settings: Vec<(String, String)>,
    /// Further terms of RabbitMQ's `rabbit` application, e.g. `{consumer_timeout, 10000}`.
    pub rabbitmq_terms: Vec<String>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            fsync: true,
            max_connections: 300,
            postgres_settings: Vec::new(),
            rabbitmq_terms: Vec::new(),
        }
    }
}
