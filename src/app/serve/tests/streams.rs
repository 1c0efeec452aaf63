//! Callers over HTTP/2, and how fast they receive.

use axum::body::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};

use super::*;

/// An HTTP/2 client.
struct Client {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    /// One that takes so many bytes of each answer before it has looked at them.
    async fn new(server: &Server, window: u32) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (requests, connection) = h2::client::Builder::new().initial_window_size(window).handshake(stream).await.unwrap();
        Self { requests, connection: tokio::spawn(connection) }
    }

    async fn ask(&self, path: &str) -> RecvStream {
        let request = hyper::Request::get(format!("http://localhost{path}")).body(()).unwrap();
        let (answer, _) = self.requests.clone().ready().await.unwrap().send_request(request, true).unwrap();
        answer.await.unwrap().into_body()
    }

    async fn ask_many(&self, path: &str, times: usize) -> Vec<RecvStream> {
        let mut answers = Vec::new();
        for _ in 0..times {
            answers.push(self.ask(path).await);
        }
        answers
    }
}

/// Receives so many bytes, and makes room for as many again. None at the end.
async fn receive(answer: &mut RecvStream) -> Option<usize> {
    let bytes = answer.data().await?.unwrap().len();
    answer.flow_control().release_capacity(bytes).unwrap();
    Some(bytes)
}

async fn receive_all(mut answer: RecvStream) -> usize {
    let mut received = 0;
    while let Some(bytes) = receive(&mut answer).await {
        received += bytes;
    }
    received
}

/// Takes what has come, makes no room for more, and returns why no more comes.
async fn until_reset(mut answer: RecvStream) -> Option<Reason> {
    let end = async {
        loop {
            match answer.data().await {
                Some(Ok(_)) => {}
                end => return end.and_then(|end| end.unwrap_err().reason()),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), end).await.unwrap()
}

fn slow_to_receive(send_timeout_ms: u64) -> HttpConfig {
    HttpConfig { send_timeout_ms, header_timeout_ms: 60_000, ..quick() }
}

#[tokio::test]
async fn a_stream_that_is_not_received_is_reset_and_the_others_go_on() {
    let server = start(slow_to_receive(300)).await;
    let client = Client::new(&server, 1000).await;
    let started = Instant::now();
    let stalled = client.ask("/long").await;
    // These are answered before the other one is late, and after it is.
    for _ in 0..4 {
        assert_eq!(receive_all(client.ask("/slow").await).await, 4);
    }
    assert!(started.elapsed() > Duration::from_millis(1000));
    assert_eq!(until_reset(stalled).await, Some(Reason::CANCEL));
    assert!(!client.connection.is_finished());
    server.stop().await;
}

#[tokio::test]
async fn a_long_answer_that_is_received_steadily_is_whole_however_long_it_takes() {
    let server = start(slow_to_receive(400)).await;
    let client = Client::new(&server, 64 * 1024).await;
    let started = Instant::now();
    let mut answer = client.ask("/long").await;
    let (mut received, mut since_pause) = (0, 0);
    while let Some(bytes) = receive(&mut answer).await {
        (received, since_pause) = (received + bytes, since_pause + bytes);
        if since_pause >= 64 * 1024 {
            since_pause = 0;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!(received, LONG_BYTES);
    assert!(started.elapsed() > Duration::from_millis(1000), "it took several times as long as one piece may");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_pauses_is_whole() {
    let server = start(slow_to_receive(200)).await;
    let client = Client::new(&server, 64 * 1024).await;
    assert_eq!(receive_all(client.ask("/drip").await).await, DRIPS * DRIP_BYTES);
    server.stop().await;
}

#[tokio::test]
async fn places_of_answers_that_are_not_received_come_back() {
    let server = start(HttpConfig { max_in_flight: 8, ..slow_to_receive(1500) }).await;
    for window in [0, 1, 50_000] {
        let started = Instant::now();
        let client = Client::new(&server, window).await;
        // Nobody's long answers may keep half of the places, and these keep all of those.
        let answers = client.ask_many("/long", 4).await;
        let over = server.all("GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(over.starts_with("HTTP/1.1 503 ") && over.contains("retry-after"), "{window}: {:?}, {over:.200}", started.elapsed());
        assert!(server.all("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.contains("hello"));
        for answer in answers {
            assert_eq!(until_reset(answer).await, Some(Reason::CANCEL), "{window}");
        }
        assert!(started.elapsed() >= Duration::from_millis(1500), "{window}: {:?}", started.elapsed());
        // A task lets go of its place just after its stream is reset.
        let mut served = String::new();
        while !served.starts_with("HTTP/1.1 200 ") {
            assert!(started.elapsed() < Duration::from_secs(10), "{window}: {served:.200}");
            served = server.all("GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        }
        assert!(!client.connection.is_finished(), "{window}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_short_answer_that_is_not_received_ends_its_connection_with_a_goodbye() {
    let server = start(slow_to_receive(400)).await;
    let client = Client::new(&server, 1).await;
    let started = Instant::now();
    let answer = client.ask("/").await;
    // A connection that takes leave takes no more requests.
    let refused = loop {
        match client.requests.clone().ready().await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => break error,
        }
    };
    assert!(refused.is_go_away() && !client.connection.is_finished(), "{refused:?}");
    let ended = tokio::time::timeout(Duration::from_secs(5), client.connection).await;
    assert!(ended.is_ok() && started.elapsed() > Duration::from_millis(400), "{:?}", started.elapsed());
    drop(answer);
    server.stop().await;
}

#[tokio::test]
async fn a_drain_says_goodbye_to_http2_at_once() {
    let server = start(HttpConfig { drain_idle_ms: 4000, ..slow_to_receive(30_000) }).await;
    let client = Client::new(&server, 0).await;
    let took = server.stop().await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    drop(client.requests);
    assert!(client.connection.await.unwrap().is_ok());
}
