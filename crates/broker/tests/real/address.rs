//! Who may come in, and what is said if not.

use std::time::Duration;

use broker::{Broker, BrokerError, ConnectOptions, LinkState};

use crate::support::{PATIENCE, Stage, options, state_where};

fn with_user(url: &str, user: &str) -> String {
    let (_, place) = url.rsplit_once('@').expect("a user in the URL");
    format!("amqp://{user}@{place}")
}

async fn refusal(options: ConnectOptions) -> String {
    let error = Broker::check(options).await.expect_err("not let in");
    assert!(matches!(error, BrokerError::Denied(_)), "{error}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_or_vhost_is_permanent_and_said_as_such() {
    let stage = Stage::set("denied").await;
    let url = with_user(&stage.site.amqp_url, "nobody:s3cret");
    let said = refusal(options(&url)).await;
    assert!(
        said.contains("ACCESS_REFUSED") && !said.contains("s3cret"),
        "{said}"
    );

    let (rest, _) = stage.site.amqp_url.rsplit_once('/').expect("a vhost");
    let said = refusal(options(&format!("{rest}/nowhere"))).await;
    assert!(said.contains("nowhere"), "{said}");

    let broker = Broker::start(options(&url)).expect("an address");
    let denied = |state: &LinkState| {
        matches!(
            state,
            LinkState::Down {
                permanent: true,
                ..
            }
        )
    };
    state_where(&broker, "denied", denied).await;
    let error = broker.connected(PATIENCE).await.expect_err("said at once");
    assert!(matches!(error, BrokerError::Denied(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_is_read_from_its_file_at_every_attempt() {
    let stage = Stage::set("rotated").await;
    let sandbox = stage.site.sandbox();
    let vhost = stage.site.name.as_str();
    sandbox
        .rabbitmqctl(&["add_user", vhost, "first"])
        .await
        .expect("a user");
    sandbox
        .rabbitmqctl(&["set_permissions", "-p", vhost, vhost, ".*", ".*", ".*"])
        .await
        .expect("rights");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let url = with_user(&stage.site.amqp_url, vhost);
    let write = |password: &str| {
        let text = url.replace('@', &format!(":{password}@"));
        std::fs::write(file.path(), text).expect("written");
    };
    write("wrong");
    let mut options = options(&url);
    options.url_file = Some(file.path().to_owned());
    options.retry.denied = Duration::from_millis(50);
    let broker = Broker::start(options).expect("an address");
    let denied = |state: &LinkState| {
        matches!(
            state,
            LinkState::Down {
                permanent: true,
                ..
            }
        )
    };
    state_where(&broker, "denied", denied).await;
    write("first");
    state_where(&broker, "connected", LinkState::is_connected).await;

    sandbox
        .rabbitmqctl(&["change_password", vhost, "second"])
        .await
        .expect("rotated");
    stage.site.close_connections().await.expect("closed");
    state_where(&broker, "denied", denied).await;
    std::fs::write(file.path(), "no url at all\n").expect("written");
    let unusable = |state: &LinkState| matches!(state, LinkState::Down { error, .. } if error.contains("must begin with amqp"));
    state_where(&broker, "unusable", unusable).await;
    write("second");
    state_where(&broker, "connected", LinkState::is_connected).await;
    sandbox
        .rabbitmqctl(&["delete_user", vhost])
        .await
        .expect("no user");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_is_not_permanent() {
    for url in [
        "amqp://127.0.0.1:1",
        "amqp://no-such-host.invalid",
        "amqp://[::1]:1",
    ] {
        let error = Broker::check(options(url)).await.expect_err(url);
        assert!(
            matches!(error, BrokerError::Unavailable(_)),
            "{url}: {error}"
        );
    }
}

/// Makes a certificate for `localhost` and opens a TLS port with it. Gives the certificate of its
/// authority, as PEM.
async fn open_tls_port(stage: &Stage, port: u16) -> String {
    let chain = |extensions: &str| {
        format!(
            "#{{root => [{{digest, sha256}}, {{key, {{rsa, 2048, 65537}}}}], intermediates => [], \
              peer => [{{digest, sha256}}, {{key, {{rsa, 2048, 65537}}}}{extensions}]}}"
        )
    };
    let name = ", {extensions, [{'Extension', {2, 5, 29, 17}, false, [{dNSName, \"localhost\"}]}]}";
    let open = format!(
        "rabbit_networking:ensure_ssl(), \
         #{{server_config := S, client_config := C}} = \
           public_key:pkix_test_data(#{{server_chain => {}, client_chain => {}}}), \
         ok = rabbit_networking:start_ssl_listener({port}, S, 1), \
         public_key:pem_encode([{{'Certificate', D, not_encrypted}} || D <- proplists:get_value(cacerts, C)])",
        chain(name),
        chain("")
    );
    stage
        .site
        .sandbox()
        .evaluate(&open)
        .await
        .expect("a TLS port")
}

#[tokio::test(flavor = "multi_thread")]
async fn amqps_works_with_an_authority_that_is_trusted_and_with_no_other() {
    let stage = Stage::set("tls").await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let authority = open_tls_port(&stage, port).await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), authority).expect("written");
    let url = stage
        .site
        .amqp_url_through(port)
        .replacen("amqp://", "amqps://", 1);
    let (user, place) = url.rsplit_once('@').expect("a user");
    let (_, rest) = place.split_once(':').expect("a port");
    let url = format!("{user}@localhost:{rest}");

    let mut trusting = options(&url);
    trusting.ca_file = Some(file.path().to_owned());
    Broker::check(trusting).await.expect("let in");
    let by_address = ConnectOptions::new(
        format!("{url}?cacertfile={}", file.path().display()),
        "broker test",
    );
    let broker = Broker::start(by_address).expect("an address");
    broker.connected(PATIENCE).await.expect("let in");
    broker.look_at(&stage.queue.name()).await.expect("it works");

    let said = refusal(options(&url)).await;
    assert!(said.contains("certificate"), "{said}");
}
