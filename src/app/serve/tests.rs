use std::time::Instant;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::stream;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::http::body::Body;
use crate::http::edge::EdgeLayer;

mod sockets;
mod streams;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// As long as what `/long` answers: more than the buffers of two sockets take.
const LONG_BYTES: usize = 16 * 1024 * 1024;

struct Server {
    address: SocketAddr,
    stop: Stop,
    done: JoinHandle<io::Result<()>>,
    /// Says when a request has reached `/slow` or `/stuck`.
    entered: mpsc::Receiver<()>,
}

async fn start(config: HttpConfig) -> Server {
    start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), config)
}

fn start_on(listener: TcpListener, config: HttpConfig) -> Server {
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
        .route("/long", get(async || vec![b'x'; LONG_BYTES]))
        .route("/drip", get(async || axum::body::Body::from_stream(stream::unfold(0, drip))))
        .route("/thread", get(thread_name).post(async |_: String| thread_name().await))
        .route("/body", post(|_: Body<Nothing>| async { StatusCode::NO_CONTENT }))
        .layer(EdgeLayer::new(config.edge(false)));
    let stop = Stop::default();
    let done = tokio::spawn(serve(listener, app, config, stop.clone(), Arc::new(Threads::start().unwrap())));
    Server { address, stop, done, entered }
}

/// So much of `/drip` comes at once, and then nothing for a while.
const DRIP_BYTES: usize = 40 * 1024;
const DRIPS: usize = 3;

async fn drip(at: usize) -> Option<(io::Result<Vec<u8>>, usize)> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    (at < DRIPS).then(|| (Ok(vec![b'x'; DRIP_BYTES]), at + 1))
}

/// The name of the thread that answers, and which of that name it is.
async fn thread_name() -> String {
    let thread = std::thread::current();
    format!("{} {:?}", thread.name().unwrap_or_default(), thread.id())
}

