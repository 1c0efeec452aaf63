//! What surrounds every route: calls from other origins, compression, rate limits.

use std::io::Read as _;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::both_tiers;
use crate::support::{Client, JWT_SECRET, Node, Reply, World};

const SUMMARY: &str = "/v1/users/42/badges";
const INCREMENT: &str = "/v1/users/42/badges/mention/increment";
const APP: &str = "https://app.example";
const ORIGINS: [&str; 2] = ["--cors-origins", "https://app.example,http://localhost:3000"];
const JWT: [&str; 2] = ["--jwt-secret", JWT_SECRET];
const KEYS: [&str; 2] = ["--service-keys", "web:s3cret-of-the-suite,worker:w0rk-of-the-suite"];

/// A node with these arguments.
async fn node(world: &World, more: &[&[&str]]) -> Node {
    world.node_with(&more.concat()).await
}

/// What a page of this origin is answered.
async fn from_page(client: &Client, origin: &str, method: Method, path: &str) -> Reply {
    Client::send(client.request(method, path).header("origin", origin)).await
}

/// What a browser asks before a page of this origin may send the request.
async fn preflight(node: &Node, origin: &str, path: &str) -> Reply {
    let request = node.client.request(Method::OPTIONS, path).header("origin", origin);
    let request =
        request.header("access-control-request-method", "POST").header("access-control-request-headers", "authorization,idempotency-key");
    Client::send(request).await
}

/// The names of the CORS headers of an answer.
fn cors_headers(reply: &Reply) -> Vec<&str> {
    reply.headers.keys().map(reqwest::header::HeaderName::as_str).filter(|name| name.starts_with("access-control-")).collect()
}

/// A list in a header, lower-case and sorted.
fn listed(reply: &Reply, name: &str) -> Vec<String> {
    let mut names: Vec<_> = reply.header(name).split(',').map(|one| one.trim().to_lowercase()).collect();
    names.sort();
    names
}

/// Asks until the limit is reached; the answer that says so.
async fn used_up(client: &Client, path: &str) -> Reply {
    for _ in 0..20 {
        let reply = client.get(path).await;
        if reply.status != 200 {
            return reply;
        }
    }
    panic!("no limit is in the way of {path}");
}

/// The same as a page of this origin.
async fn used_up_from(client: &Client, origin: &str) -> Reply {
    for _ in 0..20 {
        let reply = from_page(client, origin, Method::GET, SUMMARY).await;
        if reply.status == 429 {
            return reply;
        }
    }
    panic!("no limit is in the way of {origin}");
}

