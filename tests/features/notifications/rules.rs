//! What is refused, what is bounded, what a retry changes, and who may do what.

use reqwest::Method;
use serde_json::{Value, json};

use super::{mark, notification, send, seqs, shown};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node};

both_tiers! {
    async fn bad_requests_are_refused_and_change_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let id = send(client, "notice", &[1]).await;
        let with = |field: &str, value: Value| {
            let mut body = notification("notice", &[1, 2]);
            body[field] = value;
            body
        };
        let many: Vec<i64> = (1..=10_001).collect();
        for (body, pointer) in [
            (with("type", json!("Notice")), "/type"),
            (with("title", json!("")), "/title"),
            (with("title", json!("é".repeat(201))), "/title"),
            (with("content", json!("é".repeat(10_001))), "/content"),
            (with("content", Value::Null), "/content"),
            (with("recipients", json!([])), "/recipients"),
            (with("recipients", json!(many)), "/recipients"),
            (with("recipients", json!([1, 2, "1"])), "/recipients/2"),
            (with("recipients", json!([1, 0])), "/recipients/1"),
            (with("recipient", json!([1])), "/recipient"),
            (with("title", Value::Null), "/title"),
            (with("data", json!([1])), "/data"),
            (with("data", Value::Null), "/data"),
            (with("data", json!({"x": "y".repeat(16 * 1024)})), "/data"),
            (with("group_key", json!("")), "/group_key"),
            (with("group_key", json!("a b")), "/group_key"),
            (with("group_key", json!("a".repeat(129))), "/group_key"),
            (with("actor_id", json!(0)), "/actor_id"),
        ] {
            assert_eq!(client.post("/v1/notifications", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        let longest = json!({"type": "notice", "title": "é".repeat(200), "content": "é".repeat(10_000), "recipients": ["9"]});
        assert_eq!(client.post("/v1/notifications", &longest).await.ok()["content"], longest["content"]);
        let path = "/v1/users/1/notifications/read";
        let named: Vec<i64> = (1..=1001).collect();
        for (body, pointer) in [
            (json!({}), ""),
            (json!({"all": true, "type": "notice"}), ""),
            (json!({"ids": [1], "all": true}), ""),
            (json!({"up_to_seq": 5}), ""),
            (json!({"all": false}), "/all"),
            (json!({"all": null}), "/all"),
            (json!({"type": null}), "/type"),
            (json!({"type": "A"}), "/type"),
            (json!({"ids": []}), "/ids"),
            (json!({"ids": named}), "/ids"),
            (json!({"ids": ["5", 5]}), "/ids/1"),
            (json!({"ids": ["05"]}), "/ids/0"),
            (json!({"all": true, "up_to_seq": -1}), "/up_to_seq"),
            (json!({"all": true, "up_to_seq": 9_007_199_254_740_992_i64}), "/up_to_seq"),
            (json!({"type": "notice", "up_to_seq": i64::MAX}), "/up_to_seq"),
            (json!({"all": true, "up_to": 5}), "/up_to"),
        ] {
            assert_eq!(client.post(path, &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        for (body, pointer) in [
            (json!({"title": ""}), "/title"),
            (json!({"title": null}), "/title"),
            (json!({"content": "é".repeat(10_001)}), "/content"),
            (json!({"data": 5}), "/data"),
            (json!({"group_key": "x"}), "/group_key"),
        ] {
            assert_eq!(client.put(&format!("/v1/notifications/{id}"), &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        client.put("/v1/notifications/7", &json!({"title": "x"})).await.problem(404, "not_found");
        for (body, pointer) in [(json!({"up_to_seq": -1}), "/up_to_seq"), (json!({"up_to": 5}), "/up_to"), (json!({"up_to_seq": null}), "/up_to_seq")] {
            assert_eq!(client.post("/v1/users/1/notifications/seen", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        client.get("/v1/users/1/notifications?wait=1").await.problem(400, "wait_needs_tag");
        assert_eq!(client.post(path, &json!({"ids": [id, 7, 8]})).await.pointers(404, "not_found"), ["/ids/1", "/ids/2"]);
        for (user, unknown) in [(1, "7"), (2, id.as_str())] {
            mark(client, user, unknown, "read").await.problem(404, "not_found");
            mark(client, user, unknown, "unread").await.problem(404, "not_found");
            client.delete(&format!("/v1/users/{user}/notifications/{unknown}")).await.problem(404, "not_found");
        }
        client.get("/v1/notifications/7").await.problem(404, "not_found");
        client.delete("/v1/notifications/7").await.problem(404, "not_found");
        for bad in ["0", "x", "-1", "9223372036854775808"] {
            assert_eq!(client.get(&format!("/v1/notifications/{bad}")).await.pointers(400, "invalid_path"), ["notification_id"]);
            assert_eq!(mark(client, 1, bad, "read").await.pointers(400, "invalid_path"), ["id"]);
        }
        assert_eq!(client.post(&format!("/v1/users/1/notifications/{id}/read"), &json!({"at": 5})).await.pointers(422, "invalid_body"), ["/at"]);
        client.delete(&format!("/v1/users/1/notifications/{id}?all=true")).await.problem(400, "invalid_query");
        let summary = client.summary(1).await;
        assert_eq!((&summary["revision"], &summary["total"]), (&json!(2), &json!(1)));
        node.stop().await;
    }

    async fn data_that_not_every_reader_can_hold_is_refused(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let id = send(client, "notice", &[1]).await;
        for (data, status, code, pointer) in [
            (r#"{"x":"\ud800"}"#, 400, "malformed_json", None),
            (r#"{"x":[{"\udc00":1}]}"#, 400, "malformed_json", None),
            (r#"{"x":1e999}"#, 422, "invalid_body", Some("/data")),
            (r#"{"x":{"y":[-1e999]}}"#, 422, "invalid_body", Some("/data")),
        ] {
            let sent = client.post_text("/v1/notifications", format!(r#"{{"type":"notice","recipients":[1],"data":{data}}}"#)).await;
            let edit = client.request(Method::PUT, &format!("/v1/notifications/{id}")).header("content-type", "application/json");
            let edited = Client::send(edit.body(format!(r#"{{"data":{data}}}"#))).await;
            for refused in [sent, edited] {
                assert_eq!(refused.pointers(status, code), pointer.into_iter().collect::<Vec<_>>(), "{data}");
            }
        }
        let item = client.get("/v1/users/1/notifications").await.ok()["items"][0].clone();
        assert_eq!((seqs(client, 1, "").await, item.get("data")), (vec![1], None));
        node.stop().await;
    }

    async fn a_user_has_notifications_of_a_hundred_types(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for n in 0..100 {
            send(client, &format!("type-{n}"), &[2]).await;
        }
        let refused = client.post("/v1/notifications", &notification("one-more", &[1, 2, 3])).await;
        assert_eq!(refused.pointers(409, "too_many"), ["/recipients/1"]);
        assert_eq!((client.summary(1).await["revision"].clone(), shown(client, 3).await), (json!(1), json!({})), "all or nothing: the enrolment alone");
        send(client, "type-7", &[1, 2]).await;
        assert_eq!(client.summary(2).await["total"], 101);
        node.stop().await;
    }

    async fn a_retry_changes_nothing(world: World) {
        let nodes = world.nodes().await;
        let body = notification("notice", &[1, 2]);
        let first = nodes[0].client.post_once("/v1/notifications", "mail-1", &body).await;
        assert_eq!((first.status.as_u16(), first.header("idempotent-replayed")), (201, ""));
        for node in &nodes {
            let again = node.client.post_once("/v1/notifications", "mail-1", &body).await;
            assert_eq!((again.status.as_u16(), &again.text, again.header("idempotent-replayed")), (201, &first.text, "true"));
            node.client.post_once("/v1/notifications", "mail-1", &notification("notice", &[1])).await.problem(422, "idempotency_key_reused");
            assert_eq!((seqs(&node.client, 1, "").await, node.client.summary(2).await["revision"].as_i64()), (vec![1], Some(2)));
        }
        Node::stop_all(nodes).await;
    }

    async fn who_may_do_what(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (alice, bob, service) = (node.user(1), node.user(2), node.service());
        let id = send(&service, "notice", &[1, 2]).await;
        alice.post("/v1/notifications", &notification("notice", &[2])).await.problem(403, "forbidden");
        alice.get(&format!("/v1/notifications/{id}")).await.problem(403, "forbidden");
        alice.put(&format!("/v1/notifications/{id}"), &json!({"title": "x"})).await.problem(403, "forbidden");
        alice.delete(&format!("/v1/notifications/{id}")).await.problem(403, "forbidden");
        bob.post("/v1/users/1/notifications/seen", &json!({})).await.problem(403, "forbidden");
        assert_eq!(alice.post("/v1/users/me/notifications/seen", &json!({})).await.ok()["unseen"], 0);
        node.client.post("/v1/notifications", &notification("notice", &[2])).await.problem(401, "unauthorized");
        bob.get("/v1/users/1/notifications").await.problem(403, "forbidden");
        bob.post("/v1/users/1/notifications/read", &json!({"all": true})).await.problem(403, "forbidden");
        mark(&bob, 1, &id, "read").await.problem(403, "forbidden");
        bob.delete(&format!("/v1/users/1/notifications/{id}")).await.problem(403, "forbidden");
        assert_eq!(alice.get("/v1/users/me/notifications").await.ok()["items"][0]["notification_id"], id);
        alice.post(&format!("/v1/users/me/notifications/{id}/read"), &json!({})).await.ok();
        assert_eq!(service.get(&format!("/v1/notifications/{id}")).await.ok()["read_count"], 1);
        assert_eq!(bob.post("/v1/users/me/notifications/read", &json!({"ids": [id]})).await.ok()["changed"], 1);
        assert_eq!(alice.delete(&format!("/v1/users/me/notifications/{id}")).await.status, 200);
        node.stop().await;
    }
}