fn quick() -> HttpConfig {
    let timeouts = HttpConfig { header_timeout_ms: 200, body_timeout_ms: 200, drain_timeout_ms: 5000, ..HttpConfig::default() };
    HttpConfig { drain_idle_ms: 0, body_limit_bytes: 1000, ..timeouts }
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
        self.stop.drain.cancel();
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
    let many = (0..120).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
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
async fn a_second_signal_does_not_make_the_drain_longer() {
    let mut server = start(HttpConfig { drain_timeout_ms: 1500, drain_idle_ms: 1500, header_timeout_ms: 60_000, ..quick() }).await;
    let stuck = server.connect("GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n").await;
    server.entered.recv().await.unwrap();
    let close = server.stop.close.clone();
    let second = async {
        tokio::time::sleep(Duration::from_millis(1000)).await;
        close.cancel();
    };
    let (took, ()) = tokio::join!(server.stop(), second);
    assert!((Duration::from_millis(1400)..Duration::from_millis(2200)).contains(&took), "{took:?}");
    drop(stuck);
}

#[tokio::test]
async fn connections_are_dealt_out_and_each_stays_on_its_thread() {
    let server = start(quick()).await;
    let cores = std::thread::available_parallelism().unwrap().get();
    let (mut connections, mut threads) = (Vec::new(), std::collections::BTreeMap::<String, usize>::new());
    for _ in 0..2 * cores {
        let ask = "GET /thread HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut connection = server.connect(ask).await;
        let first = read_some(&mut connection).await;
        connection.write_all(ask.as_bytes()).await.unwrap();
        let (first, second) = (last_line(&first), last_line(&read_some(&mut connection).await));
        assert!(first.starts_with("connections ") && first == second, "{first}, {second}");
        *threads.entry(first).or_default() += 1;
        connections.push(connection);
    }
    assert_eq!(threads.values().copied().collect::<Vec<_>>(), vec![2; cores]);
    drop(connections);
    server.stop().await;
}

#[tokio::test]
async fn a_request_with_a_long_body_does_not_run_on_the_thread_of_its_connection() {
    let server = start(HttpConfig { body_limit_bytes: 10_000, ..quick() }).await;
    for (bytes, on_thread) in [(4096, true), (4097, false)] {
        let head = format!("POST /thread HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n");
        let answer = server.all(&(head + &" ".repeat(bytes))).await;
        assert_eq!(last_line(&answer).starts_with("connections "), on_thread, "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn requests_of_http2_do_not_run_on_the_thread_of_their_connection() {
    let server = start(quick()).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get("http://localhost/thread").body(()).unwrap();
    let mut answer = client.send_request(request, true).unwrap().0.await.unwrap().into_body();
    let name = answer.data().await.unwrap().unwrap();
    assert!(!name.starts_with(b"connections "), "{name:?}");
    drop((client, answer));
    connection.await.unwrap().unwrap();
    server.stop().await;
}

fn last_line(answer: &str) -> String {
    answer.lines().last().unwrap_or_default().to_owned()
}

/// What an HTTP/2 client says first: the preface, and settings that leave all as it is.
const HELLO: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";

#[tokio::test]
async fn http2_is_spoken_without_tls_and_its_idle_connections_do_not_hold_the_drain() {
    let server = start(HttpConfig { header_timeout_ms: 60_000, ..quick() }).await;
    let mut stream = server.connect(HELLO).await;
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "the server's own settings come first: {frame:?}");
    let mut settings = vec![0; usize::from(frame[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let took = tokio::join!(server.stop(), until_end_of_file(&mut stream)).0;
    assert!(took < Duration::from_secs(3), "the drain took {took:?}");
}

#[tokio::test]
async fn an_http2_connection_without_requests_is_closed_though_it_pings() {
    let server = start(HttpConfig { header_timeout_ms: 400, ..quick() }).await;
    let mut stream = server.connect(HELLO).await;
    let started = Instant::now();
    let (mut read, mut write) = stream.split();
    let ping = async {
        while write.write_all(b"\0\0\x08\x06\0\0\0\0\0????????").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let mut bytes = Vec::new();
    // Its PINGs get answers, its goodbye none: it does not hold the connection either.
    let closed = async { tokio::time::timeout(Duration::from_secs(5), read.read_to_end(&mut bytes)).await };
    tokio::select! {
        closed = closed => drop(closed.unwrap()),
        () = ping => {}
    }
    assert!((Duration::from_millis(400)..Duration::from_secs(3)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert!(bytes.windows(4).any(|frame| frame[0] == 7), "it is told with a GOAWAY");
    server.stop().await;
}

#[tokio::test]
async fn an_http1_caller_who_does_not_read_loses_the_connection() {
    let server = start(HttpConfig { send_timeout_ms: 300, header_timeout_ms: 60_000, ..quick() }).await;
    let stream = server.connect("GET /long HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let closed = async {
        // A write fails once the server has closed; until then it is not read, and fits into the
        // buffers.
        while stream.try_write(b" ").is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), closed).await.is_ok());
    server.stop().await;
}

/// One request on a kept-alive connection, and its answer; an error where the connection is gone.
async fn once_more(stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut bytes = vec![0; 4096];
    let read = stream.read(&mut bytes).await?;
    bytes.truncate(read);
    Ok(String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn a_drain_is_announced_on_the_last_answer_and_the_port_stays_open_for_it() {
    let server = start(HttpConfig { header_timeout_ms: 60_000, drain_idle_ms: 4000, ..quick() }).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect("").await;
        let answer = once_more(&mut client).await.unwrap();
        assert!(answer.contains("hello") && !answer.contains("connection: close"), "{answer}");
        clients.push(client);
    }
    server.stop.drain.cancel();
    // Also one that comes only now, and one whose request comes late.
    clients.push(server.connect("").await);
    for (at, mut client) in clients.into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let answer = once_more(&mut client).await.unwrap();
        assert!(answer.contains("hello") && answer.contains("connection: close"), "{at}: {answer}");
        assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0, "closed without a reset");
    }
    let took = server.stop().await;
    assert!(took < Duration::from_secs(2), "it does not wait for nobody, but took {took:?}");
}

/// The client has seen the end, and sends all the same.
async fn a_request_crosses_the_close(mut client: TcpStream) {
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0, "an end, not a reset");
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_reset_when_the_time_is_over() {
    let server = start(HttpConfig { header_timeout_ms: 60_000, drain_idle_ms: 300, ..quick() }).await;
    let mut client = server.connect("").await;
    assert!(once_more(&mut client).await.unwrap().contains("hello"));
    let stopping = tokio::spawn(server.stop());
    assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0);
    a_request_crosses_the_close(client).await;
    let took = stopping.await.unwrap();
    assert!((Duration::from_millis(300)..Duration::from_secs(3)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_without_a_reset() {
    let server = start(HttpConfig { header_timeout_ms: 60_000, ..quick() }).await;
    let mut client = server.connect("").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(client.read(&mut [0; 10]).await.unwrap(), 0);
    a_request_crosses_the_close(client).await;
    let took = stopping.await.unwrap();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn requests_of_connections_that_came_before_the_port_closed_are_answered() {
    let server = start(HttpConfig { header_timeout_ms: 60_000, ..quick() }).await;
    // This thread runs the server, too: until it waits, they are the system's.
    let clients: Vec<_> = (0..120)
        .map(|_| {
            let mut client = std::net::TcpStream::connect(server.address).unwrap();
            std::io::Write::write_all(&mut client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            client.set_nonblocking(true).unwrap();
            client
        })
        .collect();
    let stopping = tokio::spawn(server.stop());
    for client in clients {
        let answer = until_closed(TcpStream::from_std(client).unwrap()).await;
        assert!(answer.contains("connection: close") && answer.contains("hello"), "{answer:?}");
    }
    stopping.await.unwrap();
}

/// Reads frames to the end, and answers each PING as every HTTP/2 client does: a graceful end waits
/// for one.
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
    for (per_service, per_user, fits) in [(None, None, true), (Some(9), Some(1), true), (Some(10), None, false), (None, Some(10), false)] {
        let bounds = HttpConfig { max_in_flight: 10, max_in_flight_per_service: per_service, max_in_flight_per_user: per_user, ..quick() };
        assert_eq!(bounds.check().is_ok(), fits, "{per_service:?} {per_user:?}");
    }
    assert!(Line::try_parse_from(["headmark", "--header-timeout-ms", "0"]).is_err());
}
