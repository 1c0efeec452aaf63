//! Types of events: what each says, and reading some of them alone.

use std::time::{Duration, Instant};

use headmark::base::clock::Clock;
use headmark::db::{Column, Statement, Type};
use headmark::engine::events::{EventTypes, store};
use serde_json::{Value, json};

use super::all;
use crate::both_tiers;
use crate::support::{Client, Node, eventually};

/// What is said, without number and time.
fn said(events: &[Value]) -> Vec<Value> {
    events.iter().map(|event| json!({"type": event["type"], "data": event["data"]})).collect()
}

async fn make_group(client: &Client, group: i64, members: &[i64]) {
    client.put(&format!("/v1/groups/{group}"), &json!({})).await.ok();
    client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": members})).await.ok();
}

async fn say(client: &Client, group: i64, sender: i64, id: &str) -> i64 {
    let body = json!({"sender_id": sender, "client_id": id, "content": "secret words"});
    client.post(&format!("/v1/groups/{group}/messages"), &body).await.ok()["seq"].as_i64().unwrap()
}

/// All events of these types, page by page, and how many pages it took.
async fn some(client: &Client, types: &str, limit: usize) -> (Vec<Value>, usize) {
    let (mut events, mut after, mut pages) = (Vec::new(), 0, 0);
    loop {
        let page = client.get(&format!("/v1/events?types={types}&after={after}&limit={limit}")).await.ok();
        pages += 1;
        events.extend(page["items"].as_array().unwrap().iter().cloned());
        let next = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return (events, pages);
        }
        assert!(next > after, "a page makes progress: {page}");
        after = next;
    }
}

