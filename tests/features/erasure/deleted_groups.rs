//! Groups that are deleted, before the user is erased or while it is.

use serde_json::json;

use super::traces::{assert_forgotten, named_in_tables};
use super::world::ERASED;
use super::{ARGS, erase, erased, node};
use crate::both_tiers;
use crate::features::groups::deletion::{delete, done, inbox};
use crate::features::groups::fan_out::make_writing;
use crate::maintenance::recount::assert_clean;
use crate::support::{Client, Hand, Node, eventually, eventually_within};

/// A group that puts its messages into inboxes, with some of the user and of another one. A third one has left it.
async fn written_by_the_user(node: &Node) {
    let client = &node.client;
    make_writing(client, 9, &[1, 2, ERASED]).await;
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
        done(&node.client, &delete(&node.client, 9).await).await;
        assert_nobody_sent(&node.client).await;
        let location = erase(&node.client, ERASED).await;
        erased(&node.client, &location).await;
        assert_forgotten(&world, &node.client).await;
        assert_nobody_sent(&node.client).await;
        node.stop().await;
    }

    async fn what_an_earlier_version_wrote_into_inboxes_names_no_sender_any_more(world: World) {
        let mut hand = Hand::earlier(&world, 75).await;
        hand.run(&format!("insert into inbox
            (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at)
            values (1, 1, {ERASED}, 0, 0, 9, 1, 0, 0, '', '', 1, 0), (1, 2, 3, 3, 1, 0, 0, 0, 0, 'a', 'x', 1, 1)")).await;
        hand.run("insert into removals
            (operation_id, kind, subject_id, caller, step, after_id, after_seq, after_name, due_at, created_at, finished_at)
            values ('0190163d8694739b3d5c2a7f00112233', 1, 77, 'open', 'group_inboxes', 9, 5, '', 0, 1, 0)").await;
        let node = node(&world).await;
        assert_eq!(named_in_tables(&world).await, Vec::<String>::new());
        let kept = "select cast(seq as text) || ':' || cast(sender_id as text) from inbox where sender_id > 0";
        assert_eq!(Hand::on(&world).await.text(kept).await, "2:3", "who sent a direct message is kept");
        let over = "select cast(count(*) as text) from removals where finished_at = 0";
        eventually_within(60, "the removal goes on", async || Hand::on(&world).await.text(over).await == "0").await;
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
        // No worker finds it.
        Hand::on(&world).await.run("update removals set finished_at = -1").await;
        let node = node(&world).await;
        let of_group = delete(&node.client, 9).await;
        assert!(named_in_tables(&world).await.len() > 3);

        let location = erase(&node.client, ERASED).await;
        erased(&node.client, &location).await;
        assert_forgotten(&world, &node.client).await;
        assert_eq!(node.client.get(&of_group).await.ok()["status"], "pending");
        assert_clean(&node).await;
        Hand::on(&world).await.run("update removals set finished_at = 0, due_at = 0 where finished_at < 0").await;
        done(&node.client, &of_group).await;
        assert_eq!(Hand::on(&world).await.text("select cast(count(*) as text) from memberships").await, "0");
        assert_nobody_sent(&node.client).await;
        node.stop().await;
    }
}
