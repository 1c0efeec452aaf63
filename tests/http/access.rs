//! Who may call what, and where a server without credentials stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headmark::base::clock::Clock;
use reqwest::Method;
use serde_json::json;

use crate::both_tiers;
use crate::support::{Client, JWT_SECRET, Process, Tier, World, refusal, run};

const CREDENTIALS: [&str; 4] = ["--service-keys", "web:s3cret-of-the-suite,bare-secret-of-the-suite", "--jwt-secret", JWT_SECRET];

const SERVICE_ONLY: [&str; 4] =
    ["/v1/users/42/badges/mention/increment", "/v1/users/42/badges/mention/retract", "/v1/badges/increment", "/v1/badges/query"];

both_tiers! {
    async fn a_service_key_may_do_everything(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        for secret in ["s3cret-of-the-suite", "bare-secret-of-the-suite"] {
            let service = node.client.with_bearer(secret);
            service.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
            service.post("/v1/badges/increment", &json!({"items": [{"user_id": 7, "badge": "like"}]})).await.ok();
            service.post("/v1/badges/query", &json!({"user_ids": [42]})).await.ok();
            service.post("/v1/users/42/badges/mention/retract", &json!({})).await.ok();
            service.post("/v1/users/42/badges/mention/reset", &json!({})).await.ok();
            service.post("/v1/users/42/badges/reset", &json!({})).await.ok();
            service.summary(42).await;
            service.get("/v1/users/me/badges").await.problem(403, "forbidden");
        }
        node.stop().await;
    }

    async fn a_user_reads_and_resets_what_is_its_own(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        node.service().post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        let alice = node.user(42);
        assert_eq!(alice.get("/v1/users/me/badges").await.ok(), alice.summary(42).await);
        let tag = alice.get("/v1/users/me/badges").await.header("etag").to_owned();
        assert_eq!(node.service().get_if_changed("/v1/users/42/badges", &tag).await.status, 304, "one tag for every token");
        let reset = alice.post("/v1/users/me/badges/mention/reset", &json!({"up_to": 2})).await.ok();
        assert_eq!(reset["unread"], 1);
        assert_eq!(alice.post("/v1/users/me/badges/reset", &json!({})).await.ok()["user_id"], "42");
        assert_eq!(alice.post("/v1/users/42/badges/reset", &json!({})).await.ok()["total"], 0);
        node.stop().await;
    }

    async fn a_user_reaches_nobody_else_and_no_service_route(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        service.post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        let mallory = node.user(43);
        mallory.get("/v1/users/42/badges").await.problem(403, "forbidden");
        mallory.get("/v1/users/42/badges?wait=60").await.problem(403, "forbidden");
        mallory.post("/v1/users/42/badges/mention/reset", &json!({})).await.problem(403, "forbidden");
        mallory.post("/v1/users/42/badges/reset", &json!({})).await.problem(403, "forbidden");
        let alice = node.user(42);
        for path in SERVICE_ONLY {
            alice.post(path, &json!({})).await.problem(403, "forbidden");
        }
        assert_eq!(service.summary(42).await["total"], 3);
        node.stop().await;
    }

    async fn without_good_credentials_it_is_401_whatever_is_asked(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let other = headmark::http::auth::AuthConfig { jwt_secret: Some("another-secret-of-at-least-32-bytes".to_owned().into()), ..Default::default() };
        let forged = headmark::http::auth::Auth::new(&other, Clock::System).unwrap();
        let forged = forged.user_token(42.try_into().unwrap(), Duration::from_secs(60)).unwrap();
        let good = node.app.state().auth.user_token(42.try_into().unwrap(), Duration::from_secs(60)).unwrap();
        let (head, _signature) = good.rsplit_once('.').unwrap();
        let headers = [
            None,
            Some("Bearer wrong".to_owned()),
            Some("Bearer web:s3cret-of-the-suite".to_owned()),
            Some("Bearer ".to_owned()),
            Some("Basic d2ViOnMzY3JldA==".to_owned()),
            Some("s3cret-of-the-suite".to_owned()),
            Some(format!("Bearer {forged}")),
            Some(format!("Bearer {head}.")),
            Some(format!("Bearer {good}x")),
        ];
        for header in headers {
            for (method, path) in [(Method::GET, "/v1/users/42/badges"), (Method::GET, "/v1/users/nonsense/badges"), (Method::GET, "/v1/users/me/badges")]
                .into_iter()
                .chain(SERVICE_ONLY.map(|path| (Method::POST, path)))
            {
                let mut request = node.client.request(method, path);
                if let Some(header) = &header {
                    request = request.header("authorization", header);
                }
                let reply = Client::send(request).await;
                assert_eq!(reply.header("www-authenticate"), "Bearer", "{header:?} {path}");
                reply.problem(401, "unauthorized");
            }
        }
        node.stop().await;
    }

    async fn a_token_ends_at_its_time(world: World) {
        let clock = Arc::new(AtomicI64::new(1_769_851_800_000));
        let node = world.node_at(&clock, &CREDENTIALS).await;
        let alice = node.user(42);
        clock.fetch_add(3_600_000 - 1000, Ordering::Relaxed);
        alice.summary(42).await;
        // Half a minute of grace for clocks that differ.
        clock.fetch_add(31_000, Ordering::Relaxed);
        alice.get("/v1/users/42/badges").await.problem(401, "unauthorized");
        node.stop().await;
    }

    async fn probes_and_documents_need_no_credentials(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        for path in ["/livez", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/", "/console/", "/console/console.js"] {
            assert_eq!(node.client.get(path).await.status, 200, "{path}");
        }
        node.stop().await;
    }

    async fn an_open_server_refuses_pages_of_other_origins_and_rebound_names(world: World) {
        let node = world.node().await;
        let increment = "/v1/users/42/badges/mention/increment";
        for (header, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost.evil.example"),
            ("host", "evil.example"),
            ("host", "192.168.1.7:8080"),
        ] {
            for (method, path) in [(Method::POST, increment), (Method::GET, "/v1/users/42/badges"), (Method::GET, "/metrics")] {
                let reply = Client::send(node.client.request(method, path).header(header, value)).await;
                reply.problem(403, "cross_origin");
            }
        }
        assert_eq!(node.client.summary(42).await["revision"], 1, "the enrolment");
        for (header, value) in [("origin", "http://localhost:3000"), ("origin", "http://127.0.0.1:8080"), ("host", "localhost")] {
            Client::send(node.client.request(Method::POST, increment).header(header, value)).await.ok();
        }
        node.stop().await;
    }
}

