use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::sync::oneshot;
use tower::ServiceExt;

use super::*;
use crate::http::context;

fn app(config: EdgeConfig) -> Router {
    Router::new()
        .route("/fine", get(|| async { context::request_id().unwrap_or_default() }).post(|| async {}))
        .route("/users/{user}", get(|| async {}))
        .route("/write", post(|| async {}))
        .route("/panic", get(async || -> &'static str { panic!("inside") }))
        .route("/livez", get(|| async {}))
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(EdgeLayer::new(config))
}

fn places(total: usize) -> PlacesConfig {
    PlacesConfig { total, ..PlacesConfig::default() }
}

fn get_with(path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = Request::get(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

async fn ask(request: Request) -> (StatusCode, HeaderMap, String) {
    ask_of(app(EdgeConfig::default()), request).await
}

async fn ask_of(app: Router, request: Request) -> (StatusCode, HeaderMap, String) {
    let (parts, body) = app.oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
}

fn code(body: &str) -> String {
    serde_json::from_str::<crate::http::problem::ProblemOut>(body).unwrap().code.as_str()
}

#[tokio::test]
async fn request_ids_are_taken_or_made_and_returned() {
    let (status, headers, body) = ask(get_with("/fine", &[("x-request-id", "abc:1.2_3-4")])).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "abc:1.2_3-4"));
    assert_eq!(headers["x-request-id"], "abc:1.2_3-4");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let long = "x".repeat(129);
    for unfit in ["", "a b", "a\"b", &long] {
        let (_, headers, _) = ask(get_with("/fine", &[("x-request-id", unfit)])).await;
        let made = headers["x-request-id"].to_str().unwrap();
        assert!(made.len() == 32 && made.bytes().all(|b| b.is_ascii_hexdigit()), "{unfit:?} {made}");
    }
    let (_, first, _) = ask(get_with("/none", &[])).await;
    let (_, second, _) = ask(get_with("/panic", &[])).await;
    assert_ne!(first["x-request-id"], second["x-request-id"]);
}

#[tokio::test]
async fn a_panic_is_a_500_problem_that_tells_nothing() {
    let (status, headers, body) = ask(get_with("/panic", &[])).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(code(&body), "internal_error");
    assert!(!body.contains("inside"));
}

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let (status, _, body) = ask(get_with(&format!("/none/{}", "x".repeat(500)), &[])).await;
    assert_eq!((status, code(&body).as_str()), (StatusCode::NOT_FOUND, "unknown_route"));
    assert!(body.contains("GET /none/xxx") && body.len() < 500);
    for (method, path, allow) in [("PUT", "/fine", "GET,HEAD,POST"), ("GET", "/write", "POST"), ("X-OWN", "/users/1", "GET,HEAD")] {
        let request = Request::builder().header("host", "localhost").method(method).uri(path).body(Body::empty()).unwrap();
        let (status, headers, body) = ask(request).await;
        assert_eq!((status, code(&body).as_str()), (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"), "{method} {path}");
        assert_eq!(headers[header::ALLOW], allow);
        assert!(headers.contains_key("x-request-id"));
    }
}

#[tokio::test]
async fn an_open_server_refuses_pages_of_other_origins_and_rebound_names() {
    let open = || app(EdgeConfig { open: true, ..EdgeConfig::default() });
    for (headers, allowed) in [
        (&[][..], true),
        (&[("host", "localhost:8080")], true),
        (&[("host", "127.0.0.1:8080"), ("origin", "http://localhost:3000")], true),
        (&[("host", "[::1]:8080"), ("origin", "http://[::1]:3000")], true),
        (&[("host", "localhost"), ("origin", "https://evil.example")], false),
        (&[("host", "localhost"), ("origin", "null")], false),
        (&[("forwarded", "for=192.0.2.1")], false),
        (&[("x-forwarded-for", "192.0.2.1")], false),
        (&[("x-forwarded-anything", "x")], false),
        (&[("x-real-ip", "192.0.2.1")], false),
        (&[("via", "1.1 proxy")], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("sec-fetch-site", "same-origin")], true),
        (&[("sec-fetch-site", "none")], true),
        (&[("sec-fetch-site", "cross-site"), ("origin", "http://localhost:3000")], true),
        (&[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")], false),
        (&[("host", "evil.example")], false),
    ] {
        let (status, _, body) = ask_of(open(), get_with("/fine", headers)).await;
        assert_eq!(status == StatusCode::OK, allowed, "{headers:?} {body}");
        assert!(allowed || code(&body) == "cross_origin", "{body}");
    }
    let elsewhere = [("host", "evil.example"), ("origin", "https://evil.example"), ("via", "1.1 proxy"), ("sec-fetch-site", "cross-site")];
    assert_eq!(ask(get_with("/fine", &elsewhere)).await.0, StatusCode::OK, "a server with credentials has callers to trust");
}

#[tokio::test]
async fn http1_requests_name_one_host() {
    use axum::http::Version;
    let with_hosts = |version: Version, hosts: &[&str]| {
        let request = Request::get("/livez").version(version);
        hosts.iter().fold(request, |request, host| request.header("host", *host)).body(Body::empty()).unwrap()
    };
    for (version, hosts, status) in [
        (Version::HTTP_11, &["localhost"][..], 200),
        (Version::HTTP_11, &[], 400),
        (Version::HTTP_11, &["localhost", "localhost"], 400),
        (Version::HTTP_10, &[], 200),
        (Version::HTTP_2, &[], 200),
    ] {
        let (told, _, body) = ask(with_hosts(version, hosts)).await;
        assert_eq!(told, status, "{version:?} {hosts:?}");
        assert!(status == 200 || code(&body) == "malformed_request", "{body}");
    }
}

#[tokio::test]
async fn more_than_the_limit_in_flight_is_503_but_not_for_probes_and_places_come_back() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _local = metrics::set_default_local_recorder(&recorder);
    let (entered_tx, entered) = oneshot::channel::<()>();
    let (release, released) = oneshot::channel::<()>();
    let ends = Arc::new(std::sync::Mutex::new(Some((entered_tx, released))));
    let hold = async move || {
        let Some((entered, released)) = ends.lock().unwrap().take() else { return };
        entered.send(()).unwrap();
        released.await.unwrap();
    };
    let app = Router::new()
        .route("/hold", get(hold))
        .route("/livez", get(|| async {}))
        .layer(EdgeLayer::new(EdgeConfig { places: places(1), ..EdgeConfig::default() }));
    let held = tokio::spawn(ask_of(app.clone(), get_with("/hold", &[])));
    entered.await.unwrap();
    let (status, headers, body) = ask_of(app.clone(), get_with("/hold", &[])).await;
    assert_eq!((status, code(&body).as_str()), (StatusCode::SERVICE_UNAVAILABLE, "overloaded"));
    assert!(headers.contains_key(header::RETRY_AFTER));
    assert_eq!(ask_of(app.clone(), get_with("/livez", &[])).await.0, StatusCode::OK);
    release.send(()).unwrap();
    assert_eq!(held.await.unwrap().0, StatusCode::OK);
    assert_eq!(ask_of(app.clone(), get_with("/hold", &[])).await.0, StatusCode::OK);
    // A caller who hangs up gives the place back too.
    let app_that_waits = Router::new()
        .route("/hold", get(std::future::pending::<()>))
        .route("/fine", get(|| async {}))
        .layer(EdgeLayer::new(EdgeConfig { places: places(1), ..EdgeConfig::default() }));
    let hung_up = tokio::time::timeout(Duration::from_millis(20), ask_of(app_that_waits.clone(), get_with("/hold", &[]))).await;
    assert!(hung_up.is_err());
    assert_eq!(ask_of(app_that_waits, get_with("/fine", &[])).await.0, StatusCode::OK);
    let metrics = recorder.handle().render();
    assert!(metrics.contains(r#"headmark_http_requests_total{method="GET",route="/hold",status="499"}"#), "{metrics}");
    assert!(metrics.contains("headmark_http_overloaded_total"), "{metrics}");
}

#[tokio::test]
async fn metrics_name_the_route_and_never_the_path() {
    // Handles made before the recorder is installed count nothing.
    let recorder = PrometheusBuilder::new().build_recorder();
    let _local = metrics::set_default_local_recorder(&recorder);
    ask(get_with("/users/31337", &[])).await;
    ask(get_with("/users-31337", &[])).await;
    let own = Request::builder().header("host", "localhost").method("X-31337").uri("/users/1").body(Body::empty()).unwrap();
    ask(own).await;
    let metrics = recorder.handle().render();
    for line in [
        r#"headmark_http_requests_total{method="GET",route="/users/{user}",status="200"}"#,
        r#"route="unmatched",status="404""#,
        r#"method="other",route="/users/{user}",status="405""#,
        r#"headmark_http_request_seconds_count{route="/users/{user}"}"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("31337"), "{metrics}");
    assert!(!metrics.contains(r#"route="/users/{user}",status="499""#), "an answered request counts once\n{metrics}");
}

#[tokio::test]
async fn a_request_that_asks_twice_who_calls_counts_once() {
    use crate::http::auth::{Auth, AuthConfig, Caller, Service as ServiceCaller};
    use crate::http::limit::{Limiter, RateConfig};
    let rate = RateConfig { rate_limit: 1, rate_burst: Some(2), ..RateConfig::default() };
    let auth = Arc::new(Auth::new(&AuthConfig::default(), crate::base::clock::Clock::System).unwrap());
    let app = Router::new()
        .route("/twice", get(async |_: Caller, _: ServiceCaller| ()))
        .with_state(auth)
        .layer(EdgeLayer::new(EdgeConfig { limiter: Limiter::new(&rate), ..EdgeConfig::default() }));
    for status in [200, 200, 429] {
        assert_eq!(ask_of(app.clone(), get_with("/twice", &[])).await.0, status);
    }
}

/// Asks as HTTP/2 does, and leaves the body unread.
async fn unread(app: &Router, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = get_with(path, headers);
    request.extensions_mut().insert(Link(crate::http::watch::Watch::new()));
    app.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn an_answer_keeps_its_place_and_its_callers_share_until_it_is_sent() {
    use crate::http::auth::{Auth, AuthConfig, Caller};
    use crate::http::shares::Bounds;
    let keys = AuthConfig { service_keys: vec!["web:0123456789abcdef".into(), "worker:fedcba9876543210".into()], ..AuthConfig::default() };
    let auth = Arc::new(Auth::new(&keys, crate::base::clock::Clock::System).unwrap());
    let places = PlacesConfig { total: 4, per_caller: Bounds { service: 2, user: 1 }, ..PlacesConfig::default() };
    let app = Router::new()
        .route("/own", get(async |_: Caller| "short"))
        .route("/nothing", get(async |_: Caller| ()))
        .route("/long", get(async || "x".repeat(2000)))
        .route("/short", get(async || "short"))
        .route("/metrics", get(async || "x".repeat(2000)))
        .with_state(auth)
        .layer(EdgeLayer::new(EdgeConfig { places, ..EdgeConfig::default() }));
    let (web, worker) = ([("authorization", "Bearer 0123456789abcdef")], [("authorization", "Bearer fedcba9876543210")]);
    let mut held = vec![unread(&app, "/own", &web).await, unread(&app, "/own", &web).await];
    for _ in 0..3 {
        assert_eq!(unread(&app, "/short", &[]).await.status(), 200, "a short answer to nobody in particular keeps nothing");
    }
    let over = unread(&app, "/own", &web).await;
    assert_eq!((over.status().as_u16(), over.headers()[header::RETRY_AFTER].as_bytes()), (429, b"1".as_slice()));
    drop(over);
    assert_eq!(unread(&app, "/nothing", &worker).await.status(), 200);
    held.push(unread(&app, "/own", &worker).await);
    held.push(unread(&app, "/long", &[]).await);
    assert_eq!(unread(&app, "/own", &worker).await.status(), 503, "all four places are kept");
    held.drain(..2);
    held.push(unread(&app, "/long", &[]).await);
    let third = unread(&app, "/long", &[]).await;
    assert_eq!(third.status(), 503, "callers without credentials keep at most half");
    assert!(third.headers().contains_key(header::RETRY_AFTER) && third.headers().contains_key("x-request-id"));
    let metrics: Vec<_> = futures_util::future::join_all((0..64).map(|_| unread(&app, "/metrics", &[]))).await;
    assert!(metrics.iter().all(|answer| answer.status() == 200), "probes have places of their own");
    assert_eq!(unread(&app, "/metrics", &[]).await.status(), 503, "which are bounded too");
    for headers in [&web, &worker] {
        assert_eq!(unread(&app, "/own", headers).await.status(), 200);
    }
    drop((held, metrics));
    // Read to the end is as good as dropped.
    for _ in 0..10 {
        let answer = unread(&app, "/long", &[]).await;
        assert_eq!((answer.status(), answer.into_body().collect().await.unwrap().to_bytes().len()), (StatusCode::OK, 2000));
    }
}

#[tokio::test]
async fn a_long_answer_over_http1_keeps_its_place_too() {
    let app = Router::new().route("/long", get(async || vec![0_u8; 20_000])).layer(EdgeLayer::new(EdgeConfig {
        places: places(2),
        compression: false,
        ..EdgeConfig::default()
    }));
    let ask = async || app.clone().oneshot(get_with("/long", &[])).await.unwrap();
    let first = ask().await;
    assert_eq!((first.status().as_u16(), ask().await.status().as_u16()), (200, 503), "half of two places is one");
    drop(first);
    assert_eq!(ask().await.status(), 200);
}

#[tokio::test]
async fn probes_that_wait_take_no_place_from_others_and_metrics_are_bounded_before_their_work() {
    let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let wait = async move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let app = Router::new()
        .route("/readyz", get(std::future::pending::<()>))
        .route("/metrics", get(wait))
        .route("/fine", get(|| async {}))
        .layer(EdgeLayer::new(EdgeConfig { places: places(1), ..EdgeConfig::default() }));
    let waiting = |path: &str, count: usize| {
        let all = (0..count).map(|_| tokio::spawn(app.clone().oneshot(get_with(path, &[]))));
        all.collect::<Vec<_>>()
    };
    let looks = waiting("/readyz", 100);
    let renders = waiting("/metrics", 100);
    tokio::time::timeout(Duration::from_secs(10), async {
        while renders.iter().filter(|render| render.is_finished()).count() < 36 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("those for which there is no place are refused");
    assert_eq!(begun.load(std::sync::atomic::Ordering::Relaxed), 64, "what is refused takes no work");
    assert!(looks.iter().all(|look| !look.is_finished()), "the others are few and short");
    assert_eq!(ask_of(app.clone(), get_with("/fine", &[])).await.0, StatusCode::OK, "the one place is free");
    for render in renders {
        render.abort();
        let answered = render.await;
        assert!(answered.is_err() || answered.unwrap().unwrap().status() == StatusCode::SERVICE_UNAVAILABLE);
    }
    let again = waiting("/metrics", 1).remove(0);
    while begun.load(std::sync::atomic::Ordering::Relaxed) < 65 {
        tokio::task::yield_now().await;
    }
    again.abort();
    looks.into_iter().for_each(|look| look.abort());
}

/// A request whose body comes in these pieces, and then no further until it is dropped.
fn post_in_pieces(pieces: Vec<usize>, ends: bool) -> Request {
    use futures_util::{StreamExt as _, stream};
    let pieces = stream::iter(pieces).map(|length| Ok::<_, std::io::Error>(axum::body::Bytes::from(vec![b' '; length])));
    let body = if ends { Body::from_stream(pieces) } else { Body::from_stream(pieces.chain(stream::pending())) };
    let request = Request::post("/body").header("host", "localhost").header("content-type", "application/json");
    request.body(body).unwrap()
}

#[tokio::test]
async fn the_bodies_of_all_requests_together_are_bounded_and_give_back() {
    use crate::http::body::{Body as JsonBody, NoFields};
    let recorder = PrometheusBuilder::new().build_recorder();
    let _local = metrics::set_default_local_recorder(&recorder);
    let config = EdgeConfig {
        places: PlacesConfig { body_bytes: 10_000, ..PlacesConfig::default() },
        body_rules: BodyRules { limit_bytes: 8_000, timeout: Duration::from_secs(60) },
        ..EdgeConfig::default()
    };
    let layer = EdgeLayer::new(config);
    let held = || layer.shared.places.body_bytes_held();
    let release = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&release);
    let app = Router::new()
        .route("/body", post(async |_: JsonBody<NoFields>| ()))
        .route("/handled", post(async move |_: JsonBody<serde_json::Value>| waiting.notified().await))
        .layer(layer.clone());
    let ask = async |request| ask_of(app.clone(), request).await;
    let start = |request: Request| tokio::spawn(ask_of(app.clone(), request));
    // Blanks are no JSON, so a body that was read is told so.
    let whole = || post_in_pieces(vec![1_000, 3_000], true);
    assert_eq!(code(&ask(whole()).await.2), "malformed_json");
    assert_eq!(held(), 0, "an answered request holds nothing");
    let slow = start(post_in_pieces(vec![2_500, 4_500], false));
    tokio::task::yield_now().await;
    assert_eq!(held(), 7_000, "what has come of it");
    let (status, headers, body) = ask(whole()).await;
    assert_eq!((status.as_u16(), code(&body).as_str(), headers[header::RETRY_AFTER].as_bytes()), (503, "overloaded", b"1".as_slice()));
    assert_eq!(held(), 7_000, "what was refused holds no part");
    assert_eq!(code(&ask(post_in_pieces(vec![3_000], true)).await.2), "malformed_json", "the rest of the room");
    assert_eq!(code(&ask(post_in_pieces(vec![2_000, 7_000], true)).await.2), "body_too_large", "trying again would not help");
    assert_eq!(held(), 7_000);
    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    assert_eq!(held(), 0, "a caller who hangs up gives back");
    assert_eq!(code(&ask(whole()).await.2), "malformed_json");
    // What the handler made of it is in memory until it answers.
    let json = Request::post("/handled").header("host", "localhost").header("content-type", "application/json");
    let handled = start(json.body(Body::from(format!("{{\"a\":[{}1]}}", "0,".repeat(3_000)))).unwrap());
    tokio::task::yield_now().await;
    assert!(held() > 6_000);
    assert_eq!(ask(whole()).await.0, 503);
    release.notify_one();
    assert_eq!(handled.await.unwrap().0, 200);
    assert_eq!(held(), 0);
    let metrics = recorder.handle().render();
    assert!(metrics.contains("headmark_http_bodies_refused_total 2") && metrics.contains("headmark_http_overloaded_total 2"), "{metrics}");
}
