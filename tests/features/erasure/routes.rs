//! What an erased user is to every route.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{erase, erased, node};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Reply, Tier};

/// Every route about this user, as the document has them: method, path, and a body that is valid.
pub fn routes(user: i64) -> Vec<(Method, String, Value)> {
    let routes = routes_of(user, 3, |_| true);
    assert!(routes.len() > 60, "{}", routes.len());
    routes
}

/// Every route of another user that has this one in its path.
fn routes_that_name(user: i64) -> Vec<(Method, String, Value)> {
    let routes = routes_of(3, user, |path| ["{target}", "{fan}", "{peer}"].iter().any(|name| path.contains(name)));
    assert!(routes.len() > 15, "{}", routes.len());
    routes
}

fn routes_of(user: i64, other: i64, is_meant: fn(&str) -> bool) -> Vec<(Method, String, Value)> {
    let document: Value = serde_json::from_str(include_str!("../../../openapi/openapi.json")).unwrap();
    let mut routes = Vec::new();
    for (path, item) in
        document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/v1/users/{user}/") && is_meant(path))
    {
        for method in ["get", "post", "put", "patch", "delete"].into_iter().filter(|method| item.get(method).is_some()) {
            let full = path
                .replace("{user}", &user.to_string())
                .replace("{target}", &other.to_string())
                .replace("{fan}", &other.to_string())
                .replace("{peer}", &other.to_string())
                .replace("{group}", "9")
                .replace("{seq}", "1");
            let full = full.replace("{id}", "1").replace(['{', '}'], "");
            let full = if ["/relations", "/familiar"].iter().any(|end| path.ends_with(end)) { full + "?ids=3" } else { full };
            routes.push((method.to_uppercase().parse().unwrap(), full, body(path, method)));
        }
    }
    routes
}

fn body(path: &str, method: &str) -> Value {
    match (path.trim_start_matches("/v1/users/{user}/"), method) {
        ("badges/{badge}/retract", _) => json!({"by": 1}),
        ("inbox", "post") => json!({"sender_id": "3", "client_id": "a", "content": "x"}),
        ("devices/{device_id}/cursor", _) => json!({"seq": 0}),
        ("devices/{device_id}", "put") => json!({"push": true}),
        ("groups/{group}/settings" | "directs/{peer}/settings", _) => json!({"level": "all"}),
        ("groups/{group}/unread" | "directs/{peer}/unread", _) => json!({"from": 1}),
        ("notifications/read", _) => json!({"all": true}),
        _ => json!({}),
    }
}

/// Sends it, with a body where the method has one.
pub async fn send(client: &Client, (method, path, body): &(Method, String, Value)) -> Reply {
    let request = client.request(method.clone(), path);
    Client::send(if *method == Method::GET || *method == Method::DELETE { request } else { request.json(body) }).await
}

