//! Random input: whatever comes, the answer is no 5xx, in time, and a problem where it is no
//! success.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;

use crate::both_tiers;
use crate::support::{Client, Reply, World};

const WRITES: [(Method, &str); 12] = [
    (Method::POST, "/v1/users/42/badges/mention/increment"),
    (Method::POST, "/v1/users/42/badges/mention/retract"),
    (Method::POST, "/v1/users/42/badges/mention/reset"),
    (Method::POST, "/v1/users/42/badges/reset"),
    (Method::POST, "/v1/badges/increment"),
    (Method::POST, "/v1/badges/query"),
    (Method::PUT, "/v1/users/42/following/7"),
    (Method::POST, "/v1/users/42/inbox"),
    (Method::POST, "/v1/users/42/directs/7/read"),
    (Method::POST, "/v1/users/42/directs/7/unread"),
    (Method::PUT, "/v1/users/42/directs/7/settings"),
    (Method::PUT, "/v1/users/42/devices/phone-1/cursor"),
];

const LISTS: [&str; 6] = ["following", "followers", "relations", "relation-counts", "directs", "devices"];

/// JSON that is near to what the routes take, and JSON that is not.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        (0..5_i64).prop_map(Into::into)
    ];
    let text = prop_oneof![any::<String>(), "[0-9]{1,20}", "[a-z0-9_.-]{1,66}", Just("42".to_owned()), Just("mention".to_owned())];
    let leaf = prop_oneof![Just(serde_json::Value::Null), any::<bool>().prop_map(Into::into), number, text.prop_map(Into::into)];
    let key = prop_oneof![
        prop::sample::select(vec![
            "by",
            "at",
            "up_to",
            "items",
            "user_id",
            "user_ids",
            "badge",
            "include",
            "cap",
            "mention",
            "visibility",
            "special",
            "sender_id",
            "client_id",
            "content",
            "muted",
            "level",
            "until",
            "from",
            "seq"
        ])
        .prop_map(str::to_owned),
        any::<String>()
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let object = prop::collection::vec((key.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Into::into),
            object.prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into())
        ]
    })
}

/// A path of valid URI characters, most often near to a route.
fn path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        prop::sample::select(vec![
            "v1",
            "users",
            "42",
            "me",
            "badges",
            "mention",
            "increment",
            "reset",
            "query",
            "following",
            "followers",
            "7",
            "docs",
            "metrics",
            "",
            "."
        ])
        .prop_map(str::to_owned),
        "[A-Za-z0-9._~%:@!$&'()*+,;=-]{0,12}",
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| bytes.iter().map(|byte| format!("%{byte:02x}")).collect())
    ];
    prop::collection::vec(segment, 0..7).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn query() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["cap", "wait", "include", "limit", "c%61p", "%00", ""]);
    let value = prop_oneof!["[0-9-]{0,22}", "[A-Za-z0-9._~%+,;-]{0,12}", Just("counters".to_owned()), Just("0".to_owned())];
    // A poll without a tag never waits, whatever `wait` says.
    prop::collection::vec((name, value), 0..4)
        .prop_map(|pairs| pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

/// What a header's value may hold.
fn header_value(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((32..=255_u8).prop_filter("no control character", |byte| *byte != 127), 0..most)
}

/// No 5xx, and a problem in shape where it is an error; HEAD has the headers of one alone.
fn check(reply: Reply) {
    assert!(reply.status.as_u16() < 500, "{} {}", reply.status, reply.text);
    if reply.status.is_client_error() && reply.text.is_empty() {
        assert_eq!(reply.header("content-type"), "application/problem+json");
    } else if reply.status.is_client_error() {
        let code = reply.body["code"].as_str().unwrap_or_default().to_owned();
        let status = reply.status.as_u16();
        reply.problem(status, &code);
    }
}

/// Sends each of so many random requests, which must be answered within ten seconds; shrinks what
/// fails.
async fn storm<S: Strategy>(world: &World, cases: u32, strategy: S, request: impl Fn(&Client, S::Value) -> reqwest::RequestBuilder) {
    let node = world.node().await;
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&strategy, |input| {
            let request = request(&node.client, input).timeout(Duration::from_secs(10));
            handle.block_on(async { check(Client::send(request).await) });
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    });
    node.client.get("/readyz").await.ok();
    assert_eq!(node.client.get("/v1/users/42/badges").await.ok()["degraded"], false);
    node.stop().await;
}

