//! Callers who take more than their part: closed windows, many waits, many requests at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use h2::RecvStream;
use h2::client::{Connection, ResponseFuture};
use headmark::base::clock::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::both_tiers;
use crate::support::wire::Wire;
use crate::support::{CREDENTIALS, Client, JWT_SECRET, Process, eventually, eventually_within};

const SUMMARY: &str = "/v1/users/42/badges";

/// Connections of a caller who does not receive, each with as many requests as the server takes.
const CONNECTIONS: usize = 20;
const REQUESTS: usize = 100;

/// What all of them together may cost: 2000 answers of half a megabyte and their compressors would
/// be more than a gigabyte.
const MEMORY_BYTES: u64 = 64 * 1024 * 1024;

/// Polls that wait for one user's inbox. The page of all of them would be 300 MB.
const HELD: u32 = 50;

/// What is long and needs no credentials.
const LONG: [&str; 3] = ["/docs/swagger-ui-bundle.js", "/openapi.json", "/docs/swagger-ui.css"];

const KEYS: [&str; 2] = ["--service-keys", "web:0123456789abcdef,worker:fedcba9876543210"];
const JWT: [&str; 2] = ["--jwt-secret", JWT_SECRET];

fn authority(base: &str) -> &str {
    base.strip_prefix("http://").unwrap()
}

/// A caller with HTTP/2 windows of this size that asks for what is long.
struct Greedy {
    /// Whether it goes on reading frames; else it leaves even its socket unread.
    connection: Option<Connection<TcpStream, Bytes>>,
    _answers: Vec<ResponseFuture>,
    _bodies: Vec<RecvStream>,
}

