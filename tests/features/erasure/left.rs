//! What others keep of an erased user: tombstones, and ordinals.

use serde_json::{Value, json};

use crate::support::Client;

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

/// In the world of [`super::world::Seed`], after the erasure.
pub async fn assert_tombstones(client: &Client) {
    for group in [20, 21, 22] {
        let messages = client.get(&format!("/v1/groups/{group}/messages?limit=100")).await.ok();
        let left: Vec<_> = items(&messages).iter().filter(|message| message["recalled"] == true).collect();
        assert_eq!(left, [&json!({"seq": 2, "recalled": true}), &json!({"seq": 4, "recalled": true})], "group {group}");
        let changes = client.get(&format!("/v1/groups/{group}/messages/changes?after=0")).await.ok();
        let mut changed: Vec<_> = items(&changes).iter().map(|change| change["seq"].as_i64().unwrap()).collect();
        changed.sort_unstable();
        assert_eq!(changed, [2, 4]);
        client.get(&format!("/v1/groups/{group}/messages/2/receipts")).await.problem(404, "not_found");
        // The first message had three recipients, the erased user among them, who has read it.
        let receipts = client.get(&format!("/v1/groups/{group}/messages/1/receipts")).await.ok();
        assert_eq!((&receipts["recipients"], &receipts["read_count"]), (&json!(3), &json!(3)), "{receipts}");
        let read = client.get(&format!("/v1/groups/{group}/messages/1/receipts?members=read")).await.ok();
        assert!(items(&read).contains(&json!({"ordinal": 4, "left": true})), "{read}");
        let members = client.get(&format!("/v1/groups/{group}/members")).await.ok();
        assert_eq!(items(&members).len(), 3);
        assert_eq!(client.get(&format!("/v1/groups/{group}")).await.ok()["members"], 3);
    }
    for user in [1, 2] {
        let inbox = client.get(&format!("/v1/users/{user}/inbox?limit=100")).await.ok();
        let seqs: Vec<_> = items(&inbox).iter().map(|item| item["seq"].as_i64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len()).map(|seq| i64::try_from(seq).unwrap()).collect::<Vec<_>>(), "without gaps");
        let without_peer = items(&inbox).iter().filter(|item| item.get("peer_id").is_none() && item.get("group_id").is_none());
        for item in without_peer.clone().filter(|item| item.get("recall").is_none()) {
            assert_eq!((item["recalled"].clone(), item.get("content")), (json!(true), None), "{item}");
        }
        assert!(without_peer.count() > 0, "{inbox}");
    }
}
