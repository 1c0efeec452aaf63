//! What a mute, or a block, keeps from its user, and that all of it comes back.

use serde_json::{Value, json};

use super::{check, mute, notify, numbers, send, unmute};
use crate::both_tiers;
use crate::features::feed::{feed, post};
use crate::support::{Client, Node, eventually};

const ME: i64 = 9;

/// Unread and level of a direct chat, in each of the places that show it.
async fn chat(client: &Client, peer: i64) -> (i64, String) {
    let one = client.get(&format!("/v1/users/{ME}/directs/{peer}")).await.ok();
    let in_chats = client.get(&format!("/v1/users/{ME}/chats/direct/{peer}")).await.ok();
    let of = |chat: &Value| (chat["unread"].as_i64().unwrap(), chat["level"].as_str().unwrap().to_owned());
    assert_eq!(of(&one), of(&in_chats));
    for (path, id) in [("directs", "peer_id"), ("chats", "id")] {
        let peer = peer.to_string();
        let listed = client.walk(&format!("/v1/users/{ME}/{path}"), 5).await;
        let found = listed.iter().find(|chat| chat[id] == peer);
        assert!(found.is_none_or(|found| of(found) == of(&one)), "{path}: {listed:?} {one}");
        assert!(found.is_some() || one["last_seq"] == 0, "{path}: {listed:?}");
    }
    of(&one)
}

/// Silences a user in one way, and ends that.
async fn silence(client: &Client, by: &str, target: i64, on: bool) {
    let path = format!("/v1/users/{ME}/{by}/{target}");
    if on { drop(client.put(&path, &json!({})).await.ok()) } else { assert_eq!(client.delete(&path).await.status, 204) }
}

fn level(silent: bool) -> String {
    if silent { "none" } else { "all" }.to_owned()
}

