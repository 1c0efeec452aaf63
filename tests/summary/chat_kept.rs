//! A first page of chats that was shown before is shown again, and never past a change.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::{DAY_MS, UnixMs};
use headmark::features::{groups, inbox};
use serde_json::{Value, json};
use sqlx::Executor as _;

use crate::both_tiers;
use crate::features::erasure::{ARGS, erase, erased};
use crate::features::groups::{make, send};
use crate::support::{Client, Node, Tier, World, eventually};

const START: i64 = 1_800_000_000_000;
const PAGE: &str = "/v1/users/1/chats";
const STATEMENTS: &str = "headmark_database_statements_total";

async fn direct(client: &Client, sender: i64, receiver: i64, id: &str) -> i64 {
    let body = json!({"sender_id": sender, "client_id": id, "content": format!("it is {id}")});
    client.post(&format!("/v1/users/{receiver}/inbox"), &body).await.ok()["seq"].as_i64().unwrap()
}

/// A group and a direct chat, each with two messages, and a page of both that every node keeps.
async fn begin(nodes: &[Node]) {
    let client = &nodes[0].client;
    make(client, 9, &[1, 2]).await;
    for id in ["a", "b"] {
        send(client, 9, 2, id).await.ok();
        direct(client, 3, 1, id).await;
    }
    all_show(nodes, "the beginning", |chats| chats["group/9"]["unread"] == 2 && chats["direct/3"]["unread"] == 2).await;
}

/// The chats of a page by their names.
fn by_name(page: &Value) -> Value {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|chat| (format!("{}/{}", chat["kind"].as_str().unwrap(), chat["id"].as_str().unwrap()), chat.clone())).collect()
}

/// On every node the page is as it should be, again and again, and shows each chat as its own route
/// does, of which nothing is kept.
async fn all_show(nodes: &[Node], after: &str, as_it_should_be: impl Fn(&Value) -> bool) {
    for node in nodes {
        let mut shown = Value::Null;
        eventually(&format!("the page after {after}"), async || {
            shown = node.client.get(PAGE).await.ok();
            as_it_should_be(&by_name(&shown))
        })
        .await;
        assert_eq!(node.client.get(PAGE).await.ok(), shown, "again after {after}");
        for (name, chat) in by_name(&shown).as_object().unwrap() {
            assert_eq!(&node.client.get(&format!("{PAGE}/{name}")).await.ok(), chat, "{name} after {after}");
        }
    }
}

/// Two nodes where the tier has many, with one clock that is set by hand.
async fn nodes_at(world: &World, at: &Arc<AtomicI64>, more: &[&str]) -> Vec<Node> {
    let mut nodes = vec![world.node_at(at, more).await];
    if world.tier == Tier::Server {
        nodes.push(world.node_at(at, more).await);
    }
    nodes
}

