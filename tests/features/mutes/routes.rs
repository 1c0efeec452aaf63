//! The routes of mutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::features::relations::mute_http::sweep_mutes;
use reqwest::Method;
use serde_json::{Value, json};

use super::{START, mute, mute_until, muted, time, unmute};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Tier};

async fn relation(client: &Client, user: i64, other: i64) -> Value {
    client.get(&format!("/v1/users/{user}/relations?ids={other}")).await.ok()["items"][0].clone()
}

both_tiers! {
    async fn a_user_mutes_and_unmutes(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        assert_eq!((muted(client, 1).await, relation(client, 1, 2).await["muting"].clone()), (vec![], json!(false)));
        let first = mute(client, 1, 2).await;
        assert_eq!(first, json!({
            "user_id": "2", "following": false, "requested": false, "secret": false, "special": false, "followed_by": false, "mutual": false,
            "blocking": false, "muting": true, "revision": client.summary(1).await["revision"],
        }));
        assert_eq!(mute(client, 1, 2).await, first, "a repeat changes nothing");
        at.fetch_add(5, Ordering::SeqCst);
        mute(client, 1, 9).await;
        assert_eq!(muted(client, 1).await, [9, 2], "newest first");
        let bounded = mute_until(client, 1, 2, START + 1000).await;
        assert_eq!((&bounded["until"], bounded["revision"].as_i64() > first["revision"].as_i64()), (&time(START + 1000), true));
        let page = client.get("/v1/users/1/mutes").await.ok();
        assert_eq!(page["items"], json!([{"user_id": "9", "since": time(START + 5)}, {"user_id": "2", "since": time(START), "until": time(START + 1000)}]));
        assert_eq!(mute(client, 1, 2).await["until"], Value::Null, "a repeat without a time is for ever");
        assert_eq!(relation(client, 1, 2).await["muting"], true);
        assert_eq!(relation(client, 2, 1).await, json!({
            "user_id": "1", "following": false, "requested": false, "secret": false, "special": false, "followed_by": false, "mutual": false,
            "blocking": false, "muting": false,
        }));
        let pairs = json!({"pairs": [{"user_id": 1, "target_id": 2}, {"user_id": 2, "target_id": 1}, {"user_id": 1, "target_id": 7}]});
        let told = client.post("/v1/relations/query", &pairs).await.ok();
        assert_eq!([0, 1, 2].map(|at| told["items"][at]["muting"].clone()), [true, false, false]);
        for _ in 0..2 {
            unmute(client, 1, 2).await;
            assert_eq!((muted(client, 1).await, relation(client, 1, 2).await["muting"].clone()), (vec![9], json!(false)));
        }
        node.stop().await;
    }

    async fn what_is_no_mute_is_refused(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &["--max-mutes", "3"]).await;
        let client = &node.client;
        client.put("/v1/users/1/mutes/1", &json!({})).await.problem(422, "self_relation");
        client.delete("/v1/users/1/mutes/1").await.problem(422, "self_relation");
        for until in [START, START - 1] {
            assert_eq!(client.put("/v1/users/1/mutes/2", &json!({"until": time(until)})).await.pointers(422, "invalid_body"), ["/until"]);
        }
        for body in [json!({"until": null}), json!({"until": 5}), json!({"until": "tomorrow"}), json!({"for": 5})] {
            assert_eq!(client.put("/v1/users/1/mutes/2", &body).await.status, 422, "{body}");
        }
        client.put("/v1/users/1/mutes/0", &json!({})).await.problem(400, "invalid_path");
        assert_eq!(muted(client, 1).await, Vec::<i64>::new());
        mute(client, 1, 2).await;
        mute_until(client, 1, 3, START + 10).await;
        mute(client, 1, 4).await;
        client.put("/v1/users/1/mutes/5", &json!({})).await.problem(409, "too_many");
        mute(client, 1, 3).await;
        mute_until(client, 1, 3, START + 10).await;
        at.store(START + 10, Ordering::SeqCst);
        // One that has ended makes room once it is swept.
        client.put("/v1/users/1/mutes/5", &json!({})).await.problem(409, "too_many");
        assert_eq!(sweep_mutes(&node.app.state().contexts.relations).await.unwrap(), 1);
        mute(client, 1, 5).await;
        client.put("/v1/users/1/mutes/3", &json!({})).await.problem(409, "too_many");
        unmute(client, 1, 4).await;
        mute(client, 1, 3).await;
        assert_eq!(muted(client, 1).await.len(), 3);
        node.stop().await;
    }

    async fn only_the_user_and_services_see_mutes(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (me, other, service) = (node.user(1), node.user(2), node.service());
        me.put("/v1/users/me/mutes/2", &json!({})).await.ok();
        for (method, path) in [
            (Method::GET, "mutes"), (Method::GET, "mutes/ids"), (Method::PUT, "mutes/3"), (Method::DELETE, "mutes/2"),
        ] {
            let asked = Client::send(other.request(method, &format!("/v1/users/1/{path}"))).await;
            assert_eq!(asked.status, 403, "{path}: {}", asked.text);
        }
        other.post("/v1/relations/query", &json!({"pairs": [{"user_id": 1, "target_id": 2}]})).await.problem(403, "forbidden");
        for client in [&me, &service] {
            assert_eq!(client.get("/v1/users/1/mutes/ids").await.ok()["ids"], json!(["2"]));
        }
        let counts = service.get("/v1/users/1/relation-counts").await.ok();
        assert_eq!(counts.as_object().unwrap().keys().filter(|key| key.contains("mut")).collect::<Vec<_>>(), ["mutuals"]);
        assert_eq!(service.get("/v1/events?after=0").await.ok()["items"], json!([]), "no event tells of a mute");
        node.stop().await;
    }

    /// On every node, look-ups and lists show a mute at once; and what others do to the pair keeps it.
    async fn look_ups_follow_mutes_on_every_node(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| &node.client).collect();
        let last = clients[clients.len() - 1];
        let muting = async |expected: bool| {
            for client in &clients {
                assert_eq!(relation(client, 1, 2).await["muting"], expected);
                let found = muted(client, 1).await.contains(&2);
                assert_eq!(found, expected);
            }
        };
        muting(false).await;
        mute(clients[0], 1, 2).await;
        muting(true).await;
        for act in ["following", "blocks"] {
            for (user, other) in [(2, 1), (1, 2)] {
                Client::send(last.request(Method::PUT, &format!("/v1/users/{user}/{act}/{other}"))).await;
                muting(true).await;
                Client::send(clients[0].request(Method::DELETE, &format!("/v1/users/{user}/{act}/{other}"))).await;
                muting(true).await;
            }
        }
        unmute(last, 1, 2).await;
        muting(false).await;
        let blocked = last.put("/v1/users/1/blocks/2", &json!({})).await.ok();
        assert_eq!((&blocked["muting"], blocked["revision"].as_i64()), (&json!(false), last.summary(1).await["revision"].as_i64()));
        last.delete("/v1/users/1/blocks/2").await;
        mute(last, 1, 2).await;
        let followed = last.put("/v1/users/1/following/2", &json!({})).await.ok();
        assert_eq!((&followed["muting"], followed["revision"].as_i64()), (&json!(true), last.summary(1).await["revision"].as_i64()));
        Node::stop_all(nodes).await;
    }

    async fn the_whole_list_is_polled(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let path = "/v1/users/1/mutes/ids";
        let tag = client.get(path).await.header("etag").to_owned();
        mute(client, 5, 1).await;
        mute(client, 2, 1).await;
        assert_eq!(client.get_if_changed(path, &tag).await.status, 304, "what others do");
        let held = format!("{path}?wait=30");
        let tag = client.request(Method::GET, &held).header("if-none-match", "\"x\"");
        let tag = Client::send(tag).await.header("etag").to_owned();
        let waiting = tokio::spawn(Client::send(client.request(Method::GET, &held).header("if-none-match", tag)));
        mute(client, 1, 7).await;
        assert_eq!(waiting.await.unwrap().ok()["ids"], json!(["7"]));
        if world.tier == Tier::Server {
            // As another node has left it in Redis.
            let other = world.node().await;
            assert_eq!(muted(&other.client, 1).await, [7]);
            other.stop().await;
        }
        node.stop().await;
    }
}
