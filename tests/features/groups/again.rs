//! Unread again: the member's own view, which moves no mark and no receipt.

use serde_json::{Value, json};

use super::{chats, leave, make, read, read_one, recall, send, shown};
use crate::both_tiers;
use crate::support::{Client, Reply};

pub(super) async fn unread(client: &Client, user: i64, group: i64, from: i64) -> Reply {
    client.post(&format!("/v1/users/{user}/groups/{group}/unread"), &json!({"from": from})).await
}

/// Unread and the first unread message.
async fn seen(client: &Client, user: i64, group: i64) -> (i64, Option<i64>) {
    let item = client.get(&format!("/v1/users/{user}/groups/{group}")).await.ok();
    (item["unread"].as_i64().unwrap(), item["first_unread_seq"].as_i64())
}

/// Everything that anybody can learn of who has read what.
async fn receipts(client: &Client, group: i64, head: i64) -> Vec<String> {
    let mut all = vec![client.get(&format!("/v1/groups/{group}/receipts?from=1&to={head}")).await.text];
    for seq in 1..=head {
        for query in ["", "?members=read", "?members=unread", "?format=bitmap"] {
            all.push(client.get(&format!("/v1/groups/{group}/messages/{seq}/receipts{query}")).await.text);
        }
    }
    all
}

both_tiers! {
    async fn what_is_unread_again_moves_no_mark_and_no_receipt(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        // 1 says 3 and 5, all else is said by 2.
        for seq in 1..=8 {
            send(client, 9, if [3, 5].contains(&seq) { 1 } else { 2 }, &format!("m{seq}")).await.ok();
        }
        recall(client, 9, 6).await;
        read(client, 1, 9, None).await.ok();
        let before = receipts(client, 9, 8).await;
        let revision = client.summary(1).await["revision"].as_i64().unwrap();
        let again = unread(client, 1, 9, 3).await;
        insta::assert_snapshot!(again.text, @r#"{"group_id":"9","unread":3,"read_seq":8,"head":8,"revision":6}"#);
        assert_eq!(again.body["revision"], revision + 1);
        assert_eq!(unread(client, 1, 9, 3).await.text, again.text, "a repeat changes nothing");
        assert_eq!(receipts(client, 9, 8).await, before, "receipts are as they were");
        assert_eq!(seen(client, 1, 9).await, (3, Some(4)), "4, 7 and 8: not one's own, nor what was recalled");
        assert_eq!(chats(client, 1).await, json!({"unread": 3, "mentions": 0, "groups": 1, "directs": 0}));
        let terms = client.get("/v1/users/1/badges/explain").await.ok()["chats"]["groups"][0].clone();
        assert_eq!(terms, json!({"group_id": "9", "head": 8, "read_seq": 8, "unread_from": 4, "gone": 2, "unread": 3, "mentions": 0, "level": "all"}));
        // Reading one of them takes it out; reading on moves the point.
        assert_eq!(read_one(client, 1, 9, 7).await.ok()["unread"], 2);
        assert_eq!(seen(client, 1, 9).await, (2, Some(4)));
        assert_eq!(read(client, 1, 9, Some(2)).await.ok()["unread"], 2, "below the point nothing changes");
        let part = read(client, 1, 9, Some(5)).await.ok();
        assert_eq!((&part["unread"], &part["read_seq"]), (&json!(1), &json!(8)));
        assert_eq!(seen(client, 1, 9).await, (1, Some(8)));
        assert_eq!(receipts(client, 9, 8).await, before);
        node.stop().await;
        let node = world.node().await;
        let client = &node.client;
        assert_eq!(seen(client, 1, 9).await, (1, Some(8)), "it is there after a restart");
        assert_eq!(unread(client, 1, 9, 7).await.ok()["unread"], 2, "what was read alone is unread again");
        // A read up to the head ends it, and so does sending.
        assert_eq!(read(client, 1, 9, None).await.ok()["unread"], 0);
        assert_eq!(seen(client, 1, 9).await, (0, None));
        unread(client, 1, 9, 1).await.ok();
        send(client, 9, 1, "answer").await.ok();
        assert_eq!(seen(client, 1, 9).await, (0, None));
        node.stop().await;
    }

    async fn messages_that_are_unread_anyway_stay_so(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for seq in 1..=6 {
            send(client, 9, 2, &format!("m{seq}")).await.ok();
        }
        read(client, 1, 9, Some(2)).await.ok();
        read_one(client, 1, 9, 5).await.ok();
        let before = receipts(client, 9, 6).await;
        assert_eq!(unread(client, 1, 9, 4).await.ok()["unread"], 4, "3 is unread as it was, 5 is so again");
        assert_eq!(receipts(client, 9, 6).await, before);
        let one = read_one(client, 1, 9, 6).await.ok();
        assert_eq!((&one["unread"], &one["read_seq"]), (&json!(3), &json!(2)), "this one is really read");
        assert_ne!(receipts(client, 9, 6).await, before);
        let all = read(client, 1, 9, Some(5)).await.ok();
        assert_eq!((&all["unread"], &all["read_seq"]), (&json!(0), &json!(6)));
        // Leaving ends it.
        unread(client, 1, 9, 1).await.ok();
        leave(client, 9, 1).await;
        make(client, 9, &[1]).await;
        assert_eq!(shown(client, 1).await, [(9, (0, 6))].into());
        unread(client, 1, 9, 6).await.problem(404, "not_found");
        node.stop().await;
    }

    async fn unread_again_is_bounded_and_refused_where_there_is_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1]).await;
        send(client, 9, 1, "a").await.ok();
        make(client, 9, &[2]).await;
        send(client, 9, 1, "b").await.ok();
        assert_eq!(unread(client, 1, 9, 1).await.ok()["unread"], 0, "one's own are never unread");
        for (user, from) in [(2, 1), (1, 3)] {
            unread(client, user, 9, from).await.problem(404, "not_found");
        }
        for (body, pointer) in [(json!({}), "/from"), (json!({"from": 0}), "/from"), (json!({"from": null}), "/from"), (json!({"from": 1, "up_to": 2}), "/up_to")] {
            assert_eq!(client.post("/v1/users/1/groups/9/unread", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        unread(client, 1, 8, 1).await.problem(404, "not_found");
        unread(client, 3, 9, 1).await.problem(403, "forbidden");
        node.stop().await;
    }
}

/// What a summary says of chats, in one list.
pub(super) fn numbers(chats: &Value) -> [i64; 3] {
    ["unread", "mentions", "groups"].map(|name| chats[name].as_i64().unwrap())
}