both_tiers! {
    async fn any_bytes_as_a_body(world: World) {
        let bytes = prop::collection::vec(any::<u8>(), 0..400);
        let key = prop::option::of(header_value(300));
        storm(&world, 300, (prop::sample::select(WRITES.to_vec()), bytes, key), |client, ((method, path), bytes, key)| {
            let request = client.request(method, path).header("content-type", "application/json").body(bytes);
            match key {
                Some(key) => request.header("idempotency-key", key),
                None => request,
            }
        })
        .await;
    }

    async fn any_json_as_a_body(world: World) {
        storm(&world, 600, (prop::sample::select(WRITES.to_vec()), json()), |client, ((method, path), body)| {
            client.request(method, path).json(&body)
        })
        .await;
    }

    async fn any_path_query_and_header(world: World) {
        let method = prop::sample::select(vec![Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH]);
        let header = prop::sample::select(vec!["content-type", "x-request-id", "traceparent", "authorization", "accept", "range", "prefer"]);
        let value = header_value(40);
        storm(&world, 600, (method, path(), query(), header, value), |client, (method, path, query, header, value)| {
            client.request(method, &format!("{path}?{query}")).header(header, value)
        })
        .await;
    }

    async fn any_query_of_a_list(world: World) {
        let name = prop::sample::select(vec!["limit", "cursor", "ids", "l%69mit", "wait"]);
        let value = prop_oneof![
            "[0-9-]{0,22}",
            "1[0-9a-f]{30,33}",
            "[1-9][0-9]{0,20}(,[0-9]{1,19}){0,3}",
            "[A-Za-z0-9._~%+,;-]{0,12}",
            (0..200_usize).prop_map(|many| vec!["8"; many].join(","))
        ];
        let pairs = prop::collection::vec((name, value), 0..3);
        let path = ("[0-9]{1,20}", prop::sample::select(LISTS.to_vec()));
        storm(&world, 400, (path, pairs), |client, ((user, list), pairs)| {
            let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
            client.request(Method::GET, &format!("/v1/users/{user}/{list}?{}", query.join("&")))
        })
        .await;
    }

    async fn any_query_of_an_inbox(world: World) {
        // Without a tag it waits all the same.
        let name = prop::sample::select(vec!["limit", "after", "epoch", "l%69mit", "cursor"]);
        let value = prop_oneof!["[0-9-]{0,22}", "[0-9a-f]{16}", "[0-9]{1,3}", "[A-Za-z0-9._~%+,;-]{0,12}"];
        let pairs = prop::collection::vec((name, value), 0..4);
        storm(&world, 300, (prop::sample::select(vec!["42", "7", "0"]), pairs), |client, (user, pairs)| {
            let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
            client.request(Method::GET, &format!("/v1/users/{user}/inbox?{}", query.join("&")))
        })
        .await;
    }

    async fn any_tag(world: World) {
        let tag = prop_oneof![
            header_value(60),
            any::<i64>().prop_map(|version| format!("W/\"{version}\"").into_bytes()),
            "(W/)?\"[0-9]{0,25}\"(, ?\"[a-z0-9]*\")?".prop_map(String::into_bytes)
        ];
        storm(&world, 200, tag, |client, tag| client.request(Method::GET, "/v1/users/42/badges?wait=0").header("if-none-match", tag)).await;
    }
}
