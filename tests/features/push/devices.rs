//! The route of devices with `push`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::DAY_MS;
use headmark::features::inbox::expiry::sweep_devices;
use serde_json::json;

use super::{Reader, flag, revision};
use crate::both_tiers;
use crate::support::CREDENTIALS;

both_tiers! {
    async fn a_device_says_whether_it_wants_pushes(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let put = async |device: &str, push: bool| client.put(&format!("/v1/users/2/devices/{device}"), &json!({"push": push})).await;
        insta::assert_snapshot!(
            put("phone", true).await.text,
            @r#"{"device_id":"phone","push":true,"last_seen_at":"2027-01-15T08:00:00.000Z","created_at":"2027-01-15T08:00:00.000Z"}"#
        );
        at.fetch_add(1000, Ordering::SeqCst);
        insta::assert_snapshot!(
            put("phone", false).await.text,
            @r#"{"device_id":"phone","push":false,"last_seen_at":"2027-01-15T08:00:01.000Z","created_at":"2027-01-15T08:00:00.000Z"}"#
        );
        put("phone", true).await.ok();
        let body = client.put("/v1/users/2/devices/phone/cursor", &json!({"seq": 0})).await.ok();
        assert_eq!((&body["push"], &body["cursor"], &body["lag"]), (&json!(true), &json!(0), &json!(0)), "a cursor leaves it");
        client.put("/v1/users/2/devices/tablet/cursor", &json!({"seq": 0})).await.ok();
        let body = put("tablet", true).await.ok();
        assert_eq!(body["cursor"], 0, "and it leaves the cursor");
        let listed = client.get("/v1/users/2/devices").await.ok();
        assert_eq!(listed["items"].as_array().unwrap().iter().filter(|item| item["push"] == true).count(), 2);
        for (body, pointer) in [(json!({}), "/push"), (json!({"push": null}), "/push"), (json!({"push": 1}), "/push"), (json!({"push": true, "seq": 1}), "/seq")] {
            assert_eq!(client.put("/v1/users/2/devices/phone", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(client.put("/v1/users/2/devices/a%20b", &json!({"push": true})).await.pointers(400, "invalid_path"), ["device_id"]);
        assert_eq!(client.get("/v1/users/2/devices/phone").await.status, 405);
        node.stop().await;
        let node = world.node().await;
        assert_eq!(node.client.get("/v1/users/2/devices").await.ok()["items"][0]["push"], true, "after a restart");
        node.stop().await;
    }

    async fn only_the_user_and_services_may_say_so(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let push = json!({"push": true});
        node.client.put("/v1/users/2/devices/phone", &push).await.problem(401, "unauthorized");
        node.user(1).put("/v1/users/2/devices/phone", &push).await.problem(403, "forbidden");
        node.user(2).put("/v1/users/me/devices/phone", &push).await.ok();
        node.service().put("/v1/users/2/devices/tablet", &push).await.ok();
        node.user(2).get("/v1/events?types=unread").await.problem(403, "forbidden");
        assert_eq!(node.user(2).get("/v1/users/2/devices").await.ok()["items"].as_array().unwrap().len(), 2);
        node.stop().await;
    }

    /// It has fetched nothing, and wants to fetch nothing.
    async fn a_push_device_without_a_cursor_is_no_reader_of_the_inbox(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--inbox-days", "1"]).await;
        let client = &node.client;
        let tell = async |id: &str| client.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": id, "content": "x"})).await.ok();
        tell("c1").await;
        flag(client, 2).await;
        assert_eq!(client.get("/v1/users/1/directs/2/receipts").await.ok()["delivered_seq"], 0);
        let read = client.get("/v1/users/2/inbox?device=phone").await.ok();
        assert_eq!((read["items"].as_array().unwrap().len(), &read["next_after"]), (1, &json!(1)));
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        flag(client, 2).await;
        tell("c2").await;
        let state = node.app.state();
        let mut walk = headmark::features::inbox::expiry::Walk::default();
        headmark::features::inbox::expiry::sweep(&state.contexts.inbox, &mut walk).await.unwrap();
        let read = client.get("/v1/users/2/inbox?device=phone").await.ok();
        assert_eq!(read["items"][0]["seq"], 2, "the old row is gone, and a device without a cursor begins behind it: {read}");
        node.stop().await;
    }

    async fn push_devices_are_bounded_and_end(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for n in 0..100 {
            client.put(&format!("/v1/users/2/devices/d{n}"), &json!({"push": n < 2})).await.ok();
        }
        client.put("/v1/users/2/devices/d100", &json!({"push": true})).await.problem(409, "too_many");
        client.put("/v1/users/2/devices/d99", &json!({"push": false})).await.ok();
        let mut reader = Reader::at_the_end(client).await;
        let raise = async || client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
        raise().await;
        assert_eq!(reader.told("a raise", &[2]).await, 1);
        client.delete("/v1/users/2/devices/d0").await;
        raise().await;
        assert_eq!(reader.told("another device has it", &[2]).await, 1);
        client.delete("/v1/users/2/devices/d1").await;
        raise().await;
        assert_eq!(reader.settle().await, [], "none has it");
        flag_again(client).await;
        assert_eq!(reader.told("flagged", &[2]).await, 1);
        at.fetch_add(366 * DAY_MS, Ordering::SeqCst);
        assert_eq!(sweep_devices(&node.app.state().contexts.inbox).await.unwrap(), 98);
        reader.settle().await;
        raise().await;
        assert_eq!(reader.settle().await, [], "a device that is forgotten has it no longer");
        let before = revision(client, 2).await;
        flag_again(client).await;
        assert_eq!(reader.read().await.len().max(1), 1);
        assert_eq!(revision(client, 2).await, before + 1);
        node.stop().await;
    }
}

/// Over a device that is there.
async fn flag_again(client: &crate::support::Client) {
    client.put("/v1/users/2/devices/d7", &json!({"push": true})).await.ok();
}
