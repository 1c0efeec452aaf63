//! Groups that are deleted, before the user is erased or while it is.

use serde_json::{Value, json};

use super::traces::{assert_forgotten, named_in_tables};
use super::world::ERASED;
use super::{ARGS, erase, erased, node};
use crate::both_tiers;
use crate::maintenance::recount::assert_clean;
use crate::support::{Client, Hand, Node, eventually, eventually_within};

/// A group that puts its messages into inboxes, with some of the user, who has left it, and of others.
async fn written_by_the_user(node: &Node) {
    let client = &node.client;
    client.put("/v1/groups/9", &json!({"delivery": "write"})).await.ok();
    client.post("/v1/groups/9/members", &json!({"user_ids": ["1", "2", ERASED.to_string()]})).await.ok();
    for (sender, id, mentions) in [(ERASED, "a", json!(["1"])), (1, "b", json!([ERASED.to_string()])), (ERASED, "c", json!([]))] {
        let body = json!({"sender_id": sender.to_string(), "client_id": id, "content": "x", "mentions": mentions});
        client.post("/v1/groups/9/messages", &body).await.ok();
    }
    client.delete("/v1/groups/9/messages/3").await;
    eventually("the fan-out is over", async || client.metric("headmark_fan_out_oldest_seconds").await == 0.0).await;
    client.delete("/v1/groups/9/members/2").await;
    let items = inbox(client, 1).await;
    assert_eq!(
        items.iter().map(|item| item["sender_id"].clone()).collect::<Vec<_>>(),
        [ERASED, 1, ERASED, ERASED].map(|id| json!(id.to_string()))
    );
}

async fn inbox(client: &Client, user: i64) -> Vec<Value> {
    client.get(&format!("/v1/users/{user}/inbox?after=0&limit=100")).await.ok()["items"].as_array().unwrap().clone()
}

/// Deletes the group. Where to ask for the operation.
async fn delete_group(client: &Client) -> String {
    client.delete("/v1/groups/9").await.header("location").to_owned()
}

async fn done(client: &Client, location: &str) {
    eventually_within(60, "the group is removed", async || client.get(location).await.ok()["status"] == "done").await;
}

/// What is left in inboxes: who sent it only where that is the user itself.
async fn assert_nobody_sent(client: &Client) {
    for (user, own) in [(1, 1), (2, 0)] {
        let items = inbox(client, user).await;
        assert_eq!(items.len(), 4);
        let sent: Vec<_> = items.iter().filter_map(|item| item.get("sender_id")).collect();
        assert_eq!(sent, vec![&json!("1"); own], "{items:?}");
    }
}

both_tiers! {
    async fn after_its_groups_were_deleted_nothing_names_the_user(world: World) {
        let node = node(&world).await;
        written_by_the_user(&node).await;
        done(&node.client, &delete_group(&node.client).await).await;
        assert_nobody_sent(&node.client).await;
        let location = erase(&node.client, ERASED).await;
        erased(&node.client, &location).await;
        assert_forgotten(&world, &node.client).await;
        assert_nobody_sent(&node.client).await;
        node.stop().await;
    }

    /// What is left of the group may take hours to go.
    async fn an_erasure_does_not_wait_for_the_removal_of_a_group(world: World) {
        let seeded = node(&world).await;
        written_by_the_user(&seeded).await;
        seeded.stop().await;
        let mut doomed = world.process(&ARGS, &[("FAILPOINTS", "removal::before_group_messages=return")]).await;
        let _ = Client::try_send(doomed.client.request(reqwest::Method::DELETE, "/v1/groups/9")).await;
        assert!(!doomed.ended().await.success(), "it dies before it removes anything");
        Hand::on(&world).await.run("update removals set due_at = 9000000000000").await;
        let node = node(&world).await;
        let of_group = delete_group(&node.client).await;
        assert!(named_in_tables(&world).await.len() > 3);

        let location = erase(&node.client, ERASED).await;
        erased(&node.client, &location).await;
        assert_forgotten(&world, &node.client).await;
        assert_eq!(node.client.get(&of_group).await.ok()["status"], "pending");
        assert_clean(&node).await;
        Hand::on(&world).await.run("update removals set due_at = 0").await;
        done(&node.client, &of_group).await;
        assert_eq!(Hand::on(&world).await.text("select cast(count(*) as text) from memberships").await, "0");
        assert_nobody_sent(&node.client).await;
        node.stop().await;
    }
}