impl Greedy {
    async fn start(base: &str, window: u32, reads: bool) -> Self {
        let stream = TcpStream::connect(authority(base)).await.unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(window.max(65_535));
        let (client, mut connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
        let ask = async {
            let (mut answers, mut bodies) = (Vec::new(), Vec::new());
            for at in 0..REQUESTS {
                let request = hyper::Request::get(format!("{base}{}", LONG[at % LONG.len()])).header("accept-encoding", "zstd");
                let (answer, _) = client.clone().ready().await.unwrap().send_request(request.body(()).unwrap(), true).unwrap();
                answers.push(answer);
            }
            if reads {
                for answer in answers.drain(..) {
                    bodies.push(answer.await.unwrap().into_body());
                }
            }
            (answers, bodies)
        };
        let (answers, bodies) = tokio::select! {
            asked = ask => asked,
            ended = &mut connection => panic!("the server closed it: {ended:?}"),
        };
        Self { connection: Some(connection), _answers: answers, _bodies: bodies }
    }

    /// Goes on answering PINGs, as a client that is alive does.
    fn go_on(&mut self) -> tokio::task::JoinHandle<Result<(), h2::Error>> {
        tokio::spawn(self.connection.take().unwrap())
    }
}

/// The status and body of an answer over a connection of its own, read to its end.
async fn asked(node: &Process, path: &str) -> u16 {
    node.client.get(path).await.status.as_u16()
}

/// A poll that waits, and its entity tag.
async fn wait(client: &Client, path: &str) -> tokio::task::JoinHandle<crate::support::Reply> {
    let tag = client.get(path).await.header("etag").to_owned();
    let poll = client.request(Method::GET, &format!("{path}?wait=60")).header("if-none-match", tag);
    tokio::spawn(Client::send(poll))
}

both_tiers! {
    async fn callers_who_do_not_receive_cost_no_memory_and_lose_their_connections(world: World) {
        let node = world.process(&["--max-in-flight", "40", "--waiting-polls", "20", "--send-timeout-ms", "5000", "--header-timeout-ms", "5000"], &[]).await;
        for path in LONG {
            assert_eq!(asked(&node, path).await, 200);
        }
        let before = node.memory_bytes();
        for (window, reads) in [(0, true), (1, true), (1 << 30, false)] {
            let mut callers = Vec::new();
            for _ in 0..CONNECTIONS {
                callers.push(Greedy::start(&node.base, window, reads).await);
            }
            let grown = node.memory_bytes().saturating_sub(before);
            assert!(grown < MEMORY_BYTES, "window {window}: {grown} bytes more in use");
            // Who has credentials is served all the same; on an open server that is everybody.
            assert_eq!(asked(&node, SUMMARY).await, 200, "window {window}");
            let left: Vec<_> = callers.iter_mut().filter(|_| reads).map(Greedy::go_on).collect();
            if !reads {
                // The system's own buffers take what these were sent, so the server has nothing to
                // wait for.
                callers.clear();
            }
            let connections = async || node.client.metric("headmark_http_connections").await;
            eventually_within(30, "only the connections of this test's own client are left", async || connections().await < 5.0).await;
            for caller in left {
                caller.await.unwrap().ok();
            }
            eventually("the places are free again", async || asked(&node, "/docs/swagger-ui-bundle.js").await == 200).await;
        }
    }

    async fn one_caller_cannot_take_all_places_to_wait(world: World) {
        let bounds = ["--waiting-polls", "6", "--waiting-polls-per-service", "3", "--waiting-polls-per-user", "2"];
        let node = world.node_with(&[&KEYS[..], &JWT, &bounds].concat()).await;
        let (web, alice) = (node.client.with_bearer("0123456789abcdef"), node.user(43));
        // Her first poll enrols her, which changes what she is shown.
        alice.get("/v1/users/me/badges").await.ok();
        let waiting = async || node.client.metric("headmark_polls_waiting").await;
        let refused = async || node.client.metric(r#"headmark_http_caller_limited_total{what="waiting"}"#).await;
        assert_eq!(refused().await, 0.0);
        let mut held = Vec::new();
        for (caller, path, most) in [(&web, SUMMARY, 3), (&alice, "/v1/users/me/badges", 2)] {
            let before = waiting().await;
            for _ in 0..most {
                held.push(wait(caller, path).await);
            }
            eventually("they wait", async || waiting().await == before + f64::from(most)).await;
            let over = wait(caller, path).await.await.unwrap();
            assert_eq!(over.header("retry-after"), "1");
            over.problem(429, "rate_limited");
            assert_eq!(caller.get(path).await.status, 200, "who does not ask to wait is answered");
        }
        web.get("/v1/events?after=0&wait=60").await.problem(429, "rate_limited");
        // One place is left, for another caller.
        let worker = node.client.with_bearer("fedcba9876543210");
        held.push(wait(&worker, SUMMARY).await);
        eventually("it waits", async || waiting().await == 6.0).await;
        for id in [42, 43] {
            worker.post(&format!("/v1/users/{id}/badges/mention/increment"), &json!({})).await.ok();
        }
        for poll in held {
            assert_eq!(poll.await.unwrap().status, 200);
        }
        eventually("nobody waits", async || waiting().await == 0.0).await;
        assert_eq!(refused().await, 3.0);
        node.stop().await;
    }

    async fn one_caller_cannot_take_all_places_in_flight(world: World) {
        let bounds = ["--max-in-flight", "12", "--waiting-polls", "11", "--max-in-flight-per-service", "5", "--max-in-flight-per-user", "2"];
        let node = world.node_with(&[&KEYS[..], &JWT, &bounds].concat()).await;
        let (web, alice) = (node.client.with_bearer("0123456789abcdef"), node.user(43));
        // Her first poll enrols her, which changes what she is shown.
        alice.get("/v1/users/me/badges").await.ok();
        let waiting = async || node.client.metric("headmark_polls_waiting").await;
        let mut held = Vec::new();
        for (caller, path, most) in [(&web, SUMMARY, 5), (&alice, "/v1/users/me/badges", 2)] {
            let before = waiting().await;
            for _ in 0..most {
                held.push(wait(caller, path).await);
            }
            eventually("they are in flight", async || waiting().await == before + f64::from(most)).await;
            let over = caller.get(path).await;
            assert_eq!(over.header("retry-after"), "1");
            over.problem(429, "rate_limited");
        }
        web.post("/v1/users/42/badges/mention/increment", &json!({})).await.problem(429, "rate_limited");
        assert_eq!(node.user(44).get("/v1/users/me/badges").await.status, 200, "another user");
        let worker = node.client.with_bearer("fedcba9876543210");
        for id in [42, 43] {
            worker.post(&format!("/v1/users/{id}/badges/mention/increment"), &json!({})).await.ok();
        }
        for poll in held {
            assert_eq!(poll.await.unwrap().status, 200);
        }
        eventually("its places are back", async || web.get(SUMMARY).await.status == 200).await;
        node.stop().await;
    }

    async fn heavy_writes_of_one_user_keep_nobody_out(world: World) {
        // Room for two of the heavy ones, and time for all of them one after the other.
        let bounds = ["--lane-queue", "4000", "--lanes", "1", "--write-timeout-ms", "80000"];
        let node = world.node_with(&[&CREDENTIALS[..], &bounds[..]].concat()).await;
        // None of these chats is there, which shows only once it is its turn.
        let chats: Value = (1..=1000).map(|id| (id.to_string(), json!(0))).collect::<serde_json::Map<_, _>>().into();
        let body = json!({"up_to": {"groups": chats, "directs": chats}});
        let (heavy, light) = (node.user(1), node.user(2));
        let over = Arc::new(AtomicBool::new(false));
        let loops = (0..8).map(|_| {
            let (heavy, body, over) = (heavy.clone(), body.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut statuses = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    statuses.push(heavy.post("/v1/users/me/chats/read", &body).await.status.as_u16());
                }
                statuses
            })
        });
        let loops: Vec<_> = loops.collect();
        // A slow machine needs longer for as many.
        let (began, mut written) = (tokio::time::Instant::now(), 0);
        while (written < 20 || began.elapsed() < Duration::from_secs(3)) && began.elapsed() < Duration::from_secs(120) {
            light.post("/v1/users/me/badges/mention/reset", &json!({})).await.ok();
            written += 1;
        }
        over.store(true, Ordering::SeqCst);
        assert!(written >= 20, "{written}");
        for ended in loops {
            let statuses = ended.await.unwrap();
            assert!(!statuses.is_empty() && !statuses.contains(&503), "they wait for each other: {statuses:?}");
        }
        node.stop().await;
    }

