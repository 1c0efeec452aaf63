use std::time::Instant;

use axum::http::StatusCode;
use axum::routing::{get, post};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::http::body::Body;
use crate::http::edge::EdgeLayer;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    done: JoinHandle<io::Result<()>>,
    /// Says when a request has reached `/slow` or `/stuck`.
    entered: mpsc::Receiver<()>,
}

async fn start(config: HttpConfig) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (enter, entered) = mpsc::channel(8);
    let enter_stuck = enter.clone();
    let slow = async move || {
        enter.send(()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        "slow"
    };
    let stuck = async move || {
        enter_stuck.send(()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/slow", get(slow))
        .route("/stuck", get(stuck))
        .route("/body", post(|_: Body<Nothing>| async { StatusCode::NO_CONTENT }))
        .layer(EdgeLayer::new(config.edge(false)));
    let shutdown = CancellationToken::new();
    let done = tokio::spawn(serve(listener, app, config, shutdown.clone()));
    Server { address, shutdown, done, entered }
}

fn quick() -> HttpConfig {
    HttpConfig { header_timeout_ms: 200, body_timeout_ms: 200, drain_timeout_ms: 5000, body_limit_bytes: 1000, ..HttpConfig::default() }
}

impl Server {
    async fn connect(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Sends this and reads until the server closes.
    async fn all(&self, text: &str) -> String {
        until_closed(self.connect(text).await).await
    }

    async fn stop(self) -> Duration {
        let started = Instant::now();
        self.shutdown.cancel();
        self.done.await.unwrap().unwrap();
        started.elapsed()
    }
}

async fn until_closed(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset ends it as well as a close.
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn read_some(stream: &mut TcpStream) -> String {
    let mut bytes = [0; 4096];
    let read = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[tokio::test]
async fn headers_that_do_not_come_in_time_end_the_connection() {
    let server = start(quick()).await;
    for part in ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost: local", "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n"] {
        let started = Instant::now();
        let answer = server.all(part).await;
        assert!(!answer.contains("hello"), "{part:?}: {answer}");
        assert!(started.elapsed() < Duration::from_secs(2), "{part:?} held the connection for {:?}", started.elapsed());
    }
    let slow_drip = async {
        let mut stream = server.connect("GET / HTTP/1.1\r\n").await;
        let started = Instant::now();
        while stream.write_all(b"X-A: 1\r\n").await.is_ok() && started.elapsed() < Duration::from_secs(5) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        started.elapsed()
    };
    assert!(slow_drip.await < Duration::from_secs(2));
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_408_and_the_connection_ends() {
    let server = start(quick()).await;
    let answer = server.all("POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{").await;
    assert!(
        answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"request_timeout\"") && answer.contains("connection: close"),
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_however_it_is_framed() {
    let server = start(quick()).await;
    let json = "POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    let (long, endless) = (" ".repeat(1001), " ".repeat(20_000));
    for (head, body) in [
        ("Content-Length: 1001\r\n\r\n".to_owned(), long.clone()),
        ("Content-Length: 20000\r\n\r\n".to_owned(), endless),
        ("Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n".to_owned(), String::new()),
        ("Transfer-Encoding: chunked\r\n\r\n3e9\r\n".to_owned(), format!("{long}\r\n0\r\n\r\n")),
    ] {
        let answer = server.all(&format!("{json}{head}{body}")).await;
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"body_too_large\""), "{head}: {answer}");
    }
    let fits = server.all(&format!("{json}Content-Length: 1000\r\n\r\n{{{}}}", " ".repeat(998))).await;
    assert!(fits.starts_with("HTTP/1.1 204 "), "{fits}");
    server.stop().await;
}

#[tokio::test]
async fn too_many_headers_are_431() {
    let server = start(quick()).await;
    let many = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    for headers in [many, format!("x: {}\r\n", "y".repeat(70 * 1024))] {
        let answer = server.all(&format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 431 ") || answer.is_empty(), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_in_flight_ends_and_idle_connections_do_not_hold_the_drain() {
    let mut server = start(HttpConfig { header_timeout_ms: 60_000, ..quick() }).await;
    let _silent = server.connect("").await;
    let mut idle = server.connect("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(read_some(&mut idle).await.contains("hello"));
    let slow = server.connect("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await;
    server.entered.recv().await.unwrap();
    let address = server.address;
    let (took, answer) = tokio::join!(server.stop(), until_closed(slow));
    assert!(answer.contains("slow") && answer.contains("connection: close"), "{answer}");
    assert!(took < Duration::from_secs(3), "the drain took {took:?}");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stuck_request_is_cut_off_when_the_drain_is_over() {
    let mut server = start(HttpConfig { drain_timeout_ms: 200, ..quick() }).await;
    let stuck = server.connect("GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n").await;
    server.entered.recv().await.unwrap();
    let (took, answer) = tokio::join!(server.stop(), until_closed(stuck));
    assert_eq!(answer, "");
    assert!((Duration::from_millis(200)..Duration::from_secs(3)).contains(&took), "the drain took {took:?}");
}

#[tokio::test]
async fn http2_is_spoken_without_tls_and_its_idle_connections_do_not_hold_the_drain() {
    let server = start(quick()).await;
    let empty_settings = "\0\0\0\u{4}\0\0\0\0\0";
    let mut stream = server.connect(&format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{empty_settings}")).await;
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "the server's own settings come first: {frame:?}");
    let mut settings = vec![0; usize::from(frame[2])];
    stream.read_exact(&mut settings).await.unwrap();
    // An idle HTTP/2 connection outlives the header timeout, which is HTTP/1's.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), until_end_of_file(&mut stream)).await.is_err());
    let took = tokio::join!(server.stop(), until_end_of_file(&mut stream)).0;
    assert!(took < Duration::from_secs(3), "the drain took {took:?}");
}

/// Reads frames to the end, and answers each PING as every HTTP/2 client does: a graceful end waits for one.
async fn until_end_of_file(stream: &mut TcpStream) {
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == 6 && head[4] == 0 {
            stream.write_all(&[&[0, 0, 8, 6, 1, 0, 0, 0, 0], payload.as_slice()].concat()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let server = start(HttpConfig { max_connections: 1, header_timeout_ms: 60_000, ..quick() }).await;
    let mut first = server.connect("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(read_some(&mut first).await.contains("hello"));
    let mut second = server.connect("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(tokio::time::timeout(Duration::from_millis(100), read_some(&mut second)).await.is_err());
    drop(first);
    assert!(read_some(&mut second).await.contains("hello"));
    server.stop().await;
}

#[test]
fn the_defaults_are_those_of_the_command_line() {
    use clap::Parser;
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        http: HttpConfig,
    }
    let parsed = Line::try_parse_from(["headmark"]).unwrap().http;
    assert_eq!(format!("{parsed:?}"), format!("{:?}", HttpConfig::default()));
    assert!(Line::try_parse_from(["headmark", "--max-connections", "0"]).is_err());
    assert!(Line::try_parse_from(["headmark", "--header-timeout-ms", "0"]).is_err());
}
