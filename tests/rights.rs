//! Who may do what: the documented rights are the granted ones, and row security keeps tenants
//! apart whatever a process forgets.

use std::fmt::Write as _;

use sandbox::Site;
use tokio_postgres::Client;

const DOCUMENT: &str = "migrations/ROLES.md";
const ROLES: [&str; 6] = [
    "definer", "recorder", "producer", "relay", "consumer", "operator",
];

async fn site(name: &str) -> (Site, Client) {
    let site = sandbox::shared().await.unwrap().site(name).await.unwrap();
    let client = site.database().await.unwrap();
    (site, client)
}

async fn texts(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// SELECT, INSERT, UPDATE, DELETE, TRUNCATE by their first letters; `u` is UPDATE of some columns.
async fn verbs(client: &Client, role: &str, table: &str) -> String {
    let sql = "select concat( \
          case when has_table_privilege($1, $2::text, 'select') then 'S' end, \
          case when has_table_privilege($1, $2::text, 'insert') then 'I' end, \
          case when has_table_privilege($1, $2::text, 'update') then 'U' \
            when has_any_column_privilege($1, $2::text, 'update') then 'u' end, \
          case when has_table_privilege($1, $2::text, 'delete') then 'D' end, \
          case when has_table_privilege($1, $2::text, 'truncate') then 'T' end)";
    let role = format!("ticketflow_{role}");
    let row = client.query_one(sql, &[&role, &table]).await.unwrap();
    row.get(0)
}

async fn granted(client: &Client) -> String {
    let mut text = format!(
        "| table | {} |\n|---|---|---|---|---|---|---|\n",
        ROLES.join(" | ")
    );
    let tables = "select c.oid::regclass::text from pg_class as c \
        where c.relnamespace = 'ticketflow'::regnamespace and c.relkind in ('r', 'p') \
          and not c.relispartition and c.relname <> 'refinery_schema_history' order by 1";
    for table in texts(client, tables).await {
        let mut line = format!("| `{}` |", table.trim_start_matches("ticketflow."));
        for role in ROLES {
            let verbs = verbs(client, role, &table).await;
            write!(line, " {} |", if verbs.is_empty() { "-" } else { &verbs }).unwrap();
        }
        text.push_str(&line);
        text.push('\n');
    }
    write!(
        text,
        "\n| function | {} |\n|---|---|---|---|---|---|---|\n",
        ROLES.join(" | ")
    )
    .unwrap();
    let functions = "select distinct proname::text from pg_proc \
        where pronamespace = 'ticketflow'::regnamespace and prorettype <> 'trigger'::regtype order by 1";
    for function in texts(client, functions).await {
        let mut line = format!("| `{function}` |");
        for role in ROLES {
            let sql = "select bool_or(has_function_privilege($1, oid, 'execute')) from pg_proc \
                where pronamespace = 'ticketflow'::regnamespace and proname = $2::text";
            let role = format!("ticketflow_{role}");
            let may: bool = client
                .query_one(sql, &[&role, &function])
                .await
                .unwrap()
                .get(0);
            write!(line, " {} |", if may { "X" } else { "-" }).unwrap();
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[tokio::test]
async fn what_is_documented_is_what_postgresql_grants() {
    let (_site, client) = site("rights").await;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(DOCUMENT);
    let documented = std::fs::read_to_string(path).unwrap();
    let granted = granted(&client).await;
    assert!(
        documented.ends_with(&granted),
        "{DOCUMENT} must end with:\n{granted}"
    );
}

#[tokio::test]
async fn nobody_goes_round_row_security() {
    let (_site, client) = site("forced").await;
    let strong = "select rolname::text from pg_roles where rolname like 'ticketflow%' \
        and (rolsuper or rolbypassrls or rolcanlogin or rolcreaterole or rolcreatedb)";
    assert_eq!(texts(&client, strong).await, [""; 0]);
    let unforced = "select c.oid::regclass::text from pg_class as c \
        join pg_attribute as a on a.attrelid = c.oid and a.attname = 'tenant_id' \
        where c.relnamespace = 'ticketflow'::regnamespace and c.relkind in ('r', 'p') \
          and not c.relispartition and not (c.relrowsecurity and c.relforcerowsecurity)";
    assert_eq!(texts(&client, unforced).await, [""; 0]);
    // A unique key without its tenant would tell one tenant of another's rows. Those of the two
    // partitioned tables begin with what they are partitioned by.
    let keys = "select i.indexrelid::regclass::text from pg_index as i \
        join pg_class as c on c.oid = i.indrelid \
        join pg_attribute as a on a.attrelid = c.oid and a.attname = 'tenant_id' \
        where c.relnamespace = 'ticketflow'::regnamespace and not c.relispartition and i.indisunique \
          and not (i.indkey[0] = a.attnum or c.relkind = 'p' and a.attnum = any(i.indkey)) \
        order by 1";
    let found = texts(&client, keys).await;
    // Written by the consumer and the operator alone, for all tenants.
    let internal = [
        "deferred_deliveries",
        "effect_heads",
        "event_conflicts",
        "operator_actions",
    ];
    let internal = internal.map(|table| format!("ticketflow.{table}_pkey"));
    assert!(found.iter().all(|key| internal.contains(key)), "{found:?}");
}

#[tokio::test]
async fn a_producer_without_a_tenant_sees_nothing_and_writes_nothing() {
    let (_site, client) = site("unset").await;
    client
        .batch_execute(
            "insert into ticketflow.tenants (tenant_id) values ('acme'), ('globex');
             insert into ticketflow.tickets (tenant_id, ticket_id, version, subject)
               values ('acme', gen_random_uuid(), 1, 'mine'), ('globex', gen_random_uuid(), 1, 'theirs');
             set role ticketflow_producer",
        )
        .await
        .unwrap();
    let subjects = "select subject from ticketflow.tickets order by 1";
    let write = "insert into ticketflow.tickets (tenant_id, ticket_id, version, subject) \
        values ('acme', gen_random_uuid(), 1, 'written')";
    let refused = async |sql: &str| {
        let error = client.batch_execute(sql).await.expect_err(sql);
        assert_eq!(
            error.code().map(|code| code.code()),
            Some("42501"),
            "{sql}: {error}"
        );
    };
    for setting in [
        "select 1",
        "set ticketflow.tenant = ''",
        "set ticketflow.tenant = 'nobody'",
    ] {
        client.batch_execute(setting).await.unwrap();
        assert_eq!(texts(&client, subjects).await, [""; 0], "{setting}");
        refused(write).await;
    }
    client
        .batch_execute("reset ticketflow.tenant; begin")
        .await
        .unwrap();
    let set = "select set_config('ticketflow.tenant', 'acme', true)";
    client.batch_execute(set).await.unwrap();
    assert_eq!(texts(&client, subjects).await, ["mine"]);
    let changed = client
        .execute("update ticketflow.tickets set subject = 'mine still'", &[])
        .await;
    assert_eq!(changed.unwrap(), 1);
    client.batch_execute("commit").await.unwrap();
    // The next transaction of the connection reads the setting as '', not as null.
    assert_eq!(texts(&client, subjects).await, [""; 0]);
    client.batch_execute("begin").await.unwrap();
    client.batch_execute(set).await.unwrap();
    refused(&write.replace("acme", "globex")).await;
    client.batch_execute("rollback; begin").await.unwrap();
    client.batch_execute(set).await.unwrap();
    refused("update ticketflow.tickets set tenant_id = 'globex'").await;
    client.batch_execute("rollback").await.unwrap();
}

#[tokio::test]
async fn a_search_of_one_tenant_goes_by_the_index() {
    let (_site, client) = site("search").await;
    client
        .batch_execute(
            "insert into ticketflow.tenants (tenant_id) values ('acme'), ('globex');
             insert into ticketflow.search_documents
               (tenant_id, ticket_id, version, subject, body, status, priority, updated_at)
             select case when n % 2 = 0 then 'acme' else 'globex' end, gen_random_uuid(), 1,
               'word' || n, 'text', 'open', 'normal', clock_timestamp()
             from generate_series(1, 20000) as n;
             analyze ticketflow.search_documents;
             set role ticketflow_producer;
             begin; select set_config('ticketflow.tenant', 'acme', true)",
        )
        .await
        .unwrap();
    let found = async |word: &str| {
        let sql = "select count(*) from ticketflow.search_tickets($1, null, null, 10)";
        let count: i64 = client.query_one(sql, &[&word]).await.unwrap().get(0);
        count
    };
    assert_eq!((found("word1000").await, found("word1001").await), (1, 0));
    client.batch_execute("commit; reset role").await.unwrap();
    let scans = "select (pg_stat_get_numscans('ticketflow.search_documents_text'::regclass) \
        + pg_stat_get_xact_numscans('ticketflow.search_documents_text'::regclass))::text";
    client
        .batch_execute("select pg_stat_force_next_flush()")
        .await
        .unwrap();
    assert_ne!(texts(&client, scans).await, ["0"], "the index was not used");
}
