//! The unread summary: what one poll returns, narrowed and capped.

use std::sync::Arc;

use headmark::db::DbResult;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::both_tiers;
use crate::support::{Client, Hand, Node, Reply, eventually};

const SUMMARY: &str = "/v1/users/42/badges";

async fn raise(client: &Client, badge: &str, by: i64) {
    client.post(&format!("{SUMMARY}/{badge}/increment"), &json!({ "by": by })).await.ok();
}

async fn summary(client: &Client, query: &str) -> Value {
    client.get(&format!("{SUMMARY}{query}")).await.ok()
}

/// Polls of a node take turns to read the database, and it has one.
const ONE_TURN: [&str; 4] = ["--sql-reads", "1", "--sql-read-wait-ms", "1"];

/// Has that turn until it is aborted.
async fn hold_the_turn(node: &Node) -> JoinHandle<()> {
    let entries = Arc::clone(&node.app.state().contexts.inbox.entries);
    let (begun, has_turn) = tokio::sync::oneshot::channel();
    let mut begun = Some(begun);
    let reader = tokio::spawn(async move {
        // Again, as no read may take long, and another poll may have the turn at first.
        loop {
            let endless = async {
                if let Some(begun) = begun.take() {
                    begun.send(()).unwrap();
                }
                std::future::pending::<DbResult<()>>().await
            };
            drop(entries.in_turn(endless).await);
            if begun.is_some() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
    });
    has_turn.await.unwrap();
    reader
}

both_tiers! {
    async fn a_kind_of_a_newer_version_is_passed_over(world: World) {
        let node = world.node().await;
        raise(&node.client, "mention", 3).await;
        let before = summary(&node.client, "").await;
        let mut hand = Hand::on(&world).await;
        // As another node of that version would, with the revision, so that the cache does not show the old state.
        hand.run("update users set version = 9, revision = 9, marks = 'a:newer 5 5;' || marks || ';e:newer 5;newer' where user_id = 42").await;
        raise(&node.client, "mention", 1).await;
        let mut after = summary(&node.client, "").await;
        assert_eq!((&after["counters"]["mention"]["unread"], &after["revision"]), (&json!(4), &json!(10)));
        for kind in ["counters", "total", "revision"] {
            after[kind] = before[kind].clone();
        }
        assert_eq!(after, before, "no number of ours is made of it");
        let kept = hand.text("select marks from users where user_id = 42").await;
        assert_eq!(kept, "a:newer 5 5;c:mention 4 4;e:newer 5;newer", "what this version does not know stays");
        node.stop().await;
    }

    async fn a_write_never_answers_with_the_summary_of_before(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        let client = &node.client;
        raise(client, "mention", 3).await;
        client.post("/v1/users/42/inbox", &json!({"sender_id": 7, "client_id": "a", "content": "x"})).await.ok();
        let reader = hold_the_turn(&node).await;
        let writes = [
            (format!("{SUMMARY}/reset"), json!({"up_to": {"mention": 2}})),
            ("/v1/users/42/chats/read".to_owned(), json!({"up_to": {"directs": {"7": 1}}})),
        ];
        for (path, body) in &writes {
            client.post(path, body).await.problem(503, "outcome_unknown");
        }
        reader.abort();
        assert!(reader.await.unwrap_err().is_cancelled());
        for (path, body) in &writes {
            let again = client.post(path, body).await.ok();
            let unread = [&again["counters"]["mention"]["unread"], &again["chats"]["unread"]];
            assert_eq!(unread, [&json!(1), &json!(0)], "the writes are done");
        }
        node.stop().await;
    }

    async fn lists_and_resets_of_the_feed_wait_for_a_turn(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        let client = &node.client;
        raise(client, "mention", 3).await;
        client.put("/v1/groups/9", &json!({})).await.ok();
        client.post("/v1/groups/9/members", &json!({"user_ids": [42]})).await.ok();
        client.post("/v1/groups/9/messages", &json!({"sender_id": 42, "client_id": "m", "content": "text"})).await.ok();
        summary(client, "").await;
        let reader = hold_the_turn(&node).await;
        let is_overloaded = |reply: &Reply| (reply.status.as_u16(), &reply.body["code"]) == (503, &json!("overloaded"));
        for list in [
            "users/42/notifications",
            "users/42/directs",
            "users/42/directs/7",
            "users/42/directs/7/receipts",
            "users/42/inbox",
            "users/42/chats",
            "users/42/chats/direct/7",
            "users/42/chats/group/9",
            "groups/9/messages",
            "groups/9/messages?before=2",
            "groups/9/messages/changes",
            "groups/9/receipts?from=1&to=1",
            "groups/9/messages/1/receipts",
            "users/42/following",
            "users/42/following/ids",
            "users/42/blocks",
            "users/42/mutes",
            "users/42/follow-requests",
            "users/42/relation-counts",
            "users/42/familiar?ids=7",
            "users/7/followers",
            "users/42/relations?ids=7",
        ] {
            let path = format!("/v1/{list}");
            eventually(&path, async || is_overloaded(&client.get(&path).await)).await;
        }
        // Where nothing is to be read, no turn is needed.
        client.get("/v1/groups/9/messages?after=1").await.ok();
        let pairs = json!({"pairs": [{"user_id": "42", "target_id": "7"}]});
        eventually("a look-up waits", async || is_overloaded(&client.post("/v1/relations/query", &pairs).await)).await;
        eventually("a reset waits", async || is_overloaded(&client.post("/v1/users/42/feed/reset", &json!({})).await)).await;
        reader.abort();
        assert!(reader.await.unwrap_err().is_cancelled());
        client.post("/v1/users/42/feed/reset", &json!({})).await.ok();
        client.get("/v1/users/42/notifications").await.ok();
        node.stop().await;
    }

    /// Its client would come again at once.
    async fn a_poll_that_waits_goes_on_waiting_where_it_finds_no_turn(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        let client = &node.client;
        summary(client, "").await;
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.get("/v1/users/42/inbox?wait=30").await }
        });
        eventually("it waits", async || node.app.state().polling.waiting.taken() == 1).await;
        let reader = hold_the_turn(&node).await;
        client.post("/v1/users/42/inbox", &json!({"sender_id": 7, "client_id": "a", "content": "x"})).await.ok();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert!(!waiting.is_finished(), "there is something, and no turn to read it");
        reader.abort();
        let page = waiting.await.unwrap().ok();
        assert_eq!(page["items"][0]["content"], "x");
        node.stop().await;
    }

    async fn a_summary_shows_every_counter_and_their_total(world: World) {
        let node = world.node().await;
        raise(&node.client, "mention", 3).await;
        raise(&node.client, "comment", 8).await;
        node.client.post(&format!("{SUMMARY}/comment/reset"), &json!({})).await.ok();
        let reply = node.client.get(SUMMARY).await;
        insta::assert_snapshot!(
            reply.without_epoch(),
            @r#"{"user_id":"42","epoch":"EPOCH","revision":4,"shared_revision":0,"total":3,"degraded":false,"counters":{"comment":{"unread":0,"head":8},"mention":{"unread":3,"head":3}},"broadcasts":{},"dots":{},"feed":{"unread":0},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}}"#
        );
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(summary(&node.client, "?include=counters").await["counters"], reply.ok()["counters"]);
        node.stop().await;
    }

    async fn cap_caps_each_count_and_the_total_and_says_so(world: World) {
        let node = world.node().await;
        raise(&node.client, "few", 98).await;
        raise(&node.client, "full", 99).await;
        raise(&node.client, "more", 100).await;
        let reply = node.client.get(&format!("{SUMMARY}?cap=99")).await;
        insta::assert_snapshot!(reply.without_epoch().replace("},\"", "},\n\""), @r#"
        {"user_id":"42","epoch":"EPOCH","revision":4,"shared_revision":0,"total":99,"capped":true,"degraded":false,"counters":{"few":{"unread":98,"head":98,"capped":false},
        "full":{"unread":99,"head":99,"capped":false},
        "more":{"unread":99,"head":100,"capped":true}},
        "broadcasts":{},
        "dots":{},
        "feed":{"unread":0,"capped":false},
        "chats":{"unread":0,"mentions":0,"groups":0,"directs":0,"capped":false},
        "notifications":{}}
        "#);
        let wide = summary(&node.client, "?cap=297").await;
        assert_eq!((&wide["total"], &wide["capped"]), (&json!(297), &json!(false)), "exactly the cap is not more");
        let narrow = summary(&node.client, "?cap=296").await;
        assert_eq!((&narrow["total"], &narrow["capped"]), (&json!(296), &json!(true)));
        let plain = node.client.get(SUMMARY).await.text;
        assert!(!plain.contains("capped"), "{plain}");
        node.stop().await;
    }

    async fn what_narrows_a_summary_is_checked(world: World) {
        let node = world.node().await;
        for (query, name) in [
            ("?cap=0", "cap"),
            ("?cap=-1", "cap"),
            ("?cap=abc", "cap"),
            ("?cap=", "cap"),
            ("?cap=99.5", "cap"),
            ("?cap=99999999999999999999", "cap"),
            ("?cap=1&cap=2", "cap"),
            ("?include=nonsense", "include"),
            ("?include=counters,nonsense", "include"),
            ("?include=", "include"),
            ("?include=counters,", "include"),
            ("?include=counters&include=counters", "include"),
            ("?wait=61", "wait"),
            ("?wait=-1", "wait"),
            ("?wait=1.5", "wait"),
            ("?wait=soon", "wait"),
            ("?Cap=9", "Cap"),
            ("?limit=9", "limit"),
        ] {
            let reply = node.client.get(&format!("{SUMMARY}{query}")).await;
            assert_eq!(reply.pointers(400, "invalid_query"), [name], "{query}");
        }
        node.stop().await;
    }
}
