//! The server itself: probes, metrics, documents, request ids, the end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use headmark::base::clock::Clock;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Reply, eventually};

/// What the page of `/docs` loads.
const ASSETS: [(&str, &str); 4] = [
    ("swagger-ui-bundle.js", "javascript"),
    ("swagger-ui-standalone-preset.js", "javascript"),
    ("swagger-initializer.js", "javascript"),
    ("swagger-ui.css", "css"),
];

/// Every operation of a document: method, path, and what it says of it.
fn operations(document: &Value) -> Vec<(Method, String, Value)> {
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((method.to_uppercase().parse().unwrap(), path.clone(), operation.clone()));
        }
    }
    operations
}

/// The program's own source.
fn source() -> String {
    let mut source = String::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                source.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    source
}

/// Whether the document names this status, itself or by its class.
fn names(operation: &Value, status: u16) -> bool {
    let responses = &operation["responses"];
    responses.get(status.to_string()).or_else(|| responses.get(format!("{}XX", status / 100))).is_some()
}

/// Under the policy of this file no strange script runs, and a key that is typed in stays here.
fn assert_guarded(file: &Reply, path: &str) {
    let policy = file.header("content-security-policy");
    let rules: Vec<_> = policy.split("; ").collect();
    let needed = [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ];
    for rule in needed {
        assert!(rules.contains(&rule), "{path} lacks {rule}: {policy}");
    }
    assert_eq!((file.header("x-frame-options"), file.header("referrer-policy")), ("DENY", "no-referrer"), "{path}");
}

/// A value for each parameter of a path.
const VALUES: [(&str, &str); 16] = [
    ("{group}", "9"),
    ("{user}", "42"),
    ("{badge}", "mention"),
    ("{target}", "7"),
    ("{channel}", "system"),
    ("{seq}", "1"),
    ("{dot}", "mall"),
    ("{post_id}", "p1"),
    ("{notification_id}", "8"),
    ("{view}", "home"),
    ("{view_id}", "1"),
    ("{item_id}", "a"),
    ("{peer}", "7"),
    ("{device_id}", "phone-1"),
    ("{fan}", "7"),
    ("{id}", "0190163d8694739b3d5c2a7f00112233"),
];