#[tokio::test]
async fn the_command_line_makes_credentials_that_work() {
    let world = World::new(Tier::Embedded).await;
    let text = |output: std::process::Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let key = text(run(&["token", "--service", "web"], &[]).await);
    let (name, secret) = key.split_once(':').unwrap();
    assert_eq!((name, secret.len()), ("web", 32));
    let node = world.node_with(&["--service-keys", &key, "--jwt-secret", JWT_SECRET]).await;
    node.client.with_bearer(secret).post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
    let token = text(run(&["token", "--user", "42", "--ttl", "1h"], &[("HEADMARK_JWT_SECRET", JWT_SECRET)]).await);
    assert_eq!(node.client.with_bearer(&token).get("/v1/users/me/badges").await.ok()["total"], 1);
    let why = refusal(&["token", "--user", "42"], &[]).await;
    assert!(why.contains("HEADMARK_JWT_SECRET (HS256), which is not set"), "{why}");
    for (variable, value) in [("HEADMARK_JWT_PUBLIC_KEY", "key.pem"), ("HEADMARK_JWKS", "keys.json")] {
        let why = refusal(&["token", "--user", "42"], &[(variable, value), ("HEADMARK_JWT_SECRET", "")]).await;
        assert!(why.contains("signs with HEADMARK_JWT_SECRET (HS256), which is not set") && why.contains("your private key"), "{why}");
    }
    node.stop().await;
}

