//! The pool, and transactions with a deadline.

use std::error::Error;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts, Transaction,
};
use tokio::time::{Instant, timeout_at};

use super::config::DatabaseConfig;
use super::connect::Connector;
use super::error::{DatabaseError, spends_connection};
use super::lent::Lent;
use super::session::Session;

/// A connection that does not answer an empty query by then is thrown away.
const RECYCLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The database, as a process uses it. Clones share one pool.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    connector: Connector,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Database")
            .field("status", &self.pool.status())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Prepares the pool. Nothing is connected yet: a database that is away can come later.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`] if the URL or the certificates are not valid.
    pub fn open(config: DatabaseConfig) -> Result<Self, DatabaseError> {
        let connector = Connector::new(config)?;
        let config = &connector.config;
        let client = config.client().map_err(DatabaseError::set_up)?;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Verified,
        };
        let timeouts = Timeouts {
            wait: Some(config.wait_timeout),
            create: Some(config.connect_timeout),
            recycle: Some(RECYCLE_TIMEOUT),
        };
        let pool = Pool::builder(Manager::from_connect(client, connector.clone(), recycling))
            .max_size(config.pool_size)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| DatabaseError::set_up(error.to_string()))?;
        Ok(Self { pool, connector })
    }

    /// How the database is reached.
    #[must_use]
    pub fn config(&self) -> &DatabaseConfig {
        &self.connector.config
    }

    /// The pool itself, for a library that runs its own transactions over it. Its connections are
    /// verified when they are lent; whoever is in doubt about one takes it out.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Connections in use and the size of the pool, for gauges.
    #[must_use]
    pub fn in_use(&self) -> (usize, usize) {
        let status = self.pool.status();
        (
            status.size.saturating_sub(status.available),
            status.max_size,
        )
    }

    /// A connection of its own, outside the pool, listed as `<process> <purpose>`.
    ///
    /// # Errors
    /// [`DatabaseError`] of connecting.
    pub async fn session(&self, purpose: &str) -> Result<Session, DatabaseError> {
        let name = format!("{} {purpose}", self.config().application_name);
        let (sender, receiver) = Session::channel();
        let driven = self.connector.connect(&name, Some(sender)).await?;
        Ok(Session::new(driven, receiver))
    }

    /// Runs `work` in one transaction and commits it if it returns `Ok`; READ COMMITTED.
    ///
    /// The deadline covers all of it. When it passes, or the caller is cancelled, the query is
    /// cancelled and the connection closed; the same if an error says that the connection is spent.
    /// An error of a statement must be returned by `work`: PostgreSQL answers the COMMIT of a failed
    /// transaction with a rollback that the client takes for success.
    ///
    /// # Errors
    /// That of `work`, or a [`DatabaseError`]: [`DatabaseError::OutcomeUnknown`] if the answer to
    /// COMMIT did not arrive, anything else means that nothing was written.
    pub async fn transaction<T, E, W>(&self, deadline: Duration, work: W) -> Result<T, E>
    where
        W: AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
        E: From<DatabaseError> + Error + 'static,
    {
        let until = Instant::now() + deadline;
        let late = || DatabaseError::Deadline(deadline);
        let mut lent = timeout_at(until, self.lent()).await.map_err(|_| late())??;
        let Some(connection) = lent.connection() else {
            return Err(DatabaseError::away("the connection was taken").into());
        };
        let worked = timeout_at(until, async {
            let transaction = connection
                .transaction()
                .await
                .map_err(DatabaseError::from)?;
            let value = work(&transaction).await?;
            Ok::<_, E>((transaction, value))
        });
        let outcome = match worked.await {
            Err(_) => return Err(late().into()),
            Ok(Err(error)) => Err(error),
            Ok(Ok((transaction, value))) => match timeout_at(until, transaction.commit()).await {
                Ok(Ok(())) => Ok(value),
                Ok(Err(error)) => Err(DatabaseError::of_commit(&error).into()),
                Err(_) => {
                    let lost = format!("no answer to COMMIT within {deadline:?}");
                    return Err(DatabaseError::unanswered(lost).into());
                }
            },
        };
        match &outcome {
            Err(error) if spends_connection(error) => drop(lent),
            Ok(_) | Err(_) => lent.give_back(),
        }
        outcome
    }

    /// A connection of the pool, which gets it back only in a known state.
    pub(super) async fn lent(&self) -> Result<Lent, DatabaseError> {
        let object = self.pool.get().await?;
        Ok(Lent::new(object, self.connector.clone()))
    }
}