both_tiers! {
    async fn a_page_that_was_shown_before_costs_no_statement(world: World) {
        let nodes = world.nodes().await;
        begin(&nodes).await;
        let client = &nodes[0].client;
        for path in [PAGE, "/v1/users/1/chats?unread=true"] {
            let first = client.get(path).await;
            let before = client.metric(STATEMENTS).await;
            for _ in 0..100 {
                let again = client.get(path).await;
                assert_eq!((&again.text, again.header("etag")), (&first.text, first.header("etag")), "{path}");
            }
            let statements = client.metric(STATEMENTS).await - before;
            assert!(statements < 200.0, "{path}: {statements} statements, of which each page alone would have sent three");
        }
        let link = |reply: crate::support::Reply| reply.header("link").to_owned();
        let first = link(client.get("/v1/users/1/chats?limit=1").await);
        assert!(first.starts_with("</v1/users/1/chats?limit=1&cursor=2"), "{first}");
        assert_eq!(link(client.get("/v1/users/1/chats?limit=1").await), first, "also of one that was kept");
        let cursor = client.get("/v1/users/1/chats?limit=1").await.ok()["next_cursor"].as_str().unwrap().to_owned();
        let second = client.get(&format!("/v1/users/1/chats?limit=1&cursor={cursor}")).await.ok();
        assert_eq!((&second["items"][0]["id"], &second["next_cursor"]), (&json!("9"), &Value::Null));
        Node::stop_all(nodes).await;
    }

    async fn a_kept_page_is_not_shown_past_a_write(world: World) {
        let nodes = world.nodes().await;
        begin(&nodes).await;
        let (client, last) = (&nodes[0].client, nodes.last().unwrap().client.clone());
        client.delete("/v1/groups/9/messages/2").await;
        all_show(&nodes, "a recall in the group", |chats| chats["group/9"]["last"] == json!({"seq": 2, "sender_id": "2", "recalled": true})).await;
        let own = client.get("/v1/users/3/chats/direct/1").await.ok()["head"].clone();
        assert_eq!(client.delete(&format!("/v1/users/3/directs/1/messages/{own}")).await.status, 204);
        all_show(&nodes, "a recall in the direct chat", |chats| chats["direct/3"]["last"]["recalled"] == true && chats["direct/3"]["unread"] == 1).await;
        // What is the user's own shows at once, whichever node took it.
        last.post("/v1/users/1/groups/9/read", &json!({})).await.ok();
        assert_eq!(by_name(&client.get(PAGE).await.ok())["group/9"]["unread"], 0);
        last.post("/v1/users/1/directs/3/read", &json!({})).await.ok();
        assert_eq!(by_name(&client.get(PAGE).await.ok())["direct/3"]["unread"], 0);
        for (write, level) in [("blocks", "none"), ("mutes", "none")] {
            let path = format!("/v1/users/1/{write}/3");
            last.put(&path, &json!({})).await.ok();
            assert_eq!(by_name(&client.get(PAGE).await.ok())["direct/3"]["level"], level, "{write}");
            assert_eq!(last.delete(&path).await.status, 204);
            assert_eq!(by_name(&client.get(PAGE).await.ok())["direct/3"]["level"], "all", "{write}");
        }
        last.put("/v1/users/1/groups/9/settings", &json!({"level": "none"})).await.ok();
        assert_eq!(by_name(&client.get(PAGE).await.ok())["group/9"]["level"], "none");
        send(client, 9, 2, "c").await.ok();
        all_show(&nodes, "another message", |chats| chats["group/9"]["last"]["content"] == "it is c").await;
        assert_eq!(client.delete("/v1/groups/9").await.status, 202);
        all_show(&nodes, "the end of the group", |chats| chats.get("group/9").is_none() && chats.get("direct/3").is_some()).await;
        Node::stop_all(nodes).await;
    }

    async fn a_kept_page_is_not_shown_past_the_end_of_a_level(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let nodes = nodes_at(&world, &at, &[]).await;
        begin(&nodes).await;
        let client = &nodes[0].client;
        direct(client, 4, 1, "a").await;
        let silent = |seconds: i64| json!({"level": "none", "until": UnixMs(START + 1000 * seconds).to_string()});
        client.put("/v1/users/1/groups/9/settings", &silent(10)).await.ok();
        client.put("/v1/users/1/directs/3/settings", &silent(20)).await.ok();
        client.put("/v1/users/1/mutes/4", &json!({"until": silent(30)["until"]})).await.ok();
        let names = ["group/9", "direct/3", "direct/4"];
        for (ended, name) in names.iter().enumerate() {
            all_show(&nodes, name, |chats| names.iter().enumerate().all(|(at, name)| {
                let is_over = at < ended;
                (chats[*name]["level"] == "all") == is_over && chats[*name].get("level_until").is_none() == is_over
            }))
            .await;
            at.fetch_add(10_000, Ordering::SeqCst);
        }
        all_show(&nodes, "all", |chats| names.iter().all(|name| chats[*name]["level"] == "all")).await;
        Node::stop_all(nodes).await;
    }

    async fn a_kept_page_is_not_shown_past_an_expiry(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let nodes = nodes_at(&world, &at, &["--group-message-days", "30"]).await;
        begin(&nodes).await;
        at.fetch_add(40 * DAY_MS, Ordering::SeqCst);
        let contexts = &nodes[0].app.state().contexts;
        groups::expiry::sweep(&contexts.groups, &mut groups::expiry::Walk::default()).await.unwrap();
        inbox::expiry::sweep(&contexts.inbox, &mut inbox::expiry::Walk::default()).await.unwrap();
        // The rows are gone at once; the other node hears of the group's head a little later.
        let are_gone = |chats: &Value| ["group/9", "direct/3"].iter().all(|name| chats[*name]["last"].is_null());
        all_show(&nodes, "the expiry", |chats| are_gone(chats) && chats["group/9"]["unread"] == 0).await;
        Node::stop_all(nodes).await;
    }

    async fn a_kept_page_is_not_shown_past_an_erasure(world: World) {
        let mut nodes = vec![world.node_with(&ARGS).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&ARGS).await);
        }
        begin(&nodes).await;
        let client = &nodes[0].client;
        make(client, 8, &[1, 2]).await;
        send(client, 8, 2, "a").await.ok();
        client.delete("/v1/groups/8/messages/1").await;
        all_show(&nodes, "a recall", |chats| chats["group/8"]["last"] == json!({"seq": 1, "sender_id": "2", "recalled": true})).await;
        for user in [2, 3] {
            erased(client, &erase(client, user).await).await;
        }
        all_show(&nodes, "the erasures", |chats| {
            chats.get("direct/3").is_none()
                && chats["group/9"]["last"] == json!({"seq": 2, "recalled": true})
                && chats["group/8"]["last"] == json!({"seq": 1, "recalled": true})
        })
        .await;
        Node::stop_all(nodes).await;
    }

    async fn a_page_that_is_very_long_is_not_kept(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let long = "long ".repeat(700);
        for peer in 2..=13 {
            let body = json!({"sender_id": peer, "client_id": "a", "content": long});
            client.post("/v1/users/1/inbox", &body).await.ok();
        }
        let first = client.get(PAGE).await;
        assert!(first.text.len() > 32 * 1024, "{}", first.text.len());
        let before = client.metric(STATEMENTS).await;
        for _ in 0..20 {
            assert_eq!(client.get(PAGE).await.text, first.text);
        }
        assert!(client.metric(STATEMENTS).await - before >= 40.0, "each was read");
        node.stop().await;
    }
}

/// As after a restore: the same revisions and versions, of other rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_kept_page_belongs_to_a_history_of_the_database() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    begin(&nodes).await;
    let mut conn = world.postgres().await;
    for statement in [
        "update group_messages set content = 'another' where group_id = 9",
        "update inbox set content = 'another' where user_id = 1",
        "update inbox_epoch set epoch = 'another'",
    ] {
        conn.execute(statement).await.unwrap();
    }
    all_show(&nodes, "a restore", |chats| ["group/9", "direct/3"].iter().all(|name| chats[*name]["last"]["content"] == "another")).await;
    Node::stop_all(nodes).await;
}