#[tokio::test]
async fn without_credentials_it_listens_on_loopback_only() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.to_str().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"] {
        let why = refusal(&["--data-dir", dir, "--listen", address], &[]).await;
        assert!(why.contains("without credentials") && why.contains("HEADMARK_SERVICE_KEYS"), "{why}");
    }
    let nothing =
        ["HEADMARK_SERVICE_KEYS", "HEADMARK_JWT_SECRET", "HEADMARK_JWT_PUBLIC_KEY", "HEADMARK_JWKS"].map(|variable| (variable, ""));
    let empty = refusal(&["--data-dir", dir, "--listen", "0.0.0.0:0"], &nothing).await;
    assert!(empty.contains("without credentials"), "an empty setting is none: {empty}");
    let args: Vec<String> = ["--data-dir", dir, "--listen", "0.0.0.0:0"].map(String::from).into();
    let node = Process::start(&args, &[("HEADMARK_SERVICE_KEYS", "web:s3cret-of-the-suite")]).await;
    let client = Client::new(&node.base.replace("0.0.0.0", "127.0.0.1"));
    client.get("/v1/users/42/badges").await.problem(401, "unauthorized");
    client.with_bearer("s3cret-of-the-suite").summary(42).await;
}

#[tokio::test]
async fn bad_credentials_in_the_settings_are_refused_without_being_shown() {
    let world = World::new(Tier::Embedded).await;
    for (keys, jwt, says) in [
        ("web:", JWT_SECRET, "the secret is empty"),
        ("Web Site:s3cret-of-the-suite", JWT_SECRET, "the name must have 1 to 64 characters"),
        ("open:s3cret-of-the-suite", JWT_SECRET, "taken by the server without credentials"),
        ("web:s3cret-of-the-suite,worker:s3cret-of-the-suite", JWT_SECRET, "the same secret is there twice"),
        ("web:s3cret-of-the-suite", "too-short-hush", "shorter than 32 bytes"),
    ] {
        let why = world.try_node(&["--service-keys", keys, "--jwt-secret", jwt], Clock::System).await.unwrap_err();
        assert!(why.contains(says) && !why.contains("of-the-suite") && !why.contains("hush"), "{why}");
    }
}

#[tokio::test]
async fn redis_without_postgres_is_refused() {
    let world = World::without_tables(Tier::Embedded).await;
    let why = refusal(&["--data-dir", world.dir.to_str().unwrap()], &[("REDIS_URL", "redis://127.0.0.1:6379")]).await;
    assert!(why.contains("REDIS_URL is set but DATABASE_URL is not"), "{why}");
    assert!(!world.dir.join("headmark.sqlite").exists(), "nothing was made");
}

#[tokio::test]
async fn another_database_is_not_taken_for_postgres() {
    let url = World::new(Tier::Server).await.database_url.replace("postgres://", "mysql://");
    let why = refusal(&["--listen", "127.0.0.1:0", "--database-url", &url], &[]).await;
    assert!(why.contains("DATABASE_URL is not a valid postgres:// URL") && !why.contains(&url), "{why}");
}

/// A key that was never seen, or half a document, must not look like success.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_a_failure() {
    for command in [&["openapi"][..], &["token", "--service", "web"]] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let ran = std::process::Command::new(env!("CARGO_BIN_EXE_headmark")).args(command).stdout(full).output().unwrap();
        let why = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && why.contains("cannot write to standard output"), "{command:?}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_folder_takes_one_node() {
    let world = World::new(Tier::Embedded).await;
    let node = world.node().await;
    let why = world.try_node(&[], Clock::System).await.unwrap_err();
    assert!(why.contains("another headmark is using the data folder"), "{why}");
    node.client.summary(42).await;
    node.stop().await;
    world.node().await.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_without_redis_takes_one_node() {
    let world = World::new(Tier::Server).await;
    let args: Vec<String> = ["--listen", "127.0.0.1:0", "--database-url", &world.database_url].map(String::from).into();
    let mut alone = Process::start(&args, &[]).await;
    alone.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
    let second = refusal(&args.iter().map(String::as_str).collect::<Vec<_>>(), &[]).await;
    assert!(second.contains("another node uses this database") && second.contains("REDIS_URL"), "{second}");
    let with_redis = world.try_node(&[], Clock::System).await.unwrap_err();
    assert!(with_redis.contains("a node without Redis holds this database"), "{with_redis}");
    alone.terminate();
    assert!(alone.ended().await.success());
    let node = world.node().await;
    assert_eq!(node.client.summary(42).await["total"], 1);
    node.stop().await;
}