/// How many requests were refused; the metric is there from the first one on.
async fn limited(client: &Client) -> f64 {
    let text = client.get("/metrics").await.text;
    let value = text.lines().find_map(|line| line.strip_prefix("headmark_http_rate_limited_total "));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// An answer with its body as it came.
#[derive(Debug)]
struct Raw {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Raw {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn raw(node: &Node, method: Method, path: &str, headers: &[(&str, &str)]) -> Raw {
    let request = headers.iter().fold(node.client.request(method, path), |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Raw { status, headers, body: response.bytes().await.unwrap().to_vec() }
}

fn unpacked(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    if encoding == "zstd" {
        return zstd::decode_all(bytes).unwrap();
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

/// On which headers of a request the answer depends, by all its `Vary` headers.
fn varies(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all("vary").iter().flat_map(|value| value.to_str().unwrap().split(','));
    let mut names: Vec<_> = all.map(|name| name.trim().to_lowercase()).collect();
    names.sort();
    names
}

both_tiers! {
    async fn pages_of_listed_origins_may_call(world: World) {
        let node = node(&world, &[&ORIGINS, &KEYS]).await;
        for path in [SUMMARY, INCREMENT, "/livez", "/unknown"] {
            let asked = preflight(&node, APP, path).await;
            assert_eq!((asked.status.as_u16(), asked.text.as_str()), (200, ""), "{path}: no credentials are needed");
            assert_eq!(asked.header("access-control-allow-origin"), APP);
            assert_eq!(listed(&asked, "access-control-allow-methods"), ["delete", "get", "patch", "post", "put"]);
            let may_send = ["authorization", "content-type", "idempotency-key", "if-none-match", "prefer", "traceparent", "tracestate", "x-request-id"];
            assert_eq!(listed(&asked, "access-control-allow-headers"), may_send);
            assert!(asked.header("access-control-max-age").parse::<u32>().unwrap() > 0);
            assert!(!asked.header("x-request-id").is_empty());
        }
        let service = node.service();
        let summary = from_page(&service, APP, Method::GET, SUMMARY).await;
        assert_eq!((summary.status.as_u16(), summary.header("access-control-allow-origin")), (200, APP));
        assert_eq!(varies(&summary.headers), ["authorization", "origin"]);
        let may_read = ["etag", "idempotent-replayed", "link", "location", "preference-applied", "retry-after", "x-poll-interval", "x-request-id"];
        assert_eq!(listed(&summary, "access-control-expose-headers"), may_read);
        assert!(!summary.headers.contains_key("access-control-allow-credentials"), "cookies are no credentials here");
        node.stop().await;
    }

    async fn every_answer_to_a_listed_origin_can_be_read(world: World) {
        let node = node(&world, &[&ORIGINS, &KEYS, &["--body-limit-bytes", "100"]]).await;
        let service = node.service();
        let tag = service.get(SUMMARY).await.header("etag").to_owned();
        let same = service.request(Method::GET, SUMMARY).header("if-none-match", tag).header("origin", APP);
        let long = service.request(Method::POST, INCREMENT).json(&json!({"by": "1".repeat(200)})).header("origin", APP);
        for (reply, status) in [
            (Client::send(same).await, 304),
            (Client::send(long).await, 413),
            (from_page(&node.client, APP, Method::GET, SUMMARY).await, 401),
            (from_page(&service, APP, Method::GET, "/v1/users/me/badges").await, 403),
            (from_page(&service, APP, Method::GET, "/unknown").await, 404),
            (from_page(&service, APP, Method::DELETE, SUMMARY).await, 405),
        ] {
            assert_eq!((reply.status.as_u16(), reply.header("access-control-allow-origin")), (status, APP), "{}", reply.text);
            assert!(reply.header("access-control-expose-headers").contains("x-request-id"), "{status}");
        }
        node.stop().await;
    }

    async fn other_origins_get_no_cors_headers(world: World) {
        let node = node(&world, &[&ORIGINS, &KEYS]).await;
        let service = node.service();
        for origin in ["https://evil.example", "https://app.example.evil.example", "http://app.example", "https://app.example:8443", "null"] {
            let asked = preflight(&node, origin, INCREMENT).await;
            assert!(cors_headers(&asked).is_empty(), "{origin}: {:?}", asked.headers);
            asked.problem(405, "method_not_allowed");
            let told = from_page(&service, origin, Method::GET, SUMMARY).await;
            assert!(told.status == 200 && cors_headers(&told).is_empty(), "{origin}: {:?}", told.headers);
            assert_eq!(varies(&told.headers), ["authorization", "origin"], "a shared cache keeps it apart from what a listed origin gets");
        }
        let plain = Client::send(node.client.request(Method::OPTIONS, SUMMARY).header("origin", APP)).await;
        plain.problem(405, "method_not_allowed");
        node.stop().await;
    }

    async fn with_no_origin_configured_nothing_is_added(world: World) {
        let node = node(&world, &[&KEYS, &["--cors-origins", ""]]).await;
        let reply = from_page(&node.service(), APP, Method::GET, SUMMARY).await;
        assert!(reply.status == 200 && cors_headers(&reply).is_empty() && varies(&reply.headers) == ["authorization"], "{:?}", reply.headers);
        preflight(&node, APP, INCREMENT).await.problem(405, "method_not_allowed");
        node.stop().await;
    }

    async fn an_open_server_lets_listed_origins_through_and_no_others(world: World) {
        let node = node(&world, &[&ORIGINS]).await;
        let told = from_page(&node.client, APP, Method::POST, INCREMENT).await;
        assert_eq!(told.header("access-control-allow-origin"), APP);
        assert_eq!(told.ok()["unread"], 1);
        assert_eq!(preflight(&node, APP, INCREMENT).await.status, 200);
        for origin in ["https://evil.example", "null"] {
            let refused = from_page(&node.client, origin, Method::POST, INCREMENT).await;
            assert!(cors_headers(&refused).is_empty());
            refused.problem(403, "cross_origin");
            preflight(&node, origin, INCREMENT).await.problem(403, "cross_origin");
        }
        // Another name for this machine is refused whatever the page's origin is.
        let rebound = node.client.request(Method::POST, INCREMENT).header("origin", APP).header("host", "evil.example");
        Client::send(rebound).await.problem(403, "cross_origin");
        // A loopback page may call, as before, but is not told what came of it: it is not listed.
        let local = from_page(&node.client, "http://localhost:5173", Method::GET, SUMMARY).await;
        assert!(local.status == 200 && cors_headers(&local).is_empty());
        assert_eq!(node.client.summary(42).await["total"], 1);
        node.stop().await;
    }

    async fn a_star_allows_every_origin_but_not_without_credentials(world: World) {
        let every = ["--cors-origins", "*"];
        let why = world.try_node(&every, headmark::base::clock::Clock::System).await.unwrap_err();
        assert!(why.contains("HEADMARK_CORS_ORIGINS=* without credentials"), "{why}");
        let node = node(&world, &[&every, &KEYS]).await;
        let reply = from_page(&node.service(), "https://any.example", Method::GET, SUMMARY).await;
        assert_eq!((reply.status.as_u16(), reply.header("access-control-allow-origin")), (200, "*"));
        assert_eq!(preflight(&node, "https://any.example", SUMMARY).await.header("access-control-allow-origin"), "*");
        node.stop().await;
    }

    async fn long_answers_are_compressed_for_who_accepts_it(world: World) {
        let node = node(&world, &[]).await;
        let items: Vec<_> = (0..60).map(|at| json!({"user_id": "42", "badge": format!("badge-{at}")})).collect();
        node.client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
        node.client.post("/v1/users/43/badges/mention/increment", &json!({})).await.ok();
        let plain = raw(&node, Method::GET, SUMMARY, &[]).await;
        assert!(plain.body.len() > 1024 && plain.header("content-encoding").is_empty(), "{plain:?}");
        assert_eq!(varies(&plain.headers), ["accept-encoding", "authorization"]);
        for encoding in ["gzip", "zstd"] {
            let packed = raw(&node, Method::GET, SUMMARY, &[("accept-encoding", encoding)]).await;
            assert_eq!((packed.header("content-encoding"), varies(&packed.headers).len()), (encoding, 2));
            assert_eq!(packed.header("etag"), plain.header("etag"), "a weak tag names the content, not its bytes");
            assert!(packed.body.len() * 3 < plain.body.len(), "{encoding}: {}", packed.body.len());
            assert_eq!(unpacked(encoding, &packed.body), plain.body, "{encoding}");
            let same = raw(&node, Method::GET, SUMMARY, &[("accept-encoding", encoding), ("if-none-match", packed.header("etag"))]).await;
            assert_eq!((same.status, same.body.len(), same.header("content-encoding")), (304, 0, ""));
            assert_eq!(varies(&same.headers), varies(&packed.headers), "a cache replaces the headers that it keeps by these");
            let head = raw(&node, Method::HEAD, SUMMARY, &[("accept-encoding", encoding)]).await;
            assert_eq!((head.status, head.body.len(), head.header("content-encoding")), (200, 0, encoding));
            assert_eq!(head.header("content-length"), packed.body.len().to_string(), "the length of what GET sends: {head:?}");
        }
        for path in ["/openapi.json", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/console/console.js"] {
            let plain = raw(&node, Method::GET, path, &[]).await;
            let packed = raw(&node, Method::GET, path, &[("accept-encoding", "gzip")]).await;
            assert!(packed.header("content-encoding") == "gzip" && packed.body.len() * 2 < plain.body.len(), "{path}");
            assert!(unpacked("gzip", &packed.body) == plain.body, "{path}");
            assert_eq!((plain.header("vary"), packed.header("vary")), ("accept-encoding", "accept-encoding"), "{path}");
        }
        let metrics = raw(&node, Method::GET, "/metrics", &[("accept-encoding", "gzip")]).await;
        assert_eq!((metrics.header("content-encoding"), varies(&metrics.headers)), ("gzip", vec!["accept-encoding".to_owned()]));
        assert!(String::from_utf8(unpacked("gzip", &metrics.body)).unwrap().contains("headmark_http_requests_total{"));
        let short = raw(&node, Method::GET, "/v1/users/43/badges", &[("accept-encoding", "gzip")]).await;
        assert!(short.header("content-encoding").is_empty() && varies(&short.headers) == ["authorization"], "{short:?}");
        assert_eq!(short.header("content-length"), short.body.len().to_string());
        node.stop().await;
    }

    async fn compression_can_be_turned_off(world: World) {
        let node = node(&world, &[&["--compression", "false"]]).await;
        let plain = raw(&node, Method::GET, "/openapi.json", &[("accept-encoding", "gzip, zstd")]).await;
        assert!(plain.header("content-encoding").is_empty() && plain.header("vary").is_empty(), "{:?}", plain.headers);
        assert!(serde_json::from_slice::<serde_json::Value>(&plain.body).is_ok());
        let tag = raw(&node, Method::GET, SUMMARY, &[]).await.header("etag").to_owned();
        let same = raw(&node, Method::GET, SUMMARY, &[("if-none-match", &tag)]).await;
        assert_eq!((same.status, varies(&same.headers)), (304, vec!["authorization".to_owned()]));
        node.stop().await;
    }

    async fn each_caller_has_a_limit_of_its_own(world: World) {
        let node = node(&world, &[&KEYS, &JWT, &["--rate-limit", "1", "--rate-burst", "3"]]).await;
        let (web, worker) = (node.service(), node.client.with_bearer("w0rk-of-the-suite"));
        let (alice, bob) = (node.user(42), node.user(43));
        let limited_before = limited(&node.client).await;
        let body = used_up(&web, SUMMARY).await.problem(429, "rate_limited");
        assert_eq!(body["title"], "Rate limit exceeded");
        for path in [INCREMENT, "/v1/badges/increment", "/v1/badges/query"] {
            web.post(path, &json!({"no": "body"})).await.problem(429, "rate_limited");
        }
        assert!(limited(&node.client).await >= limited_before + 4.0);
        for other in [&worker, &alice] {
            assert_eq!(other.get(SUMMARY).await.status, 200, "another caller");
        }
        assert_eq!(bob.get("/v1/users/me/badges").await.status, 200, "another user");
        let told = used_up(&alice, "/v1/users/me/badges").await;
        assert_eq!(told.header("retry-after"), "1");
        for path in ["/livez", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/", "/console/", "/livez"] {
            assert_eq!(web.get(path).await.status, 200, "{path}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(alice.get("/v1/users/me/badges").await.status, 200, "who waits as told is served");
        node.stop().await;
    }

    async fn a_request_counts_once_and_refused_ones_count_too(world: World) {
        let node = node(&world, &[&KEYS, &JWT, &["--rate-limit", "1", "--rate-burst", "200"]]).await;
        let web = node.service();
        let wrong = node.client.with_bearer("wrong");
        let started = std::time::Instant::now();
        let (mut served, mut refused) = (0, 0);
        while served < 1000 && web.post(INCREMENT, &json!({})).await.status == 200 {
            served += 1;
        }
        while refused < 1000 && wrong.get(SUMMARY).await.status == 401 {
            refused += 1;
        }
        let refilled = started.elapsed().as_secs() + 1;
        for taken in [served, refused] {
            assert!((200..=200 + refilled).contains(&taken), "{taken}");
        }
        wrong.get(SUMMARY).await.problem(429, "rate_limited");
        node.client.get(SUMMARY).await.problem(429, "rate_limited");
        assert_eq!(node.client.with_bearer("w0rk-of-the-suite").get(SUMMARY).await.status, 200, "the address of a stranger is no caller");
        node.stop().await;
    }

    async fn without_credentials_all_are_one_caller_and_preflights_are_free(world: World) {
        let node = node(&world, &[&ORIGINS, &["--rate-limit", "1"]]).await;
        let refused = used_up(&node.client, SUMMARY).await;
        refused.problem(429, "rate_limited");
        for _ in 0..5 {
            assert_eq!(preflight(&node, APP, SUMMARY).await.status, 200);
        }
        let told = used_up_from(&node.client, APP).await;
        assert_eq!(told.header("access-control-allow-origin"), APP, "a page can read when to come back");
        node.stop().await;
    }
}

#[tokio::test]
async fn an_origin_that_would_never_match_is_refused_at_the_start() {
    for (origins, says) in
        [("https://app.example/", "without a slash"), ("app.example", "begin with the scheme"), ("*,https://a.example", "alone")]
    {
        let why = crate::support::refusal(&[], &[("HEADMARK_CORS_ORIGINS", origins)]).await;
        assert!(why.contains("--cors-origins") && why.contains(says), "{why}");
    }
}
