//! Groups and direct chats in one list.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::both_tiers;
use crate::features::groups::{make, send};

use crate::support::{Client, Dice, Node, eventually};

async fn direct(client: &Client, sender: i64, receiver: i64, client_id: &str) -> i64 {
    let body = json!({"sender_id": sender, "client_id": client_id, "content": format!("it is {client_id}")});
    client.post(&format!("/v1/users/{receiver}/inbox"), &body).await.ok()["seq"].as_i64().unwrap()
}

fn name(chat: &Value) -> String {
    format!("{}/{}", chat["kind"].as_str().unwrap(), chat["id"].as_str().unwrap())
}

/// Kind and id of each chat, page by page.
async fn order(client: &Client, user: i64) -> Vec<String> {
    client.walk(&format!("/v1/users/{user}/chats"), 2).await.iter().map(name).collect()
}

/// The same of those with something unread, on one page.
async fn unread(client: &Client, user: i64) -> Vec<String> {
    let page = client.get(&format!("/v1/users/{user}/chats?unread=true&limit=100")).await.ok();
    page["items"].as_array().unwrap().iter().map(name).collect()
}

both_tiers! {
    async fn the_latest_activity_comes_first_and_reading_is_none(world: World) {
        let node = world.node().await;
        let client = &node.client;
        assert_eq!(client.get("/v1/users/1/chats").await.ok(), json!({"items": [], "next_cursor": null}));
        make(client, 9, &[1, 2]).await;
        make(client, 8, &[1, 2]).await;
        direct(client, 3, 1, "d-1").await;
        send(client, 9, 2, "g-1").await;
        direct(client, 4, 1, "d-2").await;
        let before = order(client, 1).await;
        assert_eq!(before[..3], ["direct/4", "group/9", "direct/3"]);
        assert_eq!(before[3], "group/8", "a group without a message has the time of joining");
        client.post("/v1/users/1/groups/9/read", &json!({})).await.ok();
        client.post("/v1/users/1/directs/3/read", &json!({})).await.ok();
        client.put("/v1/users/1/directs/3/settings", &json!({"level": "none"})).await.ok();
        client.delete("/v1/groups/9/messages/1").await;
        assert_eq!(order(client, 1).await, before);
        send(client, 8, 2, "g-2").await;
        assert_eq!(order(client, 1).await[0], "group/8");
        assert_eq!(unread(client, 1).await, ["group/8", "direct/4"]);
        node.stop().await;
    }

    async fn a_chat_shows_its_last_message_and_the_first_unread(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        let chat = |path: &'static str| async move { client.get(&format!("/v1/users/1/chats/{path}")).await.ok() };
        let empty = chat("group/9").await;
        assert_eq!((&empty["last"], &empty["unread"], &empty["head"]), (&Value::Null, &json!(0), &json!(0)));
        for n in 1..=3 {
            send(client, 9, 2, &format!("g-{n}")).await;
        }
        send(client, 9, 1, "own").await;
        send(client, 9, 2, "g-4").await;
        let of = chat("group/9").await;
        assert_eq!((&of["unread"], &of["first_unread_seq"], &of["read_seq"]), (&json!(1), &json!(5), &json!(4)));
        assert_eq!((&of["last"]["content"], &of["last"]["sender_id"], &of["last"]["seq"]), (&json!("it is g-4"), &json!("2"), &json!(5)));
        assert_eq!(of["last"]["sent_at"], of["last_at"]);
        client.delete("/v1/groups/9/messages/5").await;
        let recalled = chat("group/9").await;
        assert_eq!(recalled["last"], json!({"seq": 5, "sender_id": "2", "recalled": true}));
        assert_eq!((&recalled["unread"], &recalled["first_unread_seq"], &recalled["last_at"]), (&json!(0), &Value::Null, &of["last_at"]));
        client.post("/v1/users/1/groups/9/unread", &json!({"from": 2})).await.ok();
        let again = chat("group/9").await;
        assert_eq!((&again["unread"], &again["first_unread_seq"], &again["read_seq"]), (&json!(2), &json!(2), &json!(4)), "own messages are never unread");

        let none = chat("direct/7").await;
        assert_eq!((&none["last"], &none["kind"], &none["id"]), (&Value::Null, &json!("direct"), &json!("7")));
        let seq = direct(client, 7, 1, "d-1").await;
        let of = chat("direct/7").await;
        assert_eq!((&of["unread"], &of["head"], &of["first_unread_seq"], &of["mentions"]), (&json!(1), &json!(seq), &json!(seq), &json!(0)));
        assert_eq!((&of["last"]["content"], &of["last"]["seq"]), (&json!("it is d-1"), &json!(seq)));
        let listed = client.get("/v1/users/1/chats").await.ok();
        assert_eq!(listed["items"][0], of);
        assert_eq!(listed["items"][1], chat("group/9").await);
        node.stop().await;
    }

    async fn a_member_who_joins_later_sees_no_earlier_message(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[2]).await;
        send(client, 9, 2, "early").await;
        client.put("/v1/groups/9/members/1", &json!({})).await;
        let of = client.get("/v1/users/1/chats/group/9").await.ok();
        assert_eq!((&of["last"], &of["unread"], &of["read_seq"]), (&Value::Null, &json!(0), &json!(1)));
        let members = client.get("/v1/groups/9/members").await.ok();
        let joined = members["items"].as_array().unwrap().iter().find(|member| member["user_id"] == "1").unwrap();
        assert_eq!(of["last_at"], joined["joined_at"]);
        send(client, 9, 2, "late").await;
        assert_eq!(client.get("/v1/users/1/chats/group/9").await.ok()["last"]["content"], "it is late");
        node.stop().await;
    }

    async fn unknown_chats_and_bad_queries_are_refused(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.get("/v1/users/1/chats/group/9").await.problem(404, "not_found");
        make(client, 9, &[2]).await;
        client.get("/v1/users/1/chats/group/9").await.problem(403, "forbidden");
        assert_eq!(client.get("/v1/users/1/chats/group/x").await.pointers(400, "invalid_path"), ["group"]);
        assert_eq!(client.get("/v1/users/1/chats/direct/0").await.pointers(400, "invalid_path"), ["peer"]);
        assert_eq!(client.get("/v1/users/1/chats?unread=yes").await.pointers(400, "invalid_query"), ["unread"]);
        assert_eq!(client.get("/v1/users/1/chats?limit=101").await.pointers(400, "invalid_query"), ["limit"]);
        client.get("/v1/users/1/chats?cursor=x").await.problem(400, "invalid_cursor");
        client.get("/v1/users/1/chats?wait=1").await.problem(400, "wait_needs_tag");
        node.stop().await;
    }

    async fn a_poll_has_a_tag_and_wakes(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        direct(client, 3, 1, "d-1").await;
        for path in ["/v1/users/1/chats", "/v1/users/1/chats/group/9", "/v1/users/1/chats/direct/3"] {
            let first = client.get(path).await;
            let tag = first.header("etag").to_owned();
            assert_eq!(client.get_if_changed(path, &tag).await.status, 304, "{path}");
            let waits = async { client.get_if_changed(&format!("{path}?wait=30"), &tag).await };
            let writes = async {
                send(client, 9, 2, &format!("wake-{}", path.len())).await;
                direct(client, 3, 1, &format!("wake-{}", path.len())).await;
            };
            let (woken, ()) = tokio::join!(waits, writes);
            assert_eq!(woken.status, 200, "{path}");
            assert_ne!(woken.header("etag"), tag);
        }
        for list in ["/v1/users/1/chats", "/v1/users/1/directs", "/v1/users/1/groups"] {
            let page = format!("{list}?limit=1");
            if list.ends_with("directs") {
                direct(client, 4, 1, "d-2").await;
            } else if list.ends_with("groups") {
                make(client, 10, &[1, 2]).await;
            }
            let held = client.get_if_changed(&format!("{page}&wait=30"), "W/\"old\"").await;
            let link = held.header("link").split(['<', '>']).nth(1).unwrap().to_owned();
            assert_eq!(client.get(&link).await.ok()["items"].as_array().unwrap().len(), 1, "{link} is asked without a tag");
        }
        node.stop().await;
    }

    async fn all_chats_are_read_at_once(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        make(client, 8, &[1, 2]).await;
        for n in 0..3 {
            send(client, 9, 2, &format!("g-{n}")).await;
            send(client, 8, 2, &format!("g-{n}")).await;
        }
        let first = direct(client, 3, 1, "d-1").await;
        direct(client, 3, 1, "d-2").await;
        direct(client, 4, 1, "d-3").await;
        let sum = |summary: &Value| summary["chats"]["unread"].as_i64().unwrap();
        let summary = client.post("/v1/users/1/chats/read", &json!({"up_to": {"groups": {"9": 2}, "directs": {"3": first}}})).await.ok();
        assert_eq!(sum(&summary), 1 + 3 + 1 + 1);
        let revision = summary["revision"].as_i64().unwrap();
        let summary = client.post("/v1/users/1/chats/read", &json!({})).await.ok();
        assert_eq!((sum(&summary), summary["revision"].as_i64().unwrap()), (0, revision + 1), "one transaction");
        let again = client.post("/v1/users/1/chats/read", &json!({})).await.ok();
        assert_eq!(again["revision"], summary["revision"], "a repeat changes nothing");
        send(client, 9, 2, "later").await;
        assert_eq!(unread(client, 1).await, ["group/9"]);
        for (bad, pointer) in [
            (json!({"up_to": {"groups": {"9": -1}}}), "/up_to/groups/9"),
            (json!({"up_to": {"directs": {"3": 9_007_199_254_740_992_i64}}}), "/up_to/directs/3"),
            (json!({"up_to": {"group": {}}}), "/up_to/group"),
            (json!({"up_to": null}), "/up_to"),
        ] {
            assert_eq!(client.post("/v1/users/1/chats/read", &bad).await.pointers(422, "invalid_body"), [pointer], "{bad}");
        }
        let stranger = json!({"up_to": {"directs": {"4": 1}, "groups": {"9": 4, "77": 1}}});
        assert_eq!(client.post("/v1/users/1/chats/read", &stranger).await.pointers(404, "not_found"), ["/up_to/groups/77"]);
        assert_eq!(unread(client, 1).await, ["group/9"], "all or nothing");
        node.stop().await;
    }

    async fn the_list_equals_a_scan_over_all_messages(world: World) {
        let nodes = world.nodes().await;
        let mut dice = Dice::new(7);
        // By chat of user 1: the order of the last message, and the numbers of what is unread.
        let mut model: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for group in 1..=4 {
            make(&nodes[0].client, group, &[1, 2]).await;
        }
        for step in 1..=60_u64 {
            let client = &nodes[dice.roll(nodes.len())].client;
            let which = i64::try_from(1 + dice.roll(4)).unwrap();
            match dice.roll(4) {
                0 => {
                    send(client, which, 2, &format!("s-{step}")).await.ok();
                    let of = model.entry(format!("group/{which}")).or_default();
                    *of = (step, of.1 + 1);
                }
                1 => {
                    direct(client, 10 + which, 1, &format!("s-{step}")).await;
                    let of = model.entry(format!("direct/{}", 10 + which)).or_default();
                    *of = (step, of.1 + 1);
                }
                2 => {
                    client.post(&format!("/v1/users/1/groups/{which}/read"), &json!({})).await.ok();
                    model.entry(format!("group/{which}")).and_modify(|of| of.1 = 0);
                }
                _ => {
                    client.post(&format!("/v1/users/1/directs/{}/read", 10 + which), &json!({})).await.ok();
                    model.entry(format!("direct/{}", 10 + which)).and_modify(|of| of.1 = 0);
                }
            }
            // Two messages of one millisecond have no order.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let mut expected: Vec<_> = model.iter().collect();
        expected.sort_by_key(|(_, (at, _))| std::cmp::Reverse(*at));
        let names: Vec<_> = expected.iter().map(|(name, _)| (*name).clone()).collect();
        let unread_names: Vec<_> = expected.iter().filter(|(_, (_, unread))| *unread > 0).map(|(name, _)| (*name).clone()).collect();
        for node in &nodes {
            eventually("each node shows the list", async || {
                let shown = order(&node.client, 1).await;
                shown[..names.len()] == names && unread(&node.client, 1).await == unread_names
            })
            .await;
        }
        Node::stop_all(nodes).await;
    }
}