both_tiers! {
    async fn probes_say_how_it_is(world: World) {
        let node = world.node().await;
        for path in ["/livez", "/healthz"] {
            assert_eq!(node.client.get(path).await.ok(), json!({"status": "ok"}));
        }
        let ready = node.client.get("/readyz").await;
        insta::assert_snapshot!(ready.text, @r#"{"ready":true,"degraded":false,"database":"ok","cache":"ok","node":"ok"}"#);
        assert_eq!(ready.status, 200);
        node.app.begin_drain();
        let draining = node.client.get("/readyz").await;
        insta::assert_snapshot!(draining.text, @r#"{"ready":false,"degraded":false,"database":"ok","cache":"ok","node":"draining"}"#);
        assert_eq!((draining.status.as_u16(), draining.header("retry-after")), (503, "1"));
        assert_eq!(node.client.get("/livez").await.status, 200, "a node that drains lives");
        node.stop().await;
    }

    async fn metrics_are_prometheus_text(world: World) {
        let node = world.node().await;
        node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
        node.client.summary(42).await;
        node.client.get("/v1/users/7777777/unknown").await.problem(404, "unknown_route");
        let reply = node.client.get("/metrics").await;
        assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4");
        let samples: Vec<_> = reply.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        for sample in &samples {
            let (series, value) = sample.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let is_ours = name.starts_with("headmark_") || name.starts_with("process_");
            let well_named = is_ours && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(well_named && value.parse::<f64>().is_ok(), "{sample}");
            assert!(!series.contains("7777777"), "no label is the caller's to choose: {sample}");
        }
        let types = reply.text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        for (name, kind) in types.map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        }
        for name in ["headmark_http_requests_total", "headmark_http_request_seconds_bucket", "headmark_lane_commands_total"] {
            assert!(samples.iter().any(|sample| sample.starts_with(name)), "{name} is missing");
        }
        node.stop().await;
    }

    async fn metrics_say_how_the_parts_and_the_process_are(world: World) {
        let node = world.process(&["--drain-delay-ms", "5000"], &[]).await;
        let metric = async |name: &str| node.client.metric(name).await;
        for part in ["database", "cache", "node"] {
            assert_eq!(metric(&format!("headmark_part_up{{part=\"{part}\"}}")).await, 1.0, "{part}");
        }
        assert_eq!((metric("headmark_ready").await, metric("headmark_polls_waiting_limit").await), (1.0, 5000.0));
        // A Mac has no /proc.
        if cfg!(target_os = "linux") {
            let (open, most) = (metric("process_open_fds").await, metric("process_max_fds").await);
            assert!(10.0 < open && open < most, "{open} of {most}");
            let (told, kept) = (metric("process_resident_memory_bytes").await, node.memory_bytes());
            #[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
            let kept = kept as f64;
            assert!(kept / 2.0 < told && told < kept * 2.0, "{told} told, {kept} used");
        }
        assert!(metric("process_start_time_seconds").await > 1.7e9);
        node.terminate();
        let metric = async |name: &str| Client::new(&node.base).metric(name).await;
        eventually("it is not ready", async || metric("headmark_ready").await == 0.0).await;
        assert_eq!((metric("headmark_part_up{part=\"node\"}").await, metric("headmark_part_up{part=\"database\"}").await), (0.0, 1.0));
    }

    async fn what_is_for_operators_has_a_listener_of_its_own(world: World) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let admin = format!("127.0.0.1:{port}");
        let mut node = world.process(&["--admin-listen", &admin], &[]).await;
        let operator = Client::new(&format!("http://{admin}"));
        for path in ["/metrics", "/readyz", "/console/", "/console/console.js"] {
            // What the document says is said of the other listener.
            assert_eq!(reqwest::get(format!("{}{path}", node.base)).await.unwrap().status(), 404, "{path}");
            assert_eq!(operator.get(path).await.status, 200, "{path}");
        }
        for path in ["/livez", "/healthz", "/openapi.json", "/docs/", "/v1/users/1/badges"] {
            assert_eq!((node.client.get(path).await.status, operator.get(path).await.status), (StatusCode::OK, StatusCode::OK), "{path}");
        }
        // The console writes, too.
        operator.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
        assert_eq!(node.client.summary(1).await["total"], 1);
        assert!(operator.metric("headmark_http_requests_total{method=\"GET\",route=\"/livez\",status=\"200\"}").await >= 2.0, "of both");
        node.terminate();
        assert!(node.ended().await.success());
        let why = world.try_node(&["--admin-listen", "0.0.0.0:0"], Clock::System).await.unwrap_err();
        assert!(why.contains("refusing to listen on 0.0.0.0:0 without credentials"), "{why}");
    }

    async fn held_polls_are_timed_apart(world: World) {
        let node = world.process(&[], &[]).await;
        let path = "/v1/users/42/badges";
        let of_route = |name: &str| format!("{name}_count{{route=\"/v1/users/{{user}}/badges\"}}");
        let (apart, others) = (of_route("headmark_http_held_seconds"), of_route("headmark_http_request_seconds"));
        let tag = node.client.get(path).await.header("etag").to_owned();
        assert!(!node.client.get("/metrics").await.text.contains(&apart), "none was held");
        assert_eq!(node.client.metric(&others).await, 1.0);
        let held = format!("{path}?wait=30");
        let raise = async {
            eventually("the poll is held", async || node.client.metric("headmark_polls_waiting").await == 1.0).await;
            node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
        };
        let (polled, ()) = tokio::join!(node.client.get_if_changed(&held, &tag), raise);
        let tag = polled.header("etag").to_owned();
        assert_eq!(polled.ok()["total"], 1);
        let metrics = node.client.get("/metrics").await.text;
        let longest = metrics.lines().filter(|line| line.starts_with("headmark_http_held_seconds_bucket")).any(|line| line.contains("le=\"60\""));
        assert!(longest, "polls may be held for a minute: {metrics}");
        assert_eq!((node.client.metric(&apart).await, node.client.metric(&others).await), (1.0, 1.0));
        assert_eq!(node.client.get_if_changed(&format!("{path}?wait=0"), &tag).await.status, 304);
        assert_eq!((node.client.metric(&apart).await, node.client.metric(&others).await), (1.0, 2.0));
    }

    async fn every_operation_of_the_document_is_served_as_it_says(world: World) {
        let node = world.node().await;
        let reply = node.client.get("/openapi.json").await;
        assert_eq!(reply.header("content-type"), "application/json");
        let document = reply.ok();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
        let operations = operations(&document);
        assert_eq!(operations.len(), source().matches("#[utoipa::path(").count(), "the document has every handler that describes itself");
        for (method, path, operation) in operations {
            let called = VALUES.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
            assert!(!called.contains('{'), "give {path} its values here");
            let bodies = if method == Method::POST { vec![Some("{}"), Some("no json")] } else { vec![None] };
            for body in bodies {
                let mut request = node.client.request(method.clone(), &called);
                if let Some(body) = body {
                    request = request.header("content-type", "application/json").body(body);
                }
                let reply = Client::send(request).await;
                let status = reply.status.as_u16();
                let absent = status == 404 && reply.body["code"] == "not_found";
                assert!(absent || !matches!(status, 404 | 405) && status < 500, "{method} {path}: {status} {}", reply.text);
                assert!(names(&operation, status), "{method} {path} answers {status}, which it does not name");
            }
        }
        node.stop().await;
    }

    async fn docs_come_from_the_binary(world: World) {
        let node = world.node().await;
        for path in ["/docs", "/docs/"] {
            let page = node.client.get(path).await;
            assert_eq!(page.status, 200);
            assert!(page.header("content-type").starts_with("text/html") && page.text.contains("swagger-ui"), "{}", page.text);
            assert!(!page.text.contains("https://"), "it loads nothing from elsewhere");
            assert_guarded(&page, path);
        }
        for (file, media) in ASSETS {
            let asset = node.client.get(&format!("/docs/{file}")).await;
            assert!(asset.status == 200 && asset.header("content-type").contains(media), "{file} {}", asset.header("content-type"));
            assert_eq!(asset.text.contains("/openapi.json"), file == "swagger-initializer.js", "{file}");
            assert_guarded(&asset, file);
        }
        let settings = node.client.get("/docs/swagger-initializer.js").await.text;
        assert!(settings.contains("\"validatorUrl\": \"none\""), "no other host learns of the document: {settings}");
        for unknown in ["/docs/unknown.js", "/docs/oauth2-redirect.html", "/docs/%80", "/docs/../secret"] {
            node.client.get(unknown).await.problem(404, "unknown_route");
        }
        node.stop().await;
    }

    async fn the_console_comes_from_the_binary_with_a_strict_policy(world: World) {
        let node = world.node().await;
        let page = node.client.get("/console").await;
        assert!(page.status == 200 && page.text.contains("console.js"), "{}", page.text);
        for (file, media) in [("", "text/html"), ("console.js", "text/javascript"), ("console.css", "text/css")] {
            let path = format!("/console/{file}");
            let asset = node.client.get(&path).await;
            assert!(asset.status == 200 && asset.header("content-type").starts_with(media), "{path} {}", asset.header("content-type"));
            assert_guarded(&asset, &path);
            assert!(!asset.header("content-security-policy").contains("unsafe"), "{path}");
            assert_eq!(asset.header("cache-control"), "no-cache", "{path}");
            let known = node.client.request(Method::GET, &path).header("if-none-match", asset.header("etag"));
            let known = Client::send(known).await;
            assert!(known.status == 304 && known.text.is_empty(), "{path}: {}", known.status);
        }
        for unknown in ["/console/unknown.js", "/console/%80", "/console/../secret", "/console/console.js/x"] {
            node.client.get(unknown).await.problem(404, "unknown_route");
        }
        node.client.post("/console/", &json!({})).await.problem(405, "method_not_allowed");
        node.stop().await;
    }

    async fn request_ids_are_taken_or_made_and_returned(world: World) {
        let node = world.node().await;
        let with_id = async |id: &str, path: &str| {
            Client::send(node.client.request(Method::GET, path).header("x-request-id", id)).await.header("x-request-id").to_owned()
        };
        for path in ["/v1/users/42/badges", "/livez", "/unknown", "/v1/users/0/badges"] {
            assert_eq!(with_id("checkout-7:a.b_c", path).await, "checkout-7:a.b_c");
            for unfit in ["", "with space", "<script>", &"x".repeat(129)] {
                let made = with_id(unfit, path).await;
                assert!(made != unfit && !made.is_empty(), "{unfit:?} became {made:?}");
            }
        }
        let made: BTreeSet<_> = [node.client.get("/livez").await, node.client.get("/livez").await].map(|r| r.header("x-request-id").to_owned()).into();
        assert_eq!(made.len(), 2);
        node.stop().await;
    }

    // New connections too: the balancer's next look is one, and until it has come, so are the
    // requests that it sends.
    async fn all_are_served_until_the_drain_delay_is_over(world: World) {
        let mut node = world.process(&["--drain-delay-ms", "6000"], &[]).await;
        node.terminate();
        let ready = async || Client::new(&node.base).get("/readyz").await;
        eventually("it says that it ends", async || ready().await.status == 503).await;
        let newcomer = Client::new(&node.base);
        assert_eq!(newcomer.get("/livez").await.status, 200);
        assert_eq!(newcomer.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok()["head"], 1);
        assert_eq!(node.ended().await.code(), Some(0));
        assert!(Client::try_send(newcomer.request(Method::GET, "/livez")).await.is_err());
    }

    async fn sigterm_answers_what_runs_and_exits_0(world: World) {
        // The write takes its time just before the commit; so does the first poll's enrolment, for
        // which polls wait for 2 s at most.
        let mut node = world.process(&[], &[("FAILPOINTS", "lane::before_commit=sleep(1000)")]).await;
        let tag = node.client.get("/v1/users/43/badges").await.header("etag").to_owned();
        let poll = node.client.request(Method::GET, "/v1/users/43/badges?wait=60").header("if-none-match", tag);
        let poll = tokio::spawn(Client::send(poll));
        let (base, observer) = (node.base.clone(), node.client.clone());
        eventually("the poll waits", async || observer.metric("headmark_polls_waiting").await == 1.0).await;
        let write = node.client.request(Method::POST, "/v1/users/42/badges/mention/increment");
        let write = tokio::spawn(Client::send(write));
        eventually("the write runs", async || observer.metric("headmark_lane_waiting").await == 1.0).await;
        let told = Instant::now();
        node.terminate();
        assert_eq!(write.await.unwrap().ok()["unread"], 1);
        assert_eq!(poll.await.unwrap().status, 304);
        assert_eq!(node.ended().await.code(), Some(0));
        assert!(told.elapsed() < Duration::from_secs(10), "{:?}", told.elapsed());
        let gone = Client::new(&base);
        assert!(Client::try_send(gone.request(Method::GET, "/livez")).await.is_err());
        let node = world.node().await;
        assert_eq!(node.client.summary(42).await["total"], 1, "what was acknowledged is there after the restart");
        node.stop().await;
    }
}

#[test]
fn the_document_in_the_repository_is_the_one_that_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let served = headmark::app::router::openapi_json().unwrap();
    assert!(kept.trim_end() == served.trim_end(), "openapi/openapi.json is out of date: run `make openapi` and look at the difference");
    let document: Value = serde_json::from_str(&served).unwrap();
    for at in served.split("\"$ref\": \"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document.pointer(at).is_some(), "{at} is not in the document: name it in router.rs");
    }
}

#[test]
fn operation_ids_are_unique_and_are_the_names_of_the_handlers() {
    let document: Value = serde_json::from_str(&headmark::app::router::openapi_json().unwrap()).unwrap();
    let source = source();
    let mut seen = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path} has no operation id")).to_owned();
        assert!(source.contains(&format!("async fn {id}(")), "{method} {path}: no handler is called {id}");
        assert!(operation["summary"].is_string() && operation["tags"].is_array(), "{id} says nothing of itself");
        assert!(seen.insert(id.clone()), "{id} twice");
    }
}
