//! The pool against a real server that is slow, restarted, read-only or of another version.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::time::{Duration, Instant};

use runtime::database::{
    Again, Database, DatabaseConfig, DatabaseError, Remedy, StartError, Transaction, remedy_of,
};
use runtime::readiness::Readiness;
use runtime::settings::SecretUrl;
use sandbox::{FaultProxy, Site};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(10);

async fn site(name: &str) -> Site {
    sandbox::shared().await.unwrap().site(name).await.unwrap()
}

/// A pool of one connection: whatever keeps it, or spoils it, shows at the next call.
fn one_connection(url: &str) -> Database {
    let mut config = DatabaseConfig::for_url(url, "test");
    config.pool_size = 1;
    Database::open(config).unwrap()
}

async fn number(transaction: &Transaction<'_>, text: &str) -> Result<i64, DatabaseError> {
    Ok(transaction.query_one(text, &[]).await?.try_get(0)?)
}

async fn backend(database: &Database) -> i64 {
    let asked = database.transaction(DEADLINE, async |transaction| {
        number(transaction, "select pg_backend_pid()::bigint").await
    });
    asked.await.expect("a connection that can be used")
}

async fn executed(database: &Database, text: &str) -> Result<(), DatabaseError> {
    let done = database.transaction(DEADLINE, async |transaction| {
        transaction.batch_execute(text).await?;
        Ok::<_, DatabaseError>(())
    });
    done.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_committed_or_leaves_nothing() {
    let site = site("commit").await;
    let database = one_connection(&site.database_url);
    executed(&database, "create table t (n bigint primary key)")
        .await
        .unwrap();
    let failed = database.transaction(DEADLINE, async |transaction| {
        transaction.execute("insert into t values (1)", &[]).await?;
        Err::<(), _>(DatabaseError::from(
            transaction
                .execute("insert into t values (1)", &[])
                .await
                .unwrap_err(),
        ))
    });
    let error = failed.await.unwrap_err();
    assert_eq!(error.remedy(), Remedy::OtherData);
    assert_eq!(error.told().unwrap().constraint.as_deref(), Some("t_pkey"));
    assert!(
        !error.to_string().contains("(1)"),
        "a DETAIL is shown: {error}"
    );
    executed(&database, "insert into t values (2)")
        .await
        .unwrap();
    let count = database.transaction(DEADLINE, async |transaction| {
        number(transaction, "select sum(n)::bigint from t").await
    });
    assert_eq!(count.await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_deadline_the_query_is_cancelled_and_the_connection_gone() {
    let site = site("deadline").await;
    let database = one_connection(&site.database_url);
    let first = backend(&database).await;
    let short = Duration::from_millis(100);
    let late = database.transaction(short, async |transaction| {
        transaction.batch_execute("select pg_sleep(60)").await?;
        Ok::<_, DatabaseError>(())
    });
    let error = late.await.unwrap_err();
    assert!(matches!(error, DatabaseError::Deadline(_)), "{error}");
    assert_eq!(error.remedy(), Remedy::Wait);
    assert_ne!(backend(&database).await, first);
    let watcher = site.database().await.unwrap();
    let text = "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%' \
                and state = 'active' and pid <> pg_backend_pid()";
    let until = Instant::now() + DEADLINE;
    while watcher.query_one(text, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(Instant::now() < until, "the query still runs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_caller_leaves_no_open_transaction_behind() {
    let site = site("cancelled").await;
    let database = one_connection(&site.database_url);
    let other = database.clone();
    let (began, has_begun) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        other
            .transaction(DEADLINE, async |transaction| {
                transaction
                    .batch_execute("create table left_open ()")
                    .await?;
                began.send(()).unwrap();
                std::future::pending::<()>().await;
                Ok::<_, DatabaseError>(())
            })
            .await
    });
    has_begun.await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let there = database.transaction(DEADLINE, async |transaction| {
        number(
            transaction,
            "select count(*) from pg_class where relname = 'left_open'",
        )
        .await
    });
    assert_eq!(there.await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_connection_is_not_lent_again() {
    let site = site("spent").await;
    let database = one_connection(&site.database_url);
    for (text, remedy) in [
        (
            "do $$ begin raise 'moved' using errcode = '25006'; end $$",
            Remedy::Wait,
        ),
        (
            "do $$ begin raise 'plan' using errcode = '0A000'; end $$",
            Remedy::Again,
        ),
        (
            "select pg_terminate_backend(pg_backend_pid())",
            Remedy::Wait,
        ),
    ] {
        let before = backend(&database).await;
        let error = executed(&database, text).await.expect_err(text);
        assert_eq!(error.remedy(), remedy, "{error}");
        assert_ne!(backend(&database).await, before, "{text}");
    }
    let before = backend(&database).await;
    executed(&database, "select 1/0").await.unwrap_err();
    assert_eq!(
        backend(&database).await,
        before,
        "an ordinary error spoils nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_sorted_by_what_helps() {
    let site = site("remedies").await;
    let database = one_connection(&site.database_url);
    for (code, remedy) in [
        ("40001", Remedy::Again),
        ("40P01", Remedy::Again),
        ("55P03", Remedy::Again),
        ("57P01", Remedy::Wait),
        ("53300", Remedy::Wait),
        ("57014", Remedy::Wait),
        ("23503", Remedy::OtherData),
        ("42P01", Remedy::Person),
        ("22001", Remedy::Person),
    ] {
        let text = format!("do $$ begin raise 'x' using errcode = '{code}'; end $$");
        let error = executed(&database, &text).await.unwrap_err();
        assert_eq!(remedy_of(&error), Some(remedy), "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_met_another_transaction_is_tried_again() {
    let site = site("again").await;
    let database = Database::open(DatabaseConfig::for_url(&site.database_url, "test")).unwrap();
    executed(
        &database,
        "create table n (n bigint); insert into n values (0)",
    )
    .await
    .unwrap();
    let add_one = |database: Database| async move {
        let mut again = Again::within(DEADLINE);
        loop {
            let added = database.transaction(again.left(), async |transaction| {
                let serializable = "set transaction isolation level serializable";
                transaction.batch_execute(serializable).await?;
                let before = number(transaction, "select n from n").await?;
                transaction
                    .execute("update n set n = $1", &[&(before + 1)])
                    .await?;
                Ok::<_, DatabaseError>(())
            });
            match added.await {
                Err(error) => again.after(&error).ok_or(error)?.await,
                Ok(()) => return Ok::<_, DatabaseError>(()),
            }
        }
    };
    let tasks: Vec<_> = (0..8)
        .map(|_| tokio::spawn(add_one(database.clone())))
        .collect();
    for task in tasks {
        task.await.unwrap().expect("it went through in the end");
    }
    let sum = database.transaction(DEADLINE, async |transaction| {
        number(transaction, "select n from n").await
    });
    assert_eq!(sum.await.unwrap(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_link_is_given_up_and_the_next_connection_works() {
    let site = site("hanging").await;
    let proxy = FaultProxy::start(site.sandbox().postgres().port())
        .await
        .unwrap();
    let mut config = DatabaseConfig::for_url(&site.database_url_through(proxy.port()), "test");
    config.pool_size = 1;
    config.connect_timeout = Duration::from_millis(300);
    let database = Database::open(config).unwrap();
    backend(&database).await;
    proxy.blackhole();
    let hung = database.transaction(Duration::from_millis(300), async |transaction| {
        number(transaction, "select 1::bigint").await
    });
    assert_eq!(hung.await.unwrap_err().remedy(), Remedy::Wait);
    proxy.restore();
    let until = Instant::now() + DEADLINE;
    loop {
        let again = database.transaction(DEADLINE, async |transaction| {
            number(transaction, "select 1::bigint").await
        });
        match again.await {
            Ok(one) => break assert_eq!(one, 1),
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_is_told_as_such() {
    let site = site("commit_lost").await;
    let proxy = FaultProxy::start(site.sandbox().postgres().port())
        .await
        .unwrap();
    let database = one_connection(&site.database_url_through(proxy.port()));
    let lost = database.transaction(Duration::from_millis(500), async |transaction| {
        transaction.batch_execute("create table made ()").await?;
        proxy.blackhole();
        Ok::<_, DatabaseError>(())
    });
    let error = lost.await.unwrap_err();
    assert!(matches!(error, DatabaseError::OutcomeUnknown(_)), "{error}");
    assert_eq!(error.remedy(), Remedy::Look);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_may_rotate_in_its_file() {
    let site = site("rotation").await;
    let client = site.database().await.unwrap();
    let role = format!("rotating_{}", std::process::id());
    let made = format!("create role {role} login password 'one'");
    client.batch_execute(&made).await.unwrap();
    let at = site.database_url.split_once('@').unwrap().1.to_owned();
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |url: String| std::fs::write(file.path(), url).unwrap();
    write(format!("postgres://nobody_{role}:x@{at}\n"));
    let mut config = DatabaseConfig::for_url("", "test");
    config.url = SecretUrl::File(file.path().to_owned());
    config.pool_size = 1;
    let database = Database::open(config).unwrap();
    let refused = database
        .session("test")
        .await
        .expect_err("there is no such login");
    assert_eq!(refused.remedy(), Remedy::Person, "{refused}");
    write(format!("postgres://{role}:one@{at}\n"));
    assert!(backend(&database).await > 0);
    drop(database);
    client
        .batch_execute(&format!("drop role {role}"))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_hears_notifications_and_tells_its_end() {
    let site = site("session").await;
    let database = one_connection(&site.database_url);
    let mut session = database.session("listener").await.unwrap();
    session.batch_execute("listen work").await.unwrap();
    executed(&database, "notify work, 'x'").await.unwrap();
    let heard = tokio::time::timeout(DEADLINE, session.notified())
        .await
        .unwrap();
    assert_eq!(heard.unwrap().channel(), "work");
    // More than anybody reads must not stop the connection.
    let many =
        "do $$ begin for i in 1..500 loop perform pg_notify('work', i::text); end loop; end $$";
    executed(&database, many).await.unwrap();
    assert_eq!(
        session
            .query_one("select 1", &[])
            .await
            .unwrap()
            .get::<_, i32>(0),
        1
    );
    let kill = "select count(pg_terminate_backend(pid))::bigint from pg_stat_activity \
                where application_name = 'test listener' and datname = current_database()";
    executed(&database, kill).await.unwrap();
    session.drain();
    let end = async { while session.notified().await.is_some() {} };
    tokio::time::timeout(DEADLINE, end).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_role_hold_for_every_connection() {
    let site = site("limits").await;
    let mut config = DatabaseConfig::for_url(&site.database_url, "test");
    config.role = Some("ticketflow_relay".to_owned());
    config.lock_timeout = Duration::from_millis(1234);
    let database = Database::open(config).unwrap();
    let shown = database.transaction(DEADLINE, async |transaction| {
        let text = "select current_user::text, current_setting('lock_timeout'), \
                    current_setting('statement_timeout')";
        let row = transaction.query_one(text, &[]).await?;
        Ok::<[String; 3], DatabaseError>([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])
    });
    assert_eq!(shown.await.unwrap(), ["ticketflow_relay", "1234ms", "30s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_waits_for_its_database_but_not_for_another_version() {
    let site = site("start").await;
    let proxy = FaultProxy::start(site.sandbox().postgres().port())
        .await
        .unwrap();
    let url = site.database_url_through(proxy.port());
    let database = one_connection(&url);
    let readiness = Readiness::default();
    let condition = readiness.condition("database");
    proxy.cut();
    let waiting = database.clone();
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    let task = tokio::spawn(async move { waiting.ready(&condition, &token).await });
    let until = Instant::now() + DEADLINE;
    while !readiness.report()[0]
        .failing
        .as_deref()
        .unwrap_or("")
        .contains("unavailable")
    {
        assert!(Instant::now() < until, "{:?}", readiness.report());
        tokio::task::yield_now().await;
    }
    proxy.restore();
    let ready = tokio::time::timeout(DEADLINE, task).await.unwrap().unwrap();
    ready.expect("it is ready once the database is there");
    assert!(readiness.is_ready());
    let client = site.database().await.unwrap();
    let back = "delete from ticketflow.refinery_schema_history where version > 1";
    client.batch_execute(back).await.unwrap();
    let error = database.check_schema().await.unwrap_err();
    assert!(matches!(error, StartError::Schema(_)), "{error}");
    assert!(error.to_string().contains("ticketflow migrate"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_the_role_says_what_to_do() {
    let site = site("no_role").await;
    let mut config = DatabaseConfig::for_url(&site.database_url, "test");
    config.role = Some("nobody_has_made_it".to_owned());
    let database = Database::open(config).unwrap();
    let error = database.check_schema().await.unwrap_err().to_string();
    assert!(
        error.contains("nobody_has_made_it") && error.contains("ticketflow migrate"),
        "{error}"
    );
}