both_tiers! {
    async fn every_route_about_the_user_says_that_it_is_erased(world: World) {
        let mut nodes = vec![node(&world).await];
        if world.tier == Tier::Server {
            nodes.push(node(&world).await);
        }
        let [one, other] = [&nodes.first().unwrap().client, &nodes.last().unwrap().client];
        for client in [one, other] {
            client.get("/v1/users/2/badges").await.ok();
        }
        let location = erase(one, 2).await;
        for client in [one, other] {
            for route in routes(2) {
                let reply = send(client, &route).await;
                assert_eq!((reply.status.as_u16(), reply.body["code"].as_str()), (410, Some("erased")), "{route:?}: {}", reply.text);
                // What answers GET answers HEAD too.
                if route.0 == Method::GET {
                    let head = client.request(Method::HEAD, &route.1).send().await.unwrap();
                    assert_eq!(head.status().as_u16(), 410, "HEAD {}", route.1);
                }
            }
        }
        erased(one, &location).await;
        for route in routes(2) {
            send(other, &route).await.problem(410, "erased");
        }
        Node::stop_all(nodes).await;
    }

    async fn every_route_of_another_that_names_the_user_says_that_it_is_erased(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.post("/v1/users/3/inbox", &json!({"sender_id": "2", "client_id": "a", "content": "of who will be erased"})).await.ok();
        let location = erase(client, 2).await;
        for is_over in [false, true] {
            for route in routes_that_name(2) {
                let reply = send(client, &route).await;
                assert_eq!((reply.status.as_u16(), reply.body["code"].as_str()), (410, Some("erased")), "{is_over}: {route:?}: {}", reply.text);
            }
            erased(client, &location).await;
        }
        node.stop().await;
    }

    async fn who_has_the_answer_of_before_is_told_too(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        // With 3 there is a chat, with 1 there is none.
        client.post("/v1/users/3/inbox", &json!({"sender_id": "2", "client_id": "a", "content": "of who will be erased"})).await.ok();
        let paths = [1, 3].map(|user| ["directs/2", "chats/direct/2", "directs/2/receipts"].map(|path| format!("/v1/users/{user}/{path}")));
        let mut known = Vec::new();
        for path in paths.as_flattened() {
            known.push((path, client.get(path).await.header("etag").to_owned()));
        }
        let location = erase(client, 2).await;
        for is_over in [false, true] {
            for (path, tag) in &known {
                let reply = client.get_if_changed(path, tag).await;
                assert_eq!((reply.status.as_u16(), reply.body["code"].as_str()), (410, Some("erased")), "{is_over}: {path}: {}", reply.text);
            }
            erased(client, &location).await;
        }
        node.stop().await;
    }

    async fn what_names_an_erased_user_is_refused_with_a_pointer(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.put("/v1/groups/9", &json!({})).await.ok();
        client.put("/v1/groups/9/members/1", &json!({})).await.ok();
        erase(client, 2).await;
        for (path, body, pointer) in [
            ("/v1/badges/increment", json!({"items": [{"user_id": 1, "badge": "a"}, {"user_id": 2, "badge": "a"}]}), "/items/1/user_id"),
            ("/v1/badges/retract", json!({"items": [{"user_id": 2, "badge": "a", "by": 1}]}), "/items/0/user_id"),
            ("/v1/badges/query", json!({"user_ids": [1, 2]}), "/user_ids/1"),
            ("/v1/posts", json!({"items": [{"user_id": 1, "post_id": "a"}, {"user_id": 2, "post_id": "a"}]}), "/items/1/user_id"),
            ("/v1/views/items", json!({"items": [{"view": "v", "view_id": "1", "item_id": "a", "actor_id": 2}]}), "/items/0/actor_id"),
            ("/v1/notifications", json!({"type": "a", "title": "x", "recipients": [1, 2]}), "/recipients/1"),
            ("/v1/notifications", json!({"type": "a", "title": "x", "recipients": [1], "actor_id": 2}), "/actor_id"),
            ("/v1/groups/9/members", json!({"user_ids": [3, 2]}), "/user_ids/1"),
            ("/v1/groups/9/messages", json!({"sender_id": 2, "client_id": "a", "content": "x"}), "/sender_id"),
            ("/v1/groups/9/messages", json!({"sender_id": 1, "client_id": "a", "content": "x", "mentions": [2]}), "/mentions/0"),
            ("/v1/users/1/inbox", json!({"sender_id": 2, "client_id": "a", "content": "x"}), "/sender_id"),
            ("/v1/relations/query", json!({"pairs": [{"user_id": 1, "target_id": 2}]}), "/pairs/0/target_id"),
            ("/v1/users/1/chats/read", json!({"up_to": {"directs": {"2": 1}}}), "/up_to/directs/2"),
        ] {
            assert_eq!(client.post(path, &body).await.pointers(410, "erased"), [pointer], "{path} {body}");
        }
        let ids = client.get("/v1/users/1/relations?ids=3,2").await.pointers(410, "erased");
        assert_eq!(ids, ["ids"]);
        for path in ["following/2", "blocks/2", "mutes/2"] {
            client.put(&format!("/v1/users/1/{path}"), &json!({})).await.problem(410, "erased");
        }
        client.put("/v1/groups/9/members/2", &json!({})).await.problem(410, "erased");
        node.stop().await;
    }

    async fn a_poll_that_waits_is_told(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        let summary = client.get("/v1/users/2/badges").await;
        let wait = client.request(Method::GET, "/v1/users/2/badges?wait=30").header("if-none-match", summary.header("etag"));
        let waiting = tokio::spawn(Client::send(wait));
        tokio::time::sleep(Duration::from_millis(300)).await;
        erase(client, 2).await;
        waiting.await.unwrap().problem(410, "erased");
        node.stop().await;
    }

    async fn from_the_answer_on_the_user_is_gone_for_every_route(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.follow(1, 2).await;
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
        client.get("/v1/users/2/badges").await.ok();
        client.get("/v1/users/1/relations?ids=2").await.ok();
        let location = erase(client, 2).await;
        assert_eq!(client.get("/v1/users/1/relations?ids=2").await.pointers(410, "erased"), ["ids"], "at once, though it was asked just before");
        client.get("/v1/users/2/badges").await.problem(410, "erased");
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.problem(410, "erased");
        let items = json!({"items": [{"user_id": 1, "badge": "like"}, {"user_id": 2, "badge": "like"}]});
        assert_eq!(client.post("/v1/badges/increment", &items).await.pointers(410, "erased"), ["/items/1/user_id"]);
        let again = erase(client, 2).await;
        assert_eq!(again, location);
        erased(client, &location).await;
        client.get("/v1/users/2/badges").await.problem(410, "erased");
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.problem(410, "erased");
        assert_eq!(client.get("/v1/users/1/relation-counts").await.ok()["following"], 0);
        assert_eq!(erase(client, 2).await, location, "long after, too");
        node.stop().await;
    }

    async fn the_users_own_token_is_refused_everywhere(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        service.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok();
        let location = erase(&service, 7).await;
        let own = node.user(7);
        for path in ["/v1/broadcasts", "/v1/broadcasts/system", "/v1/dots", "/v1/users/8/posts/count", "/v1/groups/1", &location] {
            own.get(path).await.problem(410, "erased");
            if path != location {
                assert_ne!(node.user(8).get(path).await.status, 410, "{path}");
            }
        }
        node.stop().await;
    }

    async fn an_id_that_was_never_seen_can_be_erased(world: World) {
        let node = node(&world).await;
        let location = erase(&node.client, 77).await;
        node.client.get("/v1/users/77/badges").await.problem(410, "erased");
        erased(&node.client, &location).await;
        node.client.put("/v1/users/1/following/77", &json!({})).await.problem(410, "erased");
        node.stop().await;
    }
}
