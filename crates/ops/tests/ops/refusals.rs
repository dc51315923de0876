//! What a person is told when something is wrong.

use sandbox::Site;

use crate::tool::{Tool, run_with};

async fn site(name: &str) -> Site {
    sandbox::shared().await.unwrap().site(name).await.unwrap()
}

async fn status(url: &str) -> (i32, String) {
    let ran = run_with(&["status"], &[("DATABASE_URL", url.to_owned())]).await;
    assert_eq!(ran.stdout, "");
    (ran.status, ran.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_used_is_told_in_one_line() {
    let site = site("refusals").await;
    let (before, _) = site.database_url.rsplit_once('/').unwrap();
    let (code, told) = status(&format!("{before}/nowhere")).await;
    assert_eq!((code, told.lines().count()), (1, 1), "{told}");
    assert!(
        told.contains("database \"nowhere\" does not exist"),
        "{told}"
    );
    let at = site.database_url.split_once('@').unwrap().1;
    let (code, told) = status(&format!("postgres://nobody:hunter2@{at}")).await;
    assert_eq!((code, told.lines().count()), (1, 1), "{told}");
    assert!(
        told.contains("nobody") && !told.contains("hunter2"),
        "{told}"
    );
    let (code, told) = status("postgres://u@127.0.0.1:1/x").await;
    assert_eq!(code, 4);
    assert!(
        told.contains("127.0.0.1:1") && told.contains("refused"),
        "{told}"
    );
    let ran = run_with(&["status"], &[]).await;
    assert!(
        ran.status == 1 && ran.stderr.contains("DATABASE_URL"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_among_the_arguments_wins_over_a_file_of_the_environment() {
    let site = site("arguments").await;
    let file = ("TICKETFLOW_OPS_DATABASE_URL_FILE", "/nowhere".to_owned());
    let ran = run_with(&["status"], std::slice::from_ref(&file)).await;
    assert!(ran.stderr.contains("/nowhere"), "{ran:?}");
    let url = site.database_url.as_str();
    let ran = run_with(&["status", "--database-url", url], &[file]).await;
    assert_eq!(ran.status, 0, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_another_version_are_refused() {
    let tool = Tool::on("versions").await;
    let newer = "insert into ticketflow.refinery_schema_history \
                 select 1000, 'x', applied_on, '1' from ticketflow.refinery_schema_history limit 1";
    tool.client.batch_execute(newer).await.unwrap();
    for command in [&["status"][..], &["migrate"]] {
        let told = tool.refused(1, command).await;
        assert!(told.contains("version 1000, newer than"), "{told}");
    }
    let older = "delete from ticketflow.refinery_schema_history where version > 1";
    tool.client.batch_execute(older).await.unwrap();
    let told = tool.refused(1, &["status"]).await;
    assert!(told.contains("run `ticketflow migrate`"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_says_what_it_did_and_five_at_once_succeed() {
    let sandbox = sandbox::shared().await.unwrap();
    let name = format!("ops_migrate_{}", std::process::id());
    sandbox.create_database(&name).await.unwrap();
    let environment = [("DATABASE_URL", sandbox.database_url(&name))];
    let arguments = ["migrate", "--json"];
    let five = (0..5).map(|_| run_with(&arguments, &environment));
    let ran = futures_util::future::join_all(five).await;
    let worked = ran
        .iter()
        .filter(|ran| ran.stdout.contains("\"from\": 0"))
        .count();
    assert!(ran.iter().all(|ran| ran.status == 0), "{ran:?}");
    assert_eq!(worked, 1, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn help_and_version_need_no_database() {
    let ran = run_with(&["--version"], &[]).await;
    let schema = format!("(schema {})", schema::SCHEMA_VERSION);
    assert!(ran.status == 0 && ran.stdout.contains(&schema), "{ran:?}");
    let secret = ("DATABASE_URL", "postgres://u:hunter2@h/d".to_owned());
    for arguments in [
        &["--help"][..],
        &["redrive", "--help"],
        &["tenant", "key", "--help"],
    ] {
        let ran = run_with(arguments, std::slice::from_ref(&secret)).await;
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.stdout.contains("Usage: ticketflow"), "{ran:?}");
        assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
    }
    assert_eq!(run_with(&["nonsense"], &[]).await.status, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_variable_is_refused() {
    let slip = [("TICKETFLOW_OPS_ACTER", "me".to_owned())];
    let ran = run_with(&["status"], &slip).await;
    assert_eq!(ran.status, 2, "{ran:?}");
    for wanted in ["TICKETFLOW_OPS_ACTER is unknown", "TICKETFLOW_OPS_ACTOR"] {
        assert!(ran.stderr.contains(wanted), "{ran:?}");
    }
}
