//! Rules of chats that hold where several of them meet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::DAY_MS;
use headmark::features::{groups, inbox};
use serde_json::{Map, Value, json};

use crate::both_tiers;
use crate::features::groups::{make, read_one, send};
use crate::support::{CREDENTIALS, Client};

const START: i64 = 1_800_000_000_000;

async fn direct(client: &Client, sender: i64, receiver: i64, id: &str) -> i64 {
    let body = json!({"sender_id": sender, "client_id": id, "content": id});
    client.post(&format!("/v1/users/{receiver}/inbox"), &body).await.ok()["seq"].as_i64().unwrap()
}

async fn chat(client: &Client, path: &str) -> (i64, Option<i64>) {
    let of = client.get(&format!("/v1/users/1/chats/{path}")).await.ok();
    (of["unread"].as_i64().unwrap(), of.get("first_unread_seq").and_then(Value::as_i64))
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

both_tiers! {
    async fn a_last_message_that_expires_is_another_answer(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &["--group-message-days", "30"]).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        send(client, 9, 2, "a").await.ok();
        client.delete("/v1/groups/9/messages/1").await;
        direct(client, 3, 1, "b").await;
        client.post("/v1/users/1/directs/3/read", &json!({})).await.ok();
        direct(client, 4, 1, "c").await;
        let paths = ["/v1/users/1/chats", "/v1/users/1/chats/group/9", "/v1/users/1/chats/direct/3", "/v1/users/1/directs/4"];
        let mut before = Vec::new();
        for path in paths { before.push(client.get(path).await); }
        assert!(before[0].body["items"].as_array().unwrap().iter().all(|chat| !chat["last"].is_null()), "{}", before[0].text);
        assert_eq!(before[3].body["first_unread_seq"], 2);

        at.fetch_add(40 * DAY_MS, Ordering::SeqCst);
        let contexts = &node.app.state().contexts;
        groups::expiry::sweep(&contexts.groups, &mut groups::expiry::Walk::default()).await.unwrap();
        inbox::expiry::sweep(&contexts.inbox, &mut inbox::expiry::Walk::default()).await.unwrap();
        for (path, before) in paths.iter().zip(&before) {
            let after = client.get(path).await;
            assert_ne!(after.text, before.text, "{path}");
            assert_ne!(after.header("etag"), before.header("etag"), "{path}");
        }
        let list = client.get(paths[0]).await.ok();
        assert!(list["items"].as_array().unwrap().iter().all(|chat| chat["last"].is_null()), "{list}");
        assert_eq!(ids(&list), ids(&before[0].body), "no activity");
        assert_eq!(client.get(paths[3]).await.ok()["unread"], 1, "it counts until it is read");
        node.stop().await;
    }

    async fn a_walk_meets_each_chat_that_stays_once(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for peer in 11..=18 {
            direct(client, peer, 1, "a").await;
            at.fetch_add(1000, Ordering::SeqCst);
        }
        let first = client.get("/v1/users/1/chats?limit=3").await.ok();
        assert_eq!(ids(&first), ["18", "17", "16"]);
        // One of the next page and one that was shown go to the top.
        direct(client, 15, 1, "b").await;
        at.fetch_add(1000, Ordering::SeqCst);
        direct(client, 17, 1, "b").await;
        client.post("/v1/users/1/directs/13/read", &json!({})).await.ok();
        let second = client.get(&format!("/v1/users/1/chats?limit=3&cursor={}", first["next_cursor"].as_str().unwrap())).await.ok();
        assert_eq!(ids(&second), ["14", "13", "12"]);
        let third = client.get(&format!("/v1/users/1/chats?limit=3&cursor={}", second["next_cursor"].as_str().unwrap())).await.ok();
        assert_eq!((ids(&third), &third["next_cursor"]), (vec!["11"], &Value::Null));
        assert_eq!(ids(&client.get("/v1/users/1/chats?limit=2").await.ok()), ["17", "15"]);
        // The cursor of one list does not fit another, nor another user.
        let cursor = first["next_cursor"].as_str().unwrap();
        for path in ["/v1/users/2/chats", "/v1/users/1/groups", "/v1/users/1/directs"] {
            client.get(&format!("{path}?cursor={cursor}")).await.problem(400, "invalid_cursor");
        }
        node.stop().await;
    }

    async fn own_and_recalled_messages_are_never_the_first_unread(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for (sender, id) in [(2, "a"), (2, "b"), (1, "c"), (2, "d")] {
            send(client, 9, sender, id).await.ok();
            direct(client, sender, 3 - sender, id).await;
        }
        for (group, direct) in [("groups/9", "group/9"), ("directs/2", "direct/2")] {
            client.post(&format!("/v1/users/1/{group}/read"), &json!({})).await.ok();
            for (from, shown) in [(3, (1, Some(4))), (2, (2, Some(2))), (3, (2, Some(2))), (1, (3, Some(1)))] {
                client.post(&format!("/v1/users/1/{group}/unread"), &json!({"from": from})).await.ok();
                assert_eq!(chat(client, direct).await, shown, "{group} from {from}: the third is an own one");
            }
            client.post(&format!("/v1/users/1/{group}/read"), &json!({"up_to": 1})).await.ok();
        }
        client.delete("/v1/groups/9/messages/2").await;
        assert_eq!(client.delete("/v1/users/2/directs/1/messages/2").await.status, 204);
        for path in ["group/9", "direct/2"] { assert_eq!(chat(client, path).await, (1, Some(4)), "{path}"); }
        // Read alone, then unread from there on, then read alone again.
        read_one(client, 1, 9, 4).await.ok();
        assert_eq!(chat(client, "group/9").await, (0, None));
        client.post("/v1/users/1/groups/9/unread", &json!({"from": 4})).await.ok();
        assert_eq!(chat(client, "group/9").await, (1, Some(4)));
        read_one(client, 1, 9, 4).await.ok();
        assert_eq!(chat(client, "group/9").await, (0, None));
        // From a row that tells of a recall on there is nothing to read.
        client.post("/v1/users/1/directs/2/read", &json!({})).await.ok();
        client.post("/v1/users/1/directs/2/unread", &json!({"from": 5})).await.ok();
        assert_eq!(chat(client, "direct/2").await, (0, None));
        for (path, from) in [("groups/9", 5), ("directs/2", 6)] {
            client.post(&format!("/v1/users/1/{path}/unread"), &json!({"from": from})).await.problem(404, "not_found");
        }
        node.stop().await;
    }

    async fn leaving_ends_what_a_membership_had(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        let body = json!({"sender_id": 2, "client_id": "a", "content": "x", "mentions": [1, 2]});
        let sent = client.post("/v1/groups/9/messages", &body).await.ok();
        client.put("/v1/users/1/groups/9/settings", &json!({"level": "mentions"})).await.ok();
        let chats = async |user: i64| client.summary(user).await["chats"].clone();
        assert_eq!(chats(1).await, json!({"unread": 1, "mentions": 1, "groups": 1, "directs": 0}));
        assert_eq!(chats(2).await["mentions"], 0, "a sender is not mentioned");
        client.delete("/v1/groups/9/members/1").await;
        assert_eq!(chats(1).await, json!({"unread": 0, "mentions": 0, "groups": 0, "directs": 0}));
        assert_eq!(client.get("/v1/users/1/chats").await.ok()["items"], json!([]));
        let again = client.post("/v1/groups/9/messages", &body).await;
        assert_eq!((again.status.as_u16(), &again.body["seq"], &again.body["sent_at"]), (200, &sent["seq"], &sent["sent_at"]));
        client.post("/v1/groups/9/messages", &json!({"sender_id": 2, "client_id": "b", "content": "x", "mentions": [1]})).await.problem(422, "invalid_body");
        client.put("/v1/groups/9/members/1", &json!({})).await.ok();
        let of = client.get("/v1/users/1/chats/group/9").await.ok();
        assert_eq!((&of["level"], &of["unread"], &of["mentions"], &of["last"], &of["head"]), (&json!("all"), &json!(0), &json!(0), &Value::Null, &json!(1)));
        client.post("/v1/users/1/groups/9/unread", &json!({"from": 1})).await.problem(404, "not_found");
        client.put("/v1/users/1/directs/2/settings", &json!({"level": "none", "until": "2020-01-01T00:00:00Z"})).await.problem(422, "invalid_body");
        assert_eq!(client.put("/v1/users/1/directs/2/settings", &json!({"level": "mentions"})).await.pointers(422, "invalid_body"), ["/level"]);
        node.stop().await;
    }

    async fn reading_many_chats_names_what_is_wrong(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        make(client, 8, &[2]).await;
        send(client, 9, 2, "a").await.ok();
        let path = "/v1/users/1/chats/read";
        for array in [json!([]), json!([{"9": 1}, {}])] {
            assert_eq!(client.post(path, &json!({"up_to": array})).await.pointers(422, "invalid_body"), ["/up_to"]);
        }
        let many = |from: i64| (from..from + 1001).map(|id| (id.to_string(), json!(1))).collect::<Map<_, _>>();
        for (bad, pointer) in [(json!({"groups": many(100)}), "/up_to/groups"), (json!({"directs": many(100)}), "/up_to/directs")] {
            assert_eq!(client.post(path, &json!({"up_to": bad})).await.pointers(422, "invalid_body"), [pointer]);
        }
        for kind in ["groups", "directs"] {
            for bad in ["x", "0", "-1", "01"] {
                let reply = client.post(path, &json!({"up_to": {kind: {bad: 1}}})).await;
                assert_eq!((reply.status.as_u16(), reply.body["code"].as_str()), (422, Some("invalid_body")), "{kind} {bad}");
            }
        }
        assert_eq!(client.post(path, &json!({"up_to": {"groups": {"9": 1, "8": 1}}})).await.pointers(403, "forbidden"), ["/up_to/groups/8"]);
        assert_eq!(client.summary(1).await["chats"]["unread"], 1, "all or nothing");
        // Nobody has to have a chat with a peer; an empty choice is none; what is beyond the head is what is there.
        assert_eq!(client.post(path, &json!({"up_to": {}})).await.ok()["chats"]["unread"], 1);
        assert_eq!(client.post(path, &json!({"up_to": {"groups": {"9": 77}, "directs": {"55": 5}}})).await.ok()["chats"]["unread"], 0);
        send(client, 9, 2, "b").await.ok();
        assert_eq!(client.summary(1).await["chats"]["unread"], 1);
        let listed = client.get("/v1/users/1/chats").await.ok();
        assert_eq!(ids(&listed), ["9"], "to have read nothing makes no chat");
        node.stop().await;
    }

    async fn chats_are_for_their_user(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        make(&service, 9, &[1, 2]).await;
        send(&service, 9, 1, "a").await.ok();
        direct(&service, 3, 1, "a").await;
        let stranger = node.user(5);
        let own = ["chats", "chats/group/9", "chats/direct/3", "groups", "groups/9", "directs", "directs/3", "directs/3/messages",
            "directs/3/receipts", "inbox", "devices", "settings"];
        for path in own {
            stranger.get(&format!("/v1/users/1/{path}")).await.problem(403, "forbidden");
            assert_eq!(node.user(1).get(&format!("/v1/users/me/{path}")).await.status, 200, "{path}");
            service.get(&format!("/v1/users/me/{path}")).await.problem(403, "forbidden");
        }
        for path in ["messages", "messages/changes", "members", "receipts?from=1&to=1", "messages/1/receipts"] {
            stranger.get(&format!("/v1/groups/9/{path}")).await.problem(403, "forbidden");
            service.get(&format!("/v1/groups/77/{path}")).await.problem(404, "not_found");
        }
        node.user(2).get("/v1/groups/9/messages/1/receipts").await.problem(403, "forbidden");
        for path in ["groups/9/read", "groups/9/messages/1/read", "groups/9/unread", "directs/3/read", "directs/3/unread", "chats/read"] {
            stranger.post(&format!("/v1/users/1/{path}"), &json!({"from": 1})).await.problem(403, "forbidden");
        }
        let as_another = json!({"sender_id": 1, "client_id": "b", "content": "x"});
        stranger.post("/v1/groups/9/messages", &as_another).await.problem(403, "forbidden");
        node.user(2).post("/v1/groups/9/messages", &as_another).await.problem(403, "forbidden");
        stranger.post("/v1/users/2/inbox", &as_another).await.problem(403, "forbidden");
        assert_eq!(stranger.delete("/v1/groups/9/messages/1").await.status, 403);
        assert_eq!(stranger.delete("/v1/users/1/directs/3/messages/1").await.status, 403);
        node.user(1).put("/v1/groups/9", &json!({})).await.problem(403, "forbidden");
        node.user(1).put("/v1/groups/9/members/5", &json!({})).await.problem(403, "forbidden");
        node.stop().await;
    }

    async fn each_poll_of_chats_has_a_tag_of_its_own(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        make(client, 8, &[1, 2]).await;
        for group in [8, 9] { send(client, group, 1, "a").await.ok(); }
        for peer in [2, 3] { direct(client, peer, 1, "a").await; }
        let users = ["chats", "chats?unread=true", "chats?limit=1", "chats/group/9", "chats/group/8", "chats/direct/3", "chats/direct/2", "groups",
            "groups/9", "groups/8", "directs", "directs/3", "directs/2", "directs/3/receipts", "directs/2/receipts"];
        let paths = users.iter().flat_map(|path| [1, 2].map(|user| format!("/v1/users/{user}/{path}")));
        let shared = ["messages/1/receipts", "receipts?from=1&to=1", "messages?before=2", "messages?around=1"];
        let paths: Vec<_> = paths.chain(shared.iter().flat_map(|path| [8, 9].map(|group| format!("/v1/groups/{group}/{path}")))).collect();
        let mut tags = BTreeSet::new();
        for path in &paths {
            let reply = client.get(path).await;
            assert_eq!(reply.status, 200, "{path} {}", reply.text);
            assert!(tags.insert(reply.header("etag").to_owned()), "{path}");
            assert!(reply.header("etag").starts_with("W/"), "{path}");
            let between = if path.contains('?') { '&' } else { '?' };
            client.get(&format!("{path}{between}wait=1")).await.problem(400, "wait_needs_tag");
            assert_eq!(client.get(&format!("{path}{between}wait=61")).await.pointers(400, "invalid_query"), ["wait"], "{path}");
        }
        // Nobody's tag fits another's answer.
        let all = tags.into_iter().collect::<Vec<_>>();
        for path in &paths {
            let mine = client.get(path).await.header("etag").to_owned();
            let others = all.iter().filter(|tag| **tag != mine).cloned().collect::<Vec<_>>().join(", ");
            assert_eq!(client.get_if_changed(path, &others).await.status, 200, "{path}");
        }
        // After a position a wait needs no tag, and ends with an empty page.
        for path in ["/v1/groups/9/messages?after=1", "/v1/groups/9/messages/changes?after=0", "/v1/users/1/inbox?after=2"] {
            assert_eq!(client.get(&format!("{path}&wait=1")).await.ok()["items"], json!([]), "{path}");
        }
        node.stop().await;
    }

    async fn reading_all_chats_also_passes_what_was_recalled(world: World) {
        let node = world.node().await;
        let client = &node.client;
        direct(client, 7, 1, "a").await;
        direct(client, 8, 1, "b").await;
        let own = client.get("/v1/users/7/chats/direct/1").await.ok()["head"].clone();
        assert_eq!(client.delete(&format!("/v1/users/7/directs/1/messages/{own}")).await.status, 204);
        let places = async |peer: i64| {
            let of = client.get(&format!("/v1/users/1/chats/direct/{peer}")).await.ok();
            (of["unread"].as_i64().unwrap(), of["head"].as_i64().unwrap(), of["read_seq"].as_i64().unwrap())
        };
        assert_eq!((places(7).await, places(8).await), ((0, 1, 0), (1, 2, 0)));
        client.post("/v1/users/1/chats/read", &json!({})).await.ok();
        assert_eq!((places(7).await, places(8).await), ((0, 1, 1), (0, 2, 2)));
        let revision = client.summary(1).await["revision"].clone();
        assert_eq!(client.post("/v1/users/1/chats/read", &json!({})).await.ok()["revision"], revision, "a repeat changes nothing");
        node.stop().await;
    }

    async fn a_direct_chat_without_a_message_has_no_time_and_is_in_no_list(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.put("/v1/users/1/directs/7/settings", &json!({"level": "none"})).await.ok();
        for path in ["chats/direct/7", "directs/7", "chats/direct/8", "directs/8"] {
            let of = client.get(&format!("/v1/users/1/{path}")).await.ok();
            assert!(of.get("last_at").is_none(), "{path}: {of}");
        }
        assert_eq!(client.get("/v1/users/1/directs/7").await.ok()["level"], "none");
        for list in ["chats", "directs"] {
            assert_eq!(client.get(&format!("/v1/users/1/{list}")).await.ok()["items"], json!([]), "{list}");
        }
        direct(client, 7, 1, "a").await;
        for list in ["chats", "directs"] {
            let items = client.get(&format!("/v1/users/1/{list}")).await.ok()["items"].clone();
            assert_eq!((items.as_array().unwrap().len(), &items[0]["level"]), (1, &json!("none")), "{list}");
            assert!(items[0]["last_at"].is_string(), "{list}");
        }
        node.stop().await;
    }
}
