//! Spans of requests, as a collector receives them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::both_tiers;
use crate::support::{Client, Node, Reply, World, eventually, refusal};

const SUMMARY: &str = "/v1/users/42/badges";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A span, and the attributes of its resource.
type Sent = (Span, Vec<KeyValue>);

/// A collector of traces, and what it was sent.
struct Collector {
    endpoint: String,
    spans: Arc<Mutex<Vec<Sent>>>,
}

impl Collector {
    async fn start() -> Self {
        let spans: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let kept = Arc::clone(&spans);
        let take = async move |headers: HeaderMap, body: Bytes| {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            for resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
                let about = resource.resource.unwrap().attributes;
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                kept.lock().unwrap().extend(spans.map(|span| (span, about.clone())));
            }
            StatusCode::OK
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { endpoint, spans }
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().iter().map(|(span, _)| span.clone()).collect()
    }

    fn named(&self, name: &str) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }
}

/// A text or a number among attributes; empty when it is not there.
fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|attribute| attribute.value.clone()).and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        None => String::new(),
        other => panic!("{key} is {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn traced(node: &Node, method: Method, path: &str, flags: &str) -> Reply {
    let request = node.client.request(method, path).header("traceparent", format!("00-{TRACE}-{PARENT}-{flags}"));
    Client::send(request.header("tracestate", "vendor=opaque")).await
}

