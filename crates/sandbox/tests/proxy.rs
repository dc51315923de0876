//! The fault proxy between a client and an echoing server.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test stops at its first surprise"
)]

use std::time::{Duration, Instant};

use sandbox::{Direction, FaultProxy, Then};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Answers every read with the same bytes, and tells what it has read.
async fn echo() -> (u16, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut bytes = vec![0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                    sender.send(bytes[..length].to_vec()).unwrap();
                    stream.write_all(&bytes[..length]).await.ok();
                }
            });
        }
    });
    (port, received)
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap()
}

async fn said(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn it_forwards_faithfully_and_passes_the_end_on() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    assert_eq!(said(&mut client, "hello").await.unwrap(), "hello");
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "last words");
    assert_eq!(received.recv().await.unwrap(), b"hello");
}

#[tokio::test]
async fn a_cut_resets_and_refuses_until_it_is_restored() {
    let (server, _received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    said(&mut client, "a").await.unwrap();
    proxy.cut();
    let broken = client.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(broken.kind(), std::io::ErrorKind::ConnectionReset);
    said(&mut connect(&proxy).await, "b").await.unwrap_err();
    proxy.restore();
    let mut kept = connect(&proxy).await;
    assert_eq!(said(&mut kept, "c").await.unwrap(), "c");
    proxy.cut_once();
    kept.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(said(&mut connect(&proxy).await, "d").await.unwrap(), "d");
}

#[tokio::test]
async fn a_black_hole_keeps_the_connection_and_swallows() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    said(&mut client, "a").await.unwrap();
    proxy.blackhole_one_way(Direction::ToClient);
    let asked = tokio::time::timeout(Duration::from_millis(200), said(&mut client, "b")).await;
    asked.expect_err("the answer is swallowed");
    assert_eq!(received.recv().await.unwrap(), b"a");
    assert_eq!(received.recv().await.unwrap(), b"b");
    proxy.restore();
    client
        .read(&mut [0; 1])
        .await
        .expect_err("what lost bytes is of no use any more");
    assert_eq!(said(&mut connect(&proxy).await, "c").await.unwrap(), "c");
}

#[tokio::test]
async fn a_delay_holds_bytes_back_and_keeps_their_order() {
    let (server, _received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    let delay = Duration::from_millis(80);
    proxy.delay_one_way(Direction::ToServer, delay);
    let began = Instant::now();
    client.write_all(b"first ").await.unwrap();
    assert_eq!(said(&mut client, "second").await.unwrap(), "first ");
    assert!(began.elapsed() >= delay);
    proxy.restore();
    let mut rest = [0; 6];
    client.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b"second");
}

#[tokio::test]
async fn slices_arrive_whole_in_the_end() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    proxy.slice(1);
    let text = "0123456789".repeat(20);
    assert_eq!(said(&mut client, &text).await.unwrap(), text);
    let mut segments = Vec::new();
    while segments.iter().map(Vec::len).sum::<usize>() < text.len() {
        segments.push(received.recv().await.unwrap());
    }
    assert!(segments.len() > 1, "everything came at once");
}

#[tokio::test]
async fn an_answer_can_be_lost_after_the_request_has_arrived() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let mut client = connect(&proxy).await;
    let trap = proxy.drop_answer_to_commit();
    said(&mut client, "BEGIN").await.unwrap();
    said(&mut client, "COMMIT").await.unwrap_err();
    assert!(trap.closed().await);
    assert_eq!(received.recv().await.unwrap(), b"BEGIN");
    assert_eq!(received.recv().await.unwrap(), b"COMMIT");
    assert_eq!(
        said(&mut connect(&proxy).await, "COMMIT").await.unwrap(),
        "COMMIT"
    );
}

#[tokio::test]
async fn a_trap_closes_at_the_nth_match_before_or_after_the_bytes() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    for (then, arrives) in [(Then::CutBefore, false), (Then::CutAfter, true)] {
        let trap = proxy.trap(Direction::ToServer, b"x", 3, then);
        let mut client = connect(&proxy).await;
        said(&mut client, "x").await.unwrap();
        said(&mut client, "x").await.unwrap();
        let third = said(&mut client, "x3").await;
        third.unwrap_err();
        assert!(trap.closed().await);
        assert_eq!(received.recv().await.unwrap(), b"x");
        assert_eq!(received.recv().await.unwrap(), b"x");
        if arrives {
            assert_eq!(received.recv().await.unwrap(), b"x3");
        } else {
            received.try_recv().unwrap_err();
        }
    }
}

#[tokio::test]
async fn a_trap_that_was_taken_away_says_so() {
    let (server, _received) = echo().await;
    let proxy = FaultProxy::start(server).await.unwrap();
    let first = proxy.drop_answer_to_commit();
    let second = proxy.drop_answer_to_commit();
    assert!(!first.closed().await);
    proxy.restore();
    assert!(!second.closed().await);
}