async fn silent_chats_count_in_no_sum(nodes: &[Node], by: &str) {
    let (client, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
    for (sender, id) in [(1, "a"), (1, "b"), (2, "a")] {
        send(client, sender, ME, id).await;
    }
    assert_eq!(numbers(client, ME).await, [3, 2, 3, 0]);
    silence(client, by, 1, true).await;
    for client in [client, other] {
        assert_eq!(
            (numbers(client, ME).await, chat(client, 1).await, chat(client, 2).await),
            ([1, 1, 1, 0], (2, level(true)), (1, level(false)))
        );
    }
    // A level of its own does not show through, and applies afterwards.
    let set = client.put(&format!("/v1/users/{ME}/directs/2/settings"), &json!({"level": "none"})).await.ok();
    assert_eq!((set["level"].as_str(), numbers(other, ME).await), (Some("none"), [0, 0, 0, 0]));
    silence(other, by, 2, true).await;
    silence(other, by, 2, false).await;
    assert_eq!((numbers(client, ME).await, chat(client, 2).await.1), ([0, 0, 0, 0], level(true)));
    client.put(&format!("/v1/users/{ME}/directs/2/settings"), &json!({"level": "all"})).await.ok();
    // What is read meanwhile stays read.
    let read = client.post(&format!("/v1/users/{ME}/directs/1/read"), &json!({"up_to": 1})).await.ok();
    assert_eq!((read["unread"].as_i64(), numbers(other, ME).await), (Some(1), [1, 1, 1, 0]));
    // The first message of a chat comes after the silence.
    silence(client, by, 3, true).await;
    assert_eq!(chat(client, 3).await, (0, level(true)));
    if by == "mutes" {
        send(other, 3, ME, "a").await;
        send(other, 1, ME, "c").await;
        assert_eq!((numbers(client, ME).await, chat(client, 3).await), ([1, 1, 1, 0], (1, level(true))));
    }
    silence(other, by, 1, false).await;
    silence(other, by, 3, false).await;
    let expected = if by == "mutes" { [4, 3, 4, 0] } else { [2, 2, 2, 0] };
    assert_eq!((numbers(client, ME).await, numbers(other, ME).await), (expected, expected));
    check(&nodes[0], &[ME, 1, 2, 3]).await;
}

async fn acts_of_a_silent_actor_stay_out_of_the_list(node: &Node, by: &str) {
    let client = &node.client;
    let list = async || {
        let items = client.walk(&format!("/v1/users/{ME}/notifications"), 4).await;
        items.iter().map(|item| (item["count"].as_i64().unwrap(), item["actors"].to_string())).collect::<Vec<_>>()
    };
    let unread = async || client.summary(ME).await["notifications"]["like"]["unread"].as_i64().unwrap_or(0);
    notify(client, 1, &[ME, 8], None).await;
    let grouped = notify(client, 1, &[ME], Some("post-1")).await;
    silence(client, by, 1, true).await;
    let alone = notify(client, 1, &[ME, 8], None).await;
    notify(client, 1, &[ME], Some("post-1")).await;
    notify(client, 1, &[ME], Some("post-2")).await;
    notify(client, 2, &[ME], Some("post-1")).await;
    let expected = [(2, r#"["2","1"]"#.to_owned()), (1, r#"["1"]"#.to_owned())];
    assert_eq!((list().await, unread().await), (expected.to_vec(), 2));
    assert_eq!(client.summary(8).await["notifications"]["like"]["unread"], 2, "others get it");
    // It counts among the receivers, and nobody can read it.
    client.post(&format!("/v1/users/{ME}/notifications/{alone}/read"), &json!({})).await.problem(404, "not_found");
    client.post(&format!("/v1/users/8/notifications/{alone}/read"), &json!({})).await.ok();
    client.post(&format!("/v1/users/{ME}/notifications/read"), &json!({"all": true})).await.ok();
    let sent = client.get(&format!("/v1/notifications/{alone}")).await.ok();
    assert_eq!((&sent["recipient_count"], &sent["read_count"]), (&json!(2), &json!(1)));
    assert_eq!(client.put(&format!("/v1/notifications/{alone}"), &json!({"title": "Another"})).await.ok()["recipient_count"], 2);
    silence(client, by, 1, false).await;
    assert_eq!((list().await, unread().await), (expected.to_vec(), 0));
    notify(client, 1, &[ME], None).await;
    assert_eq!((list().await.len(), unread().await), (3, 1), "what is sent now is shown");
    for id in [&alone, &grouped] {
        assert_eq!(client.delete(&format!("/v1/notifications/{id}")).await.status, 204);
    }
    assert_eq!(list().await, [(1, r#"["1"]"#.to_owned()), (1, r#"["2"]"#.to_owned()), (1, r#"["1"]"#.to_owned())]);
    check(node, &[ME, 8]).await;
}

both_tiers! {
    async fn a_muted_peer_counts_in_no_sum(world: World) {
        let nodes = world.nodes().await;
        silent_chats_count_in_no_sum(&nodes, "mutes").await;
        Node::stop_all(nodes).await;
    }

    async fn a_blocked_peer_counts_in_no_sum(world: World) {
        let nodes = world.nodes().await;
        silent_chats_count_in_no_sum(&nodes, "blocks").await;
        Node::stop_all(nodes).await;
    }

    async fn a_muted_actor_is_not_notified_of(world: World) {
        let node = world.node().await;
        acts_of_a_silent_actor_stay_out_of_the_list(&node, "mutes").await;
        node.stop().await;
    }

    async fn a_blocked_actor_is_not_notified_of(world: World) {
        let node = world.node().await;
        acts_of_a_silent_actor_stay_out_of_the_list(&node, "blocks").await;
        node.stop().await;
    }

    /// A mute and a block of one user hold each for itself.
    async fn a_mute_and_a_block_are_two_reasons(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 1, ME, "a").await;
        for (first, second) in [("mutes", "blocks"), ("blocks", "mutes")] {
            silence(client, first, 1, true).await;
            silence(client, second, 1, true).await;
            assert_eq!((numbers(client, ME).await, chat(client, 1).await), ([0, 0, 0, 0], (1, level(true))));
            silence(client, first, 1, false).await;
            assert_eq!((numbers(client, ME).await, chat(client, 1).await), ([0, 0, 0, 0], (1, level(true))));
            silence(client, second, 1, false).await;
            assert_eq!((numbers(client, ME).await, chat(client, 1).await), ([1, 1, 1, 0], (1, level(false))));
        }
        check(&node, &[ME, 1]).await;
        node.stop().await;
    }

    async fn posts_of_a_muted_creator_do_not_count(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        client.summary(ME).await;
        // What was posted through one node shows on the other within two seconds.
        let counts = async |expected: i64| {
            for node in &nodes {
                eventually("the posts are counted", async || feed(&node.client, ME).await.0 == expected).await;
                assert_eq!(numbers(&node.client, ME).await[3], expected);
            }
        };
        for creator in [1, 2] {
            client.follow(ME, creator).await;
        }
        for (creator, id) in [(1, "a"), (1, "b"), (2, "a")] {
            post(client, creator, id).await;
        }
        counts(3).await;
        mute(client, ME, 1).await;
        post(client, 1, "c").await;
        counts(1).await;
        let shown = client.get(&format!("/v1/users/{ME}/feed")).await;
        assert_eq!(shown.body["creators"], 2, "a mute ends no follow");
        let explained = client.get(&format!("/v1/users/{ME}/badges/explain")).await.ok();
        let term = |user: &str, unread: i64, muted: Value| json!([user, unread, muted]);
        let terms: Vec<_> = explained["feed"]["creators"].as_array().unwrap().iter().map(|term| json!([term["user_id"], term["unread"], term["muted"]])).collect();
        assert_eq!(terms, [term("1", 3, json!(true)), term("2", 1, Value::Null)]);
        // Posts of the muted do not even wake who polls.
        post(other, 1, "d").await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        assert_eq!(client.get_if_changed(&format!("/v1/users/{ME}/feed"), shown.header("etag")).await.status, 304);
        // A deleted one, and a look at the feed with a token from before a later post.
        assert_eq!(client.delete("/v1/users/1/posts/a").await.status, 204);
        let token = client.get(&format!("/v1/users/{ME}/feed")).await.ok()["token"].clone();
        post(client, 1, "e").await;
        post(client, 2, "b").await;
        let reset = client.post(&format!("/v1/users/{ME}/feed/reset"), &json!({"up_to": token})).await.ok();
        assert_eq!((&reset["unread"], &reset["creators"]), (&json!(1), &json!(2)));
        unmute(other, ME, 1).await;
        // That after the token, of both.
        counts(2).await;
        mute(other, ME, 1).await;
        client.post(&format!("/v1/users/{ME}/feed/reset"), &json!({})).await.ok();
        counts(0).await;
        post(client, 1, "f").await;
        unmute(client, ME, 1).await;
        counts(1).await;
        // Muted before it is followed; and unfollowed meanwhile.
        mute(client, ME, 3).await;
        client.follow(ME, 3).await;
        post(client, 3, "a").await;
        counts(1).await;
        client.unfollow(ME, 3).await;
        client.follow(ME, 3).await;
        post(client, 3, "b").await;
        unmute(client, ME, 3).await;
        counts(2).await;
        // A block severs the follow, so nothing comes back.
        client.put(&format!("/v1/users/{ME}/blocks/3"), &json!({})).await.ok();
        client.delete(&format!("/v1/users/{ME}/blocks/3")).await;
        counts(1).await;
        check(&nodes[0], &[ME, 1, 2, 3]).await;
        Node::stop_all(nodes).await;
    }

    /// Whatever else shows numbers shows the same: answers of writes, queries, and the list of chats.
    async fn every_other_answer_leaves_out_the_same(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 1, ME, "a").await;
        send(client, 2, ME, "a").await;
        mute(client, ME, 1).await;
        let queried = client.post("/v1/badges/query", &json!({"user_ids": [ME]})).await.ok();
        assert_eq!((&queried["items"][0]["total"], &queried["items"][0]["chats"]["directs"]), (&json!(1), &json!(1)));
        let unread = client.get(&format!("/v1/users/{ME}/chats?unread=true")).await.ok();
        let chats: Vec<_> = unread["items"].as_array().unwrap().iter().map(|chat| (chat["id"].clone(), chat["unread"].clone(), chat["level"].clone())).collect();
        assert_eq!(chats, [(json!("2"), json!(1), json!("all")), (json!("1"), json!(1), json!("none"))]);
        // Reading all chats reads the silent ones, too.
        let summary = client.post(&format!("/v1/users/{ME}/chats/read"), &json!({})).await.ok();
        assert_eq!((&summary["total"], chat(client, 1).await), (&json!(0), (0, level(true))));
        unmute(client, ME, 1).await;
        assert_eq!(numbers(client, ME).await, [0, 0, 0, 0]);
        // Unread again, in silence.
        mute(client, ME, 1).await;
        client.post(&format!("/v1/users/{ME}/directs/1/unread"), &json!({"from": 1})).await.ok();
        assert_eq!((numbers(client, ME).await, chat(client, 1).await), ([0, 0, 0, 0], (1, level(true))));
        unmute(client, ME, 1).await;
        assert_eq!(numbers(client, ME).await, [1, 1, 1, 0]);
        check(&node, &[ME, 1, 2]).await;
        node.stop().await;
    }
}
