//! Callers over HTTP/1 whose sockets take little at a time.

use tokio::net::TcpSocket;

use super::*;

/// The smallest buffers that a socket has; the system may take some times as much.
const BUFFER_BYTES: u32 = 8 * 1024;

fn small() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(BUFFER_BYTES).unwrap();
    socket.set_recv_buffer_size(BUFFER_BYTES).unwrap();
    socket
}

/// One whose connections have small buffers, too.
fn start_small(config: HttpConfig) -> Server {
    let socket = small();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    start_on(socket.listen(64).unwrap(), HttpConfig { header_timeout_ms: 60_000, ..config })
}

async fn connect(server: &Server, text: &str) -> TcpStream {
    let mut stream = small().connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Receives at most so much before each pause. How much came until the end, and for how long.
async fn receive(mut stream: TcpStream, piece: usize, pause: Duration) -> (usize, Duration) {
    let (mut bytes, mut received, started) = (vec![0; piece], 0, Instant::now());
    while let Ok(read @ 1..) = stream.read(&mut bytes).await {
        received += read;
        tokio::time::sleep(pause).await;
    }
    (received, started.elapsed())
}

const GET_LONG: &str = "GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_long_answer_that_is_received_steadily_is_whole_however_long_it_takes() {
    let server = start_small(HttpConfig { send_timeout_ms: 800, ..quick() });
    let (received, took) = receive(connect(&server, GET_LONG).await, 16 * 1024, Duration::from_millis(2)).await;
    assert!(received > LONG_BYTES, "{received} bytes in {took:?}");
    assert!(took > Duration::from_millis(1600), "it took twice as long as one piece may: {took:?}");
    server.stop().await;
}

#[tokio::test]
async fn who_takes_a_little_now_and_then_loses_the_connection() {
    let server = start_small(HttpConfig { send_timeout_ms: 2000, ..quick() });
    // In 2 s that is half of what it has to be, in steps of some hundred milliseconds.
    let slow = receive(connect(&server, GET_LONG).await, 512, Duration::from_millis(30));
    let (received, took) = tokio::time::timeout(Duration::from_secs(20), slow).await.expect("the connection is closed");
    assert!(received < 1024 * 1024 && took > Duration::from_millis(1900), "{received} bytes in {took:?}");
    server.stop().await;
}

const REFUSED_UNREAD: &str = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n";

#[tokio::test]
async fn a_refusal_reaches_a_caller_who_sends_a_long_body_before_it_listens() {
    const LIMIT: usize = 256 * 1024;
    let server = start_small(HttpConfig { body_limit_bytes: LIMIT, ..quick() });
    for bytes in [LIMIT, 4 * LIMIT] {
        let mut stream = connect(&server, &format!("{REFUSED_UNREAD}Content-Length: {bytes}\r\n\r\n")).await;
        stream.write_all(&vec![b' '; bytes]).await.expect("nobody resets it");
        let answer = until_closed(stream).await;
        assert!(answer.starts_with("HTTP/1.1 415 "), "{bytes}: {answer:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn what_a_closed_connection_takes_is_bounded() {
    let server = start_small(HttpConfig { max_connections: 1, body_limit_bytes: 10_000_000, ..quick() });
    let head = format!("{REFUSED_UNREAD}Content-Length: 1000000000\r\n\r\n");
    let mut stream = connect(&server, &head).await;
    let started = Instant::now();
    // Never quiet, and far below the bytes that it may send.
    while stream.write_all(&[b' '; 100]).await.is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10), "it is still open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(started.elapsed() > Duration::from_millis(1500), "{:?}", started.elapsed());
    // It had the only place, and gave it back.
    assert!(until_closed(connect(&server, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await).await.contains("hello"));
    server.stop().await;
    let server = start_small(quick());
    let mut stream = connect(&server, &head).await;
    let (mut sent, started) = (0, Instant::now());
    while stream.write_all(&[b' '; 8192]).await.is_ok() {
        sent += 8192;
        assert!(sent < 16 * 1024 * 1024, "a server with a short body limit takes 64 KiB and what its sockets hold");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    server.stop().await;
}

#[tokio::test]
async fn who_has_closed_too_holds_nothing() {
    let server = start_small(HttpConfig { max_connections: 1, ..quick() });
    for _ in 0..5 {
        let started = Instant::now();
        let answer = until_closed(connect(&server, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await).await;
        assert!(answer.contains("hello") && started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    }
    server.stop().await;
}