both_tiers! {
    async fn messages_and_notifications_are_told_without_their_contents(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_group(client, 9, &[1, 2]).await;
        for id in ["m1", "m2", "m1"] {
            say(client, 9, 1, id).await;
        }
        client.delete("/v1/groups/9/messages/1").await;
        client.delete("/v1/groups/9/messages/1").await;
        let direct = json!({"sender_id": 1, "client_id": "d1", "content": "secret words"});
        for _ in 0..2 {
            client.post("/v1/users/2/inbox", &direct).await.ok();
        }
        client.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "d2", "content": "secret words"})).await.ok();
        client.post("/v1/users/1/inbox", &json!({"sender_id": 1, "client_id": "note", "content": "secret words"})).await.ok();
        for _ in 0..2 {
            client.delete("/v1/users/1/directs/2/messages/1").await;
        }
        let send = json!({"type": "like", "title": "secret words", "group_key": "post:1", "actor_id": 7, "recipients": [1, 2, 3]});
        let sent = client.post("/v1/notifications", &send).await.ok();
        let id = sent["notification_id"].as_str().unwrap();
        for _ in 0..2 {
            client.put(&format!("/v1/notifications/{id}"), &json!({"title": "other secret words"})).await.ok();
        }
        for _ in 0..2 {
            client.delete(&format!("/v1/notifications/{id}")).await;
        }
        client.post("/v1/notifications", &json!({"type": "notice", "title": "secret words", "recipients": [3]})).await.ok();
        let message = |seq: i64, recalled: bool| json!({"type": "group_message", "data": {"group_id": "9", "seq": seq, "sender_id": "1", "recalled": recalled}});
        let direct = |to: &str, seq: i64, own: i64, recalled: bool| json!({"type": "direct_message", "data": {"sender_id": "1", "receiver_id": to, "seq": seq, "own_seq": own, "recalled": recalled}});
        let notification = |change: &str| json!({"type": "notification", "data": {"notification_id": id, "type": "like", "actor_id": "7", "recipient_count": 3, "change": change}});
        let told = all(client, 13).await;
        let expected = [
            message(1, false), message(2, false), message(1, true),
            direct("2", 1, 1, false), direct("2", 2, 2, false), direct("1", 3, 3, false), direct("2", 1, 1, true),
            notification("sent"), notification("edited"), notification("withdrawn"),
        ];
        assert_eq!(said(&told)[2..12], expected, "after two members: each change once");
        assert_eq!((&told[12]["data"]["type"], &told[12]["data"]["actor_id"]), (&json!("notice"), &Value::Null));
        assert!(told[12]["data"].get("actor_id").is_none(), "{}", told[12]);
        assert!(!format!("{told:?}").contains("secret"), "no contents");
        node.stop().await;
    }

    async fn a_reader_of_some_types_gets_all_of_those(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        make_group(client, 9, &[1, 2]).await;
        for n in 0..25 {
            client.follow(1, 100 + n).await;
            if n % 10 == 3 {
                say(client, 9, 1, &format!("m{n}")).await;
                client.put(&format!("/v1/users/7/posts/p{n}"), &json!({})).await.ok();
            }
        }
        let told = all(client, 2 + 25 + 6).await;
        for reader in &nodes {
            let reader = &reader.client;
            for types in ["group_message", "post", "relation", "group_message,post", "post,member,post", "unread", "relation,broadcast,post,member,group_message,direct_message,notification,unread"] {
                let expected: Vec<_> = told.iter().filter(|event| types.split(',').any(|of| event["type"] == of)).cloned().collect();
                for limit in [1, 4, 1000] {
                    let (found, pages) = some(reader, types, limit).await;
                    assert_eq!(found, expected, "{types}");
                    assert!(pages <= expected.len() / limit + 2, "{pages} pages for {} {types}", expected.len());
                }
                let last = reader.get(&format!("/v1/events?types={types}&limit=1000")).await.ok();
                assert_eq!(last["next_after"], told.last().unwrap()["id"], "others are passed by: {types}");
            }
            for bad in ["", "relations", "relation,", "relation, post", "Relation"] {
                let body = reader.get(&format!("/v1/events?types={bad}")).await.problem(400, "invalid_query");
                assert!(body.to_string().contains("group_message, direct_message, notification, unread"), "{body}");
            }
        }
        Node::stop_all(nodes).await;
    }

    /// Others are written all the while; it is held for its time, and answers how far it came.
    async fn a_held_request_answers_for_its_types_alone(world: World) {
        let nodes = world.nodes().await;
        let (writer, reader) = (nodes[0].client.clone(), nodes[nodes.len() - 1].client.clone());
        let began = Instant::now();
        let (waiting, asked) = (tokio::spawn({
            let reader = reader.clone();
            async move { reader.get("/v1/events?after=0&types=post&wait=3").await.ok() }
        }), tokio::spawn({
            let reader = reader.clone();
            async move { reader.get("/v1/events?after=0&types=broadcast,post&wait=20").await.ok() }
        }));
        let mut written = 0;
        while began.elapsed() < Duration::from_millis(2500) {
            written += 1;
            writer.follow(1, 1 + written).await;
        }
        writer.post("/v1/broadcasts/news", &json!({"title": "Hello"})).await.ok();
        let asked = asked.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(6));
        assert_eq!((asked["items"][0]["type"].as_str(), asked["next_after"].as_i64()), (Some("broadcast"), Some(written + 1)));
        let waiting = waiting.await.unwrap();
        assert!(began.elapsed() >= Duration::from_secs(3) && waiting["items"] == json!([]), "{waiting}");
        assert!(waiting["next_after"].as_i64().unwrap() > written / 2 && waiting["has_more"] == false, "{waiting}");
        // One that comes late is told at once.
        let late = tokio::spawn(async move { reader.get(&format!("/v1/events?after={}&types=post&wait=20", written + 1)).await.ok() });
        writer.put("/v1/users/7/posts/p", &json!({})).await.ok();
        let late = tokio::time::timeout(Duration::from_secs(5), late).await.unwrap().unwrap();
        assert_eq!(late["items"][0]["type"], "post");
        Node::stop_all(nodes).await;
    }

    /// Ten thousand rows of other types are too many for one answer: it says how far it came.
    async fn what_is_far_away_is_found_in_bounded_steps(world: World) {
        static FILL: Statement = Statement::new(
            "insert into events (size, first_id, last_id, created_at, types, content)
            select size, 0, 0, created_at, types, content from {rows} r where true",
            &[("size", Type::Int), ("created_at", Type::Int), ("types", Type::Int), ("content", Type::Text)],
        );
        const ROWS: usize = 12_000;
        let node = world.node().await;
        let event = |kind: &str| format!(r#"[{{"at":"2026-01-31T09:30:00.123Z","type":"{kind}","data":{{}}}}]"#);
        let types = |kind: &str| EventTypes::parse(kind).unwrap().bits();
        let fill = async |rows: usize, kind: &str, types: i64| {
            let mut conn = node.app.state().db.connect().await.unwrap();
            let ints = [1, Clock::System.now().0, types].map(|value| Column::Int(vec![value; rows]));
            conn.run(&FILL, &[&ints[..], &[Column::Text(vec![event(kind); rows])]].concat()).await.unwrap();
        };
        // As a version wrote them that kept no types.
        fill(2, "member", -1).await;
        fill(ROWS, "relation", types("relation")).await;
        fill(1, "post", types("post")).await;
        let end = i64::try_from(ROWS).unwrap() + 3;
        eventually("all have numbers", async || store::kept(&node.app.state().db).await.unwrap().head == end).await;
        let first = node.client.get("/v1/events?types=post").await.ok();
        assert_eq!((&first["items"], &first["has_more"]), (&json!([]), &json!(true)));
        assert!((10_000..end).contains(&first["next_after"].as_i64().unwrap()), "{first}");
        let held = node.client.get("/v1/events?types=post&wait=20").await.ok();
        assert_eq!((&held["items"][0]["id"], &held["next_after"], &held["has_more"]), (&json!(end), &json!(end), &json!(false)));
        assert_eq!(some(&node.client, "member", 10).await.0.len(), 2);
        node.stop().await;
    }

    async fn a_large_batch_has_several_rows(world: World) {
        static SIZES: Statement = Statement::new("select size from events order by batch_id", &[]);
        let node = world.node().await;
        node.client.put("/v1/groups/9", &json!({})).await.ok();
        node.client.post("/v1/groups/9/members", &json!({"user_ids": (1..=1000).collect::<Vec<_>>()})).await.ok();
        let told = all(&node.client, 1000).await;
        let users: Vec<i64> = told.iter().map(|event| event["data"]["user_id"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(users, (1..=1000).collect::<Vec<_>>(), "in their order");
        let sizes: Vec<(i64,)> = node.app.state().db.fetch(&SIZES, &[]).await.unwrap();
        assert_eq!(sizes, [(500,), (500,)]);
        node.stop().await;
    }
}
