//! Devices and their cursors.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::DAY_MS;
use serde_json::json;

use super::send;
use crate::both_tiers;

both_tiers! {
    async fn a_devices_cursor_never_goes_back(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        insta::assert_snapshot!(client.get("/v1/users/2/devices").await.text, @r#"{"items":[],"head":0}"#);
        for n in 0..5 {
            send(client, 1, 2, &format!("c-{n}")).await;
        }
        let first = client.put("/v1/users/2/devices/phone-1/cursor", &json!({"seq": 3})).await;
        insta::assert_snapshot!(
            first.text,
            @r#"{"device_id":"phone-1","cursor":3,"lag":2,"push":false,"last_seen_at":"2027-01-15T08:00:00.000Z","created_at":"2027-01-15T08:00:00.000Z"}"#
        );
        at.fetch_add(1500, Ordering::SeqCst);
        let cursor = async |device: &str, seq: i64| client.put(&format!("/v1/users/2/devices/{device}/cursor"), &json!({"seq": seq})).await.ok();
        let back = cursor("phone-1", 1).await;
        assert_eq!((&back["cursor"], &back["last_seen_at"]), (&json!(3), &json!("2027-01-15T08:00:01.500Z")), "it was seen all the same");
        assert_eq!(cursor("phone-1", 9_007_199_254_740_991).await["cursor"], 5, "beyond the head is the head");
        at.fetch_add(1, Ordering::SeqCst);
        assert_eq!(cursor("tablet", 0).await["lag"], 5);
        send(client, 1, 2, "c-5").await;
        let listed = client.get("/v1/users/2/devices").await.ok();
        let shown: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| (item["device_id"].as_str().unwrap(), item["cursor"].as_i64().unwrap(), item["lag"].as_i64().unwrap())).collect();
        assert_eq!((shown, &listed["head"]), (vec![("tablet", 0, 6), ("phone-1", 5, 1)], &json!(6)));
        let reply = client.delete("/v1/users/2/devices/tablet").await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        client.delete("/v1/users/2/devices/tablet").await.problem(404, "not_found");
        client.delete("/v1/users/3/devices/phone-1").await.problem(404, "not_found");
        assert_eq!(cursor("tablet", 2).await["cursor"], 2, "one that comes again is new");
        for (body, pointer) in [(json!({}), "/seq"), (json!({"seq": -1}), "/seq"), (json!({"seq": null}), "/seq"), (json!({"seq": 9_007_199_254_740_992_i64}), "/seq"), (json!({"seq": 1, "at": 2}), "/at")] {
            assert_eq!(client.put("/v1/users/2/devices/phone-1/cursor", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(client.put("/v1/users/2/devices/a%20b/cursor", &json!({"seq": 1})).await.pointers(400, "invalid_path"), ["device_id"]);
        node.stop().await;
        let node = world.node().await;
        assert_eq!(node.client.get("/v1/users/2/devices").await.ok()["items"][1]["cursor"], 5, "after a restart");
        node.stop().await;
    }

    async fn devices_are_bounded_and_forgotten_at_last(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for n in 0..100 {
            client.put(&format!("/v1/users/2/devices/d{n}/cursor"), &json!({"seq": 0})).await.ok();
        }
        client.put("/v1/users/2/devices/d100/cursor", &json!({"seq": 0})).await.problem(409, "too_many");
        client.put("/v1/users/3/devices/d100/cursor", &json!({"seq": 0})).await.ok();
        at.fetch_add(366 * DAY_MS, Ordering::SeqCst);
        client.put("/v1/users/2/devices/d7/cursor", &json!({"seq": 0})).await.ok();
        assert_eq!(headmark::features::inbox::expiry::sweep_devices(&node.app.state().contexts.inbox).await.unwrap(), 100);
        assert_eq!(client.get("/v1/users/2/devices").await.ok()["items"].as_array().unwrap().len(), 1);
        client.put("/v1/users/2/devices/d100/cursor", &json!({"seq": 0})).await.ok();
        node.stop().await;
    }
}