    async fn one_user_cannot_take_all_the_room_for_bodies(world: World) {
        let bounds = ["--body-limit-bytes", "200000", "--max-body-bytes-in-flight", "4800000"];
        let node = world.node_with(&[&CREDENTIALS[..], &bounds[..]].concat()).await;
        let (one, other) = (node.user(1), node.user(2));
        let long = format!("{}{{}}", " ".repeat(150_000));
        let write = async |client: &Client| {
            let request = client.request(Method::POST, "/v1/users/me/badges/mention/reset").header("content-type", "application/json");
            Client::send(request.body(long.clone())).await
        };
        // A body that comes no further.
        let token = node.app.state().auth.user_token(1.try_into().unwrap(), Duration::from_secs(3600)).unwrap();
        let start = async || {
            let mut stream = TcpStream::connect(authority(&node.base)).await.unwrap();
            let head = "POST /v1/users/me/chats/read HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 190001\r\n";
            stream.write_all(format!("{head}authorization: Bearer {token}\r\n\r\n").as_bytes()).await.unwrap();
            stream.write_all(&[b' '; 190_000]).await.unwrap();
            stream
        };
        // It is read beside this test. Where that begins late, it is the one that is refused.
        let mut held = None;
        eventually("it has its part", async || {
            drop(held.take());
            held = Some(start().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
            write(&one).await.status == 429
        })
        .await;
        let refused = write(&one).await;
        assert_eq!(refused.header("retry-after"), "1");
        refused.problem(429, "rate_limited");
        assert_eq!(write(&other).await.status, 200, "others have theirs");
        assert_eq!(one.post("/v1/users/me/badges/mention/reset", &json!({})).await.status, 200, "short ones go on");
        drop(held);
        eventually("who hangs up gives back", async || write(&one).await.status == 200).await;
        node.stop().await;
    }

    async fn long_bodies_keep_each_other_out_and_nothing_else(world: World) {
        let bounds = ["--body-limit-bytes", "200000", "--max-body-bytes-in-flight", "300000"];
        let node = world.node_with(&bounds).await;
        let start = async || {
            let mut stream = TcpStream::connect(authority(&node.base)).await.unwrap();
            let head = "POST /v1/users/42/chats/read HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 190001\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&[b' '; 190_000]).await.unwrap();
            stream
        };
        let long = format!("{}{{}}", " ".repeat(150_000));
        let write = async || {
            let request = node.client.request(Method::POST, "/v1/users/42/badges/mention/increment").header("content-type", "application/json");
            Client::send(request.body(long.clone())).await
        };
        // Its body is read beside this test. Where that begins late, it is the one that is refused.
        let mut held = None;
        eventually("there is no room", async || {
            drop(held.take());
            held = Some(start().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
            write().await.status == 503
        })
        .await;
        let refused = write().await;
        assert_eq!(refused.header("retry-after"), "1");
        refused.problem(503, "overloaded");
        node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok();
        assert_eq!(node.client.get(SUMMARY).await.status, 200);
        drop(held);
        eventually("who hangs up gives back", async || write().await.status == 200).await;
        node.stop().await;
        let why = world.try_node(&["--max-body-bytes-in-flight", "1000"], Clock::System).await.unwrap_err();
        assert!(why.contains("HEADMARK_MAX_BODY_BYTES_IN_FLIGHT must be at least HEADMARK_BODY_LIMIT_BYTES"), "{why}");
    }

    async fn a_bound_of_one_caller_that_is_not_below_the_total_is_refused(world: World) {
        for (bound, total) in [
            (["--max-in-flight-per-service", "10000"], "HEADMARK_MAX_IN_FLIGHT"),
            (["--max-in-flight-per-user", "20000"], "HEADMARK_MAX_IN_FLIGHT"),
            (["--waiting-polls-per-service", "5000"], "HEADMARK_WAITING_POLLS"),
            (["--waiting-polls-per-user", "5001"], "HEADMARK_WAITING_POLLS"),
        ] {
            let why = world.try_node(&bound, Clock::System).await.unwrap_err();
            assert!(why.contains(&format!("must be below {total}")), "{why}");
        }
    }

    async fn polls_of_an_inbox_wait_without_its_items_and_without_the_database(world: World) {
        let node = world.process(&[], &[]).await;
        let client = &node.client;
        for n in 0..100 {
            let body = json!({"sender_id": 42, "client_id": n.to_string(), "content": "\u{1}".repeat(10_000)});
            client.post("/v1/users/42/inbox", &body).await.ok();
        }
        // Who looks at the group has its head in memory.
        client.put("/v1/groups/9", &json!({})).await.ok();
        client.put("/v1/groups/9/members/7", &json!({})).await.ok();
        client.get("/v1/users/7/chats").await.ok();
        let statements_of_posts = async |round: usize| {
            let before = client.metric("headmark_database_statements_total").await;
            for n in 0..12 {
                let body = json!({"sender_id": 7, "client_id": format!("{round}-{n}"), "content": "x"});
                client.post("/v1/groups/9/messages", &body).await.ok();
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            client.metric("headmark_database_statements_total").await - before
        };
        let path = "/v1/users/42/inbox?limit=100";
        let page = client.get(path).await;
        assert!(page.text.len() > 5_000_000, "{}", page.text.len());
        let (alone, before) = (statements_of_posts(1).await, node.memory_bytes());
        let mut held = Vec::new();
        for waiting in 1..=HELD {
            let poll = client.request(Method::GET, &format!("{path}&wait=60")).header("if-none-match", page.header("etag"));
            held.push(tokio::spawn(Client::send(poll)));
            // One after the other, as each reads the page once.
            eventually("it waits", async || client.metric("headmark_polls_waiting").await == f64::from(waiting)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let with_polls = statements_of_posts(2).await;
        let grown = node.memory_bytes().saturating_sub(before);
        assert!(grown < MEMORY_BYTES, "{grown} bytes more in use");
        assert!(with_polls < alone + f64::from(HELD), "{with_polls} statements, and {alone} without polls");
        // One of them, as a machine with much else to do may not read so large a page for all of them in time.
        let last = held.pop().unwrap();
        held.iter().for_each(tokio::task::JoinHandle::abort);
        client.post("/v1/users/42/inbox", &json!({"sender_id": 42, "client_id": "last", "content": "x"})).await.ok();
        assert_eq!(last.await.unwrap().ok()["has_more"], true);
    }

    #[cfg(target_os = "linux")]
    async fn a_full_disk_under_the_log_ends_nothing(world: World) {
        let args: Vec<String> = world.args().into_iter().skip(1).chain(["--log", "trace"].map(String::from)).collect();
        let node = Process::start_after("true", &args, &[], std::path::Path::new("/dev/full")).await;
        for head in 1..=20 {
            assert_eq!(node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.ok()["head"], head);
        }
        node.client.get("/v1/users/0/badges").await.problem(400, "invalid_path");
        assert_eq!(node.client.get("/readyz").await.status, 200);
        assert!(node.client.metric("headmark_log_lines_lost_total").await > 0.0);
    }

    async fn a_node_whose_lane_has_ended_is_not_ready_and_asks_for_a_restart(world: World) {
        let node = world.process(&[], &[("FAILPOINTS", "lane::outside_of_a_batch=3*off->panic")]).await;
        assert_eq!(node.client.get("/readyz").await.status, 200);
        let write = async || node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.status.as_u16();
        eventually("the lane ends", async || write().await != 200).await;
        eventually("it says so", async || node.client.get("/readyz").await.status == 503).await;
        let ready = node.client.get("/readyz").await;
        assert_eq!((ready.body["node"].as_str(), ready.header("retry-after")), (Some("failed"), "1"));
        for path in ["/livez", "/healthz"] {
            let dead = node.client.get(path).await;
            assert_eq!((dead.status.as_u16(), &dead.body), (503, &json!({"status": "failed"})), "only a restart helps");
        }
        node.client.post("/v1/users/42/badges/mention/increment", &json!({})).await.problem(503, "shutting_down");
    }

    #[cfg(target_os = "linux")]
    async fn the_limit_on_open_files_is_raised_for_the_connections(world: World) {
        let log = world.dir.join("log");
        let args: Vec<String> = world.args().into_iter().skip(1).collect();
        let allowed = |node: &Process| {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", node.id())).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
            line.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap()
        };
        let more = [args.as_slice(), &["--max-connections", "1000"].map(String::from)].concat();
        let mut node = Process::start_after("ulimit -Sn 400", &more, &[], &log).await;
        assert!(allowed(&node) >= 1000, "{}", allowed(&node));
        node.kill().await;
        assert!(!std::fs::read_to_string(&log).unwrap().contains("HEADMARK_MAX_CONNECTIONS"));
        let node = Process::start_after("ulimit -n 400", &more, &[], &log).await;
        assert_eq!(allowed(&node), 400);
        assert!(std::fs::read_to_string(&log).unwrap().contains("HEADMARK_MAX_CONNECTIONS"), "it warns");
    }

    async fn a_request_of_http1_needs_one_host(world: World) {
        use tokio::io::AsyncReadExt as _;
        let node = world.node().await;
        for (hosts, status) in [("", 400), ("host: localhost\r\n", 200), ("host: localhost\r\nhost: localhost\r\n", 400)] {
            let mut stream = TcpStream::connect(authority(&node.base)).await.unwrap();
            let request = format!("GET /livez HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{hosts:?}: {text}");
            assert!(status == 200 || text.contains("\"malformed_request\""), "{text}");
        }
        node.stop().await;
    }

    async fn an_open_server_takes_nothing_from_proxies_and_other_sites(world: World) {
        let node = world.node().await;
        let with = async |name: &str, value: &str| {
            Client::send(node.client.request(Method::POST, "/v1/users/42/badges/mention/increment").header(name, value)).await
        };
        for (name, value) in [
            ("forwarded", "for=192.0.2.60"),
            ("x-forwarded-for", "192.0.2.60"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "192.0.2.60"),
            ("via", "1.1 proxy"),
            ("sec-fetch-site", "cross-site"),
        ] {
            with(name, value).await.problem(403, "cross_origin");
        }
        assert_eq!(with("sec-fetch-site", "same-origin").await.ok()["head"], 1, "nothing was changed before");
        node.stop().await;
        let node = world.node_with(&KEYS).await;
        let asked = node.client.with_bearer("0123456789abcdef").request(Method::GET, SUMMARY).header("x-forwarded-for", "192.0.2.60");
        assert_eq!(Client::send(asked).await.status, 200, "with credentials it may stand behind a proxy");
        node.stop().await;
    }

    async fn a_rolling_restart_loses_no_request_of_kept_alive_connections(world: World) {
        let mut args: Vec<String> = world.args().into_iter().skip(1).collect();
        let idle = args.iter().position(|arg| arg == "--drain-idle-ms").unwrap() + 1;
        args[idle] = "5000".to_owned();
        let mut node = Process::start(&args, &[]).await;
        let callers: Vec<_> = (0..20).map(|at| tokio::spawn(until_told(node.base.clone(), at))).collect();
        eventually("they all call", async || node.client.metric("headmark_http_connections").await >= 20.0).await;
        node.terminate();
        for caller in callers {
            let answered = caller.await.unwrap();
            assert!(answered > 0, "a request was lost");
        }
        assert_eq!(node.ended().await.code(), Some(0));
    }
}

/// Polls over one connection until the server announces its end; how many answers came. A lost
/// request fails the test.
async fn until_told(base: String, at: u64) -> usize {
    let mut wire = Wire::connect(&base).await.unwrap();
    let mut answered = 0;
    loop {
        let reply = wire.get(&format!("/v1/users/{}/badges", at + 1), "").await.expect("no request is lost");
        assert_eq!(reply.status(), 200, "{}", reply.head);
        answered += 1;
        if reply.header("connection") == "close" {
            return answered;
        }
        tokio::time::sleep(Duration::from_millis(5 + at)).await;
    }
}
