//! A user has numbers of a hundred types at most. One of which nothing is unread makes room for another.

use std::ops::Range;

use futures_util::future::join_all;
use headmark::base::ids::UserId;
use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use super::{mark, notification, send, shown};
use crate::both_tiers;
use crate::support::{Client, Node};

/// Sends a notification of each of these types to user 1, all at once.
async fn send_each(client: &Client, types: Range<usize>) -> Vec<String> {
    join_all(types.map(|n| async move { send(client, &format!("t{n}"), &[1]).await })).await
}

/// The types of user 1, which are the same on all nodes, in their caches and in the rows.
async fn types(nodes: &[Node]) -> Value {
    let first = shown(&nodes[0].client, 1).await;
    for node in nodes {
        assert_eq!(shown(&node.client, 1).await, first);
        assert_eq!(node.client.get("/v1/users/1/badges/explain").await.ok()["notifications"], first);
        assert_eq!(scrub(&node.app.state().contexts.scrub, &[UserId::try_from(1).unwrap()]).await.unwrap(), 0);
    }
    let mut found = Vec::new();
    let recount = Recount { user: None, dry_run: true };
    recount.run(&nodes[0].app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
    assert_eq!(found, Vec::<String>::new());
    first
}

fn count(types: &Value) -> usize {
    types.as_object().unwrap().len()
}

both_tiers! {
    async fn a_type_with_nothing_unread_makes_room_for_another(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let ids = send_each(client, 0..100).await;
        for id in &ids {
            assert_eq!(other.delete(&format!("/v1/notifications/{id}")).await.status, 204);
        }
        let before = types(&nodes).await;
        assert_eq!((count(&before), &before["t0"]), (100, &json!({"unread": 0, "unseen": 0})));
        let sent = client.post("/v1/notifications", &notification("t100", &[1, 2])).await;
        assert_eq!(sent.status, 201, "{}", sent.text);
        let after = types(&nodes).await;
        assert_eq!((count(&after), after.get("t0"), &after["t100"]), (100, None, &json!({"unread": 1, "unseen": 1})));
        assert_eq!(shown(other, 2).await, json!({"t100": {"unread": 1, "unseen": 1}}));
        // Many at once, each of which takes a place.
        send_each(other, 101..170).await;
        let more = types(&nodes).await;
        let unread = more.as_object().unwrap().values().filter(|numbers| numbers["unread"] == 1).count();
        assert_eq!((count(&more), unread, client.summary(1).await["total"].as_i64()), (100, 70, Some(70)));
        Node::stop_all(nodes).await;
    }

    async fn a_hundred_types_with_something_unread_leave_no_room(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let ids = send_each(client, 0..100).await;
        let refused = other.post("/v1/notifications", &notification("one-more", &[2, 1])).await;
        assert_eq!(refused.pointers(409, "too_many"), ["/recipients/1"]);
        assert_eq!((count(&types(&nodes).await), shown(client, 2).await), (100, json!({})), "all or nothing");
        // One that is read makes room, and is to find room itself.
        mark(client, 1, &ids[7], "read").await.ok();
        send(other, "one-more", &[2, 1]).await;
        let full = types(&nodes).await;
        assert_eq!((count(&full), full.get("t7"), &full["one-more"]), (100, None, &json!({"unread": 1, "unseen": 1})));
        mark(client, 1, &ids[7], "unread").await.problem(409, "too_many");
        assert_eq!(types(&nodes).await, full, "nothing has changed");
        mark(client, 1, &ids[8], "read").await.ok();
        let unread = mark(other, 1, &ids[7], "unread").await.ok();
        assert_eq!((&unread["unread"], &unread["unseen"]), (&json!(1), &json!(1)));
        let after = types(&nodes).await;
        assert_eq!((count(&after), after.get("t8"), &after["t7"]), (100, None, &json!({"unread": 1, "unseen": 1})));
        Node::stop_all(nodes).await;
    }
}