both_tiers! {
    async fn a_collector_gets_a_span_for_each_request(world: World) {
        let collector = Collector::start().await;
        let node = world.node_with(&["--otlp-endpoint", &collector.endpoint]).await;
        traced(&node, Method::GET, SUMMARY, "01").await.ok();
        eventually("the span is sent while the node runs", async || !collector.spans().is_empty()).await;
        node.client.post("/v1/users/42/badges/mention/increment?x=secret", &json!({})).await;
        node.client.get("/unknown/42").await.problem(404, "unknown_route");
        node.client.get(&format!("/{}", "x".repeat(10_000))).await.problem(404, "unknown_route");
        node.client.get("/livez").await.ok();
        node.stop().await;

        let polled = collector.named("GET /v1/users/{user}/badges").remove(0);
        assert_eq!((hex(&polled.trace_id).as_str(), hex(&polled.parent_span_id).as_str()), (TRACE, PARENT));
        assert_eq!((polled.kind, polled.trace_state.as_str()), (2, "vendor=opaque"), "a server's span");
        for (key, value) in [
            ("http.request.method", "GET"),
            ("http.route", "/v1/users/{user}/badges"),
            ("http.response.status_code", "200"),
            ("url.path", SUMMARY),
            ("url.scheme", "http"),
            ("network.protocol.version", "1.1"),
        ] {
            assert_eq!(attribute(&polled.attributes, key), value, "{key}");
        }
        assert!(polled.end_time_unix_nano > polled.start_time_unix_nano);
        let about = collector.spans.lock().unwrap()[0].1.clone();
        assert_eq!(attribute(&about, "service.name"), "headmark");
        assert_eq!(attribute(&about, "service.version"), env!("CARGO_PKG_VERSION"));

        let written = collector.named("POST /v1/users/{user}/badges/{badge}/increment").remove(0);
        assert!(hex(&written.trace_id) != TRACE && written.parent_span_id.is_empty(), "a trace of its own");
        let unknowns = collector.named("GET");
        let paths: Vec<_> = unknowns.iter().map(|span| attribute(&span.attributes, "url.path")).collect();
        assert_eq!(paths, ["/unknown/42".to_owned(), format!("/{}…", "x".repeat(199))], "nobody chooses how much waits to be sent");
        let unknown = &unknowns[0];
        assert_eq!((attribute(&unknown.attributes, "http.route"), attribute(&unknown.attributes, "url.path")), (String::new(), "/unknown/42".to_owned()));
        assert!(unknown.status.as_ref().is_none_or(|status| status.code == 0), "what the caller did wrong is no error of the server");
        assert_eq!(collector.spans().len(), 4, "probes have none");
        assert!(!format!("{:?}", collector.spans()).contains("secret"), "no query strings");
    }

    async fn the_caller_says_whether_its_trace_is_sent(world: World) {
        let collector = Collector::start().await;
        let node = world.node_with(&["--otlp-endpoint", &collector.endpoint, "--otlp-sample", "0"]).await;
        traced(&node, Method::GET, SUMMARY, "00").await.ok();
        node.client.summary(43).await;
        traced(&node, Method::GET, SUMMARY, "01").await.ok();
        node.stop().await;
        assert_eq!(collector.spans().len(), 1);

        let collector = Collector::start().await;
        let node = world.node_with(&["--otlp-endpoint", &collector.endpoint]).await;
        traced(&node, Method::GET, SUMMARY, "00").await.ok();
        node.client.summary(43).await;
        node.stop().await;
        let sent: Vec<_> = collector.spans().iter().map(|span| attribute(&span.attributes, "url.path")).collect();
        assert_eq!(sent, ["/v1/users/43/badges"]);
    }

    async fn an_error_of_the_server_and_a_caller_who_hangs_up_show(world: World) {
        let collector = Collector::start().await;
        let node = world.node_with(&["--otlp-endpoint", &collector.endpoint]).await;
        let tag = node.client.get(SUMMARY).await.header("etag").to_owned();
        let waiting = node.client.request(Method::GET, &format!("{SUMMARY}?wait=60")).header("if-none-match", tag);
        let waiting = tokio::spawn(waiting.send());
        eventually("the poll waits", async || node.client.metric("headmark_polls_waiting").await == 1.0).await;
        waiting.abort();
        eventually("the span of the caller who hung up is sent", async || collector.spans().len() >= 2).await;
        node.stop().await;
        let statuses: Vec<_> = collector.spans().iter().map(|span| attribute(&span.attributes, "http.response.status_code")).collect();
        assert!(statuses.contains(&"499".to_owned()), "{statuses:?}");

        // The one place is taken by a body that does not come, so the next request is refused.
        let collector = Collector::start().await;
        let node = world.node_with(&["--otlp-endpoint", &collector.endpoint, "--max-in-flight", "1", "--waiting-polls", "0"]).await;
        let mut stuck = tokio::net::TcpStream::connect(node.base.strip_prefix("http://").unwrap()).await.unwrap();
        let headers = "POST /v1/badges/query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n";
        stuck.write_all(headers.as_bytes()).await.unwrap();
        let mut wants_body = [0; 12];
        stuck.read_exact(&mut wants_body).await.unwrap();
        assert_eq!(&wants_body, b"HTTP/1.1 100");
        node.client.get(SUMMARY).await.problem(503, "overloaded");
        drop(stuck);
        node.stop().await;
        let refused = collector.spans().into_iter().find(|span| attribute(&span.attributes, "http.response.status_code") == "503").unwrap();
        assert_eq!(attribute(&refused.attributes, "error.type"), "503");
        assert_eq!(refused.status.unwrap().code, 2, "an error");
    }

    async fn an_absent_collector_costs_nothing_but_its_spans(world: World) {
        // Nobody listens on the first; the second takes connections and never answers.
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for endpoint in [gone, silent.local_addr().unwrap()] {
            let node = world.node_with(&["--otlp-endpoint", &format!("http://{endpoint}"), "--otlp-queue", "4"]).await;
            for _ in 0..50 {
                let asked = Instant::now();
                traced(&node, Method::GET, SUMMARY, "01").await.ok();
                assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
            }
            if endpoint == gone {
                eventually("the failure is counted", async || node.client.get("/metrics").await.text.contains(r#"headmark_trace_spans_total{result="failed"}"#)).await;
            }
            let stopped = Instant::now();
            node.stop().await;
            assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
        }
    }
}

#[tokio::test]
async fn a_collector_that_cannot_be_used_is_refused_at_the_start() {
    let world = World::new(crate::support::Tier::Embedded).await;
    let args = ["--data-dir", world.dir.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    for (endpoint, says) in [("https://collector:4318", "https is not spoken"), ("collector:4318", "must begin with http://")] {
        let why = refusal(&args, &[("HEADMARK_OTLP_ENDPOINT", endpoint)]).await;
        assert!(why.contains("HEADMARK_OTLP_ENDPOINT") && why.contains(says), "{why}");
    }
    let why = refusal(&args, &[("HEADMARK_OTLP_SAMPLE", "2")]).await;
    assert!(why.contains("--otlp-sample") && why.contains("from 0 to 1"), "{why}");
}
