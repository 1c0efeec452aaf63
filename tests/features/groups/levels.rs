//! What of a group counts in sums, for ever or until a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headmark::base::clock::UnixMs;
use serde_json::{Value, json};

use super::{chats, join, leave, make, send, shown};
use crate::both_tiers;
use crate::support::{Client, Hand, Reply, Tier, eventually};

/// When the clock of these tests begins.
const BEGIN: i64 = 1_800_000_000_000;

async fn set(client: &Client, user: i64, group: i64, body: Value) -> Reply {
    client.put(&format!("/v1/users/{user}/groups/{group}/settings"), &body).await
}

/// So many milliseconds after the clock began, as a body says it.
fn at(ms: i64) -> Value {
    json!(UnixMs(BEGIN + ms))
}

both_tiers! {
    async fn a_silent_group_counts_in_no_sum(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 1, &[1, 2]).await;
        make(client, 2, &[1, 2]).await;
        for (group, id) in [(1, "a"), (1, "b"), (2, "c")] {
            send(client, group, 2, id).await.ok();
        }
        let silent = set(client, 1, 1, json!({"level": "none"})).await;
        insta::assert_snapshot!(silent.text, @r#"{"group_id":"1","level":"none","revision":4}"#);
        assert_eq!(set(client, 1, 1, json!({"level": "none"})).await.text, silent.text, "again changes nothing");
        let summary = client.summary(1).await;
        assert_eq!((&summary["chats"], &summary["total"]), (&json!({"unread": 1, "mentions": 0, "groups": 1, "directs": 0}), &json!(1)));
        assert_eq!(shown(client, 1).await, [(1, (2, 2)), (2, (1, 1))].into(), "it keeps its own number");
        let page = client.get("/v1/users/1/groups").await.ok();
        assert_eq!((&page["items"][0]["level"], &page["items"][1]["level"]), (&json!("none"), &json!("all")));
        // The setting is that of the membership.
        leave(client, 1, 1).await;
        join(client, 1, 1).await.ok();
        assert_eq!(client.get("/v1/users/1/groups").await.ok()["items"][0]["level"], "all");
        send(client, 1, 2, "d").await.ok();
        assert_eq!(chats(client, 1).await, json!({"unread": 2, "mentions": 0, "groups": 2, "directs": 0}));
        let capped = client.get("/v1/users/1/badges?cap=1&include=chats").await.ok();
        assert_eq!(capped["chats"], json!({"unread": 1, "mentions": 0, "groups": 1, "directs": 0, "capped": true}));
        assert!(capped.get("total").is_none(), "one of its four kinds is left out");
        let query = client.post("/v1/badges/query", &json!({"user_ids": [1, 2]})).await.ok();
        assert_eq!((&query["items"][0]["total"], &query["items"][1]["total"]), (&json!(2), &json!(0)));
        node.stop().await;
    }

    async fn a_level_ends_at_its_time_without_a_write(world: World) {
        let clock = Arc::new(AtomicI64::new(BEGIN));
        let node = world.node_at(&clock, &[]).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        send(client, 9, 2, "a").await.ok();
        let silent = set(client, 1, 9, json!({"level": "none", "until": at(60_000)})).await;
        insta::assert_snapshot!(silent.text, @r#"{"group_id":"9","level":"none","level_until":"2027-01-15T08:01:00.000Z","revision":3}"#);
        let item = client.get("/v1/users/1/groups/9").await;
        insta::assert_snapshot!(
            item.text,
            @r#"{"group_id":"9","unread":1,"mentions":0,"head":1,"read_seq":0,"first_unread_seq":1,"last_access_at":"2027-01-15T08:00:00.000Z","level":"none","level_until":"2027-01-15T08:01:00.000Z"}"#
        );
        let paths = ["/v1/users/1/badges", "/v1/users/1/groups", "/v1/users/1/groups/9"];
        let mut before = Vec::new();
        for path in paths {
            before.push(client.get(path).await);
        }
        assert_eq!((&before[0].body["total"], &before[0].body["chats"]["unread"]), (&json!(0), &json!(0)));
        clock.fetch_add(59_999, Ordering::SeqCst);
        for (path, before) in paths.iter().zip(&before) {
            assert_eq!(client.get_if_changed(path, before.header("etag")).await.status, 304, "{path} before its time");
        }
        clock.fetch_add(1, Ordering::SeqCst);
        for (path, before) in paths.iter().zip(&before) {
            assert_eq!(client.get_if_changed(path, before.header("etag")).await.status, 200, "{path} at its time");
        }
        let (old, new) = (&before[0].body, client.summary(1).await);
        assert_eq!((&new["total"], &new["chats"]["unread"], &new["revision"]), (&json!(1), &json!(1), &old["revision"]));
        assert!(new["shared_revision"].as_i64() > old["shared_revision"].as_i64(), "the answer before the end is older");
        let item = client.get("/v1/users/1/groups/9").await.ok();
        assert_eq!((&item["level"], item.get("level_until")), (&json!("all"), None));
        let explained = client.get("/v1/users/1/badges/explain").await.ok();
        assert_eq!((&explained["total"], &explained["chats"]["groups"][0]["level"]), (&json!(1), &json!("all")));
        // What ended is no different from what was set.
        let ended = set(client, 1, 9, json!({"level": "all"})).await.ok();
        assert_eq!(ended["level"], "all");
        assert_eq!(client.summary(1).await["total"], 1);
        node.stop().await;
    }

    async fn a_poll_that_waits_wakes_when_a_level_ends(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make(&client, 9, &[1, 2]).await;
        send(&client, 9, 2, "a").await.ok();
        eventually("the other node knows of it", async || shown(&other, 1).await == [(9, (1, 1))].into()).await;
        let until = UnixMs(nodes[0].app.state().contexts.groups.clock.now().0 + 2000);
        set(&client, 1, 9, json!({"level": "none", "until": until})).await.ok();
        let began = std::time::Instant::now();
        let waiting = ["/v1/users/1/badges", "/v1/users/1/groups", "/v1/users/1/groups/9"].map(|path| {
            let other = other.clone();
            tokio::spawn(async move {
                let tag = other.get(path).await.header("etag").to_owned();
                other.get_if_changed(&format!("{path}?wait=20"), &tag).await
            })
        });
        for poll in waiting {
            let woken = poll.await.unwrap();
            assert_eq!(woken.status, 200);
            let took = began.elapsed();
            assert!(took > Duration::from_millis(1500) && took < Duration::from_millis(4500), "at its time, and not at a recheck: {took:?}");
        }
        assert_eq!(other.summary(1).await["total"], 1);
        crate::support::Node::stop_all(nodes).await;
    }

    async fn muted_groups_of_an_earlier_version_count_nothing(world: World) {
        let mut hand = Hand::earlier(&world, 29).await;
        let none = if world.tier == Tier::Embedded { "x''" } else { "''" };
        hand.run("insert into chat_groups (group_id, delivery, receipts, members, ordinals, jobs, created_at) values (8, 0, 1, 1, 1, 0, 1), (9, 0, 1, 1, 1, 0, 1)").await;
        hand.run(&format!("insert into memberships (group_id, ordinal, span, user_id, from_seq, to_seq, read_seq, extra, muted, joined_at, at) values
            (8, 1, 1, 1, 0, -1, 0, {none}, 1, 1, 1), (9, 1, 1, 1, 0, -1, 1, {none}, 0, 1, 1)")).await;
        hand.run("insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch) values
            (8, 6, '', 3, '', 0, 3, 0, 1, 0, 0), (9, 6, '', 3, '2', 0, 4, 0, 1, 0, 0)").await;
        hand.run("insert into users (user_id, version, revision, marks, chat_groups) values (1, 2, 2, '', 2)").await;
        let node = world.node().await;
        let client = &node.client;
        assert_eq!(shown(client, 1).await, [(8, (3, 3)), (9, (1, 3))].into());
        assert_eq!(chats(client, 1).await, json!({"unread": 1, "mentions": 0, "groups": 1, "directs": 0}));
        let items = client.get("/v1/users/1/groups").await.ok()["items"].clone();
        assert_eq!([0, 1].map(|at: usize| (items[at]["level"].clone(), items[at]["first_unread_seq"].clone())), [(json!("none"), json!(1)), (json!("all"), json!(3))]);
        set(client, 1, 8, json!({"level": "all"})).await.ok();
        assert_eq!(client.summary(1).await["total"], 4);
        node.stop().await;
    }

    async fn settings_that_are_wrong_are_refused(world: World) {
        let clock = Arc::new(AtomicI64::new(BEGIN));
        let node = world.node_at(&clock, &[]).await;
        let client = &node.client;
        make(client, 9, &[1]).await;
        for (body, pointer) in [
            (json!({"level": "some"}), "/level"),
            (json!({"level": null}), "/level"),
            (json!({"level": "none", "until": "soon"}), "/until"),
            (json!({"level": "none", "until": at(0)}), "/until"),
            (json!({"level": "none", "until": at(-1)}), "/until"),
            (json!({"level": "none", "until": null}), "/until"),
            (json!({"muted": true}), "/muted"),
        ] {
            assert_eq!(set(client, 1, 9, body.clone()).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        set(client, 1, 9, json!({"level": "mentions", "until": at(1)})).await.ok();
        set(client, 1, 8, json!({"level": "none"})).await.problem(404, "not_found");
        set(client, 2, 9, json!({"level": "none"})).await.problem(403, "forbidden");
        client.get("/v1/users/1/groups/8").await.problem(404, "not_found");
        client.get("/v1/users/2/groups/9").await.problem(403, "forbidden");
        client.get("/v1/users/1/groups/9?wait=1").await.problem(400, "wait_needs_tag");
        node.stop().await;
    }
}
