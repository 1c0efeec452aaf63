//! Notifications as their receivers list and read them.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::{mark, notification, send, seqs, shown};
use crate::both_tiers;

both_tiers! {
    async fn a_notification_is_sent_listed_and_read(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let reply = client.post("/v1/notifications", &notification("notice", &[1, 2, 3])).await;
        let id = reply.body["notification_id"].as_str().unwrap().to_owned();
        let hide = |text: &str| text.replace(&id, "ID");
        assert_eq!(reply.status, 201);
        assert_eq!(id.parse::<i64>().unwrap() >> 20, 1_800_000_000_000);
        insta::assert_snapshot!(
            hide(&reply.text),
            @r#"{"notification_id":"ID","type":"notice","title":"Hello","content":"World","recipient_count":3,"read_count":0,"created_at":"2027-01-15T08:00:00.000Z","modified_at":"2027-01-15T08:00:00.000Z"}"#
        );
        assert_eq!(client.get(&format!("/v1/notifications/{id}")).await.ok(), reply.body);
        insta::assert_snapshot!(
            hide(&client.get("/v1/users/1/notifications").await.text),
            @r#"{"items":[{"id":"ID","seq":1,"type":"notice","title":"Hello","content":"World","count":1,"actors":[],"notification_id":"ID","created_at":"2027-01-15T08:00:00.000Z","updated_at":"2027-01-15T08:00:00.000Z","seen":false}],"next_cursor":null}"#
        );
        let summary = client.summary(1).await;
        assert_eq!((&summary["notifications"], &summary["total"], &summary["revision"]), (&json!({"notice": {"unread": 1, "unseen": 1}}), &json!(1), &json!(2)));

        at.fetch_add(1500, std::sync::atomic::Ordering::SeqCst);
        let read = mark(client, 1, &id, "read").await;
        insta::assert_snapshot!(hide(&read.text), @r#"{"id":"ID","read_at":"2027-01-15T08:00:01.500Z","unread":0,"unseen":0,"revision":3}"#);
        at.fetch_add(1500, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(mark(client, 1, &id, "read").await.text, read.text, "a repeat changes nothing, not even the time");
        let listed = client.get("/v1/users/1/notifications").await.ok();
        assert_eq!(listed["items"][0]["read_at"], "2027-01-15T08:00:01.500Z");
        assert_eq!(client.get(&format!("/v1/notifications/{id}")).await.ok()["read_count"], 1);
        assert_eq!(shown(client, 1).await, json!({"notice": {"unread": 0, "unseen": 0}}));
        assert_eq!(client.summary(2).await["notifications"]["notice"]["unread"], 1);

        let unread = mark(client, 1, &id, "unread").await;
        insta::assert_snapshot!(hide(&unread.text), @r#"{"id":"ID","unread":1,"unseen":1,"revision":4}"#);
        assert_eq!(mark(client, 1, &id, "unread").await.text, unread.text);
        assert_eq!(client.get(&format!("/v1/notifications/{id}")).await.ok()["read_count"], 0);
        node.stop().await;
        let node = world.node().await;
        assert_eq!(shown(&node.client, 1).await, json!({"notice": {"unread": 1, "unseen": 1}}), "it is there after a restart");
        node.stop().await;
    }

    async fn lists_narrow_page_and_keep_their_places(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut ids = Vec::new();
        for n in 0..20 {
            ids.push(send(client, if n % 3 == 0 { "mail" } else { "notice" }, &[5]).await);
        }
        for id in [&ids[0], &ids[1], &ids[19]] {
            mark(client, 5, id, "read").await.ok();
        }
        client.delete(&format!("/v1/users/5/notifications/{}", ids[10])).await.ok();
        let all: Vec<i64> = (1..=20).rev().filter(|seq| *seq != 11).collect();
        assert_eq!(seqs(client, 5, "").await, all);
        assert_eq!(seqs(client, 5, "&status=all").await, all);
        assert_eq!(seqs(client, 5, "&status=read").await, [20, 2, 1]);
        assert_eq!(seqs(client, 5, "&status=unread").await, (3..=19).rev().filter(|seq| *seq != 11).collect::<Vec<_>>());
        assert_eq!(seqs(client, 5, "&type=mail").await, [19, 16, 13, 10, 7, 4, 1]);
        assert_eq!(seqs(client, 5, "&type=mail&status=unread").await, [19, 16, 13, 10, 7, 4]);
        assert_eq!(seqs(client, 5, "&type=notice&status=read").await, [20, 2]);
        assert!(seqs(client, 5, "&type=other").await.is_empty() && seqs(client, 6, "").await.is_empty());
        // What comes and goes between two pages neither repeats nor skips what stays.
        let first = client.get("/v1/users/5/notifications?limit=4&type=notice").await;
        let next = first.body["next_cursor"].as_str().unwrap();
        assert_eq!(first.header("link"), format!("</v1/users/5/notifications?limit=4&type=notice&cursor={next}>; rel=\"next\""));
        send(client, "notice", &[5]).await;
        client.delete(&format!("/v1/users/5/notifications/{}", ids[14])).await.ok();
        let second = client.get(&format!("/v1/users/5/notifications?limit=3&type=notice&cursor={next}")).await.ok();
        let second: Vec<_> = second["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect();
        assert_eq!(second, [14, 12, 9]);
        for (query, name) in [("?status=new", "status"), ("?type=A", "type"), ("?limit=0", "limit"), ("?state=read", "state"), ("?status=", "status")] {
            assert_eq!(client.get(&format!("/v1/users/5/notifications{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        client.get("/v1/users/5/notifications?cursor=x").await.problem(400, "invalid_cursor");
        node.stop().await;
    }

    async fn many_are_read_by_id_by_type_up_to_a_seq_or_all(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut ids = Vec::new();
        for n in 0..9 {
            ids.push(send(client, ["a", "b", "c"][n % 3], &[7]).await);
        }
        let path = "/v1/users/7/notifications/read";
        let reply = client.post(path, &json!({"ids": [ids[0], ids[1], ids[8]], "up_to_seq": 5})).await;
        insta::assert_snapshot!(reply.text, @r#"{"changed":2,"revision":11,"notifications":{"a":{"unread":2,"unseen":2},"b":{"unread":2,"unseen":2},"c":{"unread":3,"unseen":3}}}"#);
        let again = client.post(path, &json!({"ids": [ids[0], ids[1]]})).await.ok();
        assert_eq!((&again["changed"], &again["revision"]), (&json!(0), &json!(11)));
        let of_type = client.post(path, &json!({"type": "a", "up_to_seq": 4})).await.ok();
        assert_eq!((&of_type["changed"], &of_type["notifications"]["a"]), (&json!(1), &json!({"unread": 1, "unseen": 1})));
        let unknown = client.post(path, &json!({"type": "zzz"})).await.ok();
        assert_eq!((&unknown["changed"], &unknown["notifications"]["zzz"]), (&json!(0), &Value::Null));
        let all = client.post(path, &json!({"all": true, "up_to_seq": 8})).await.ok();
        assert_eq!((&all["changed"], &all["notifications"]), (&json!(5), &json!({"a": {"unread": 0, "unseen": 0}, "b": {"unread": 0, "unseen": 0}, "c": {"unread": 1, "unseen": 1}})));
        assert_eq!(shown(client, 7).await, all["notifications"]);
        let rest = client.post(path, &json!({"all": true})).await.ok();
        assert_eq!((&rest["changed"], &rest["revision"]), (&json!(1), &client.summary(7).await["revision"]));
        assert_eq!(client.post(path, &json!({"all": true})).await.ok()["changed"], 0);
        node.stop().await;
    }

    async fn more_than_a_transaction_takes_is_read_all_the_same(world: World) {
        let node = world.node().await;
        let client = &node.client;
        // The first transaction takes 200, the second one the rest.
        let sends = (0..470).map(|n| send(client, if n % 5 == 0 { "mail" } else { "notice" }, if n < 200 { &[1, 2] } else { &[1] }));
        futures_util::stream::iter(sends).buffer_unordered(32).collect::<Vec<_>>().await;
        let last = client.get("/v1/users/1/notifications?limit=1").await.ok()["items"][0]["seq"].clone();
        let read = client.post("/v1/users/1/notifications/read", &json!({"type": "notice", "up_to_seq": last})).await.ok();
        assert_eq!((&read["changed"], &read["notifications"]), (&json!(376), &json!({"notice": {"unread": 0, "unseen": 0}, "mail": {"unread": 94, "unseen": 94}})));
        assert_eq!(client.post("/v1/users/1/notifications/read", &json!({"all": true})).await.ok()["changed"], 94);
        assert_eq!(client.summary(1).await["total"], 0);
        // As many as the first transaction takes: the second one finds nothing.
        let read = client.post("/v1/users/2/notifications/read", &json!({"all": true})).await.ok();
        assert_eq!((&read["changed"], &read["revision"]), (&json!(200), &client.summary(2).await["revision"]));
        node.stop().await;
    }
}
