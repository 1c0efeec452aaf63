//! What looks after numbers leaves erased users alone: while their rows go, and for ever after.

use headmark::base::ids::UserId;
use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::json;

use super::{erase, erased, node};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, Pause, eventually};

fn users() -> Vec<UserId> {
    [1_i64, 2].map(|user| user.try_into().unwrap()).into()
}

async fn scrubbed(node: &Node) -> u64 {
    scrub(&node.app.state().contexts.scrub, &users()).await.unwrap()
}

/// What a recount says.
async fn recounted(node: &Node, user: Option<i64>, dry_run: bool) -> Vec<String> {
    let recount = Recount { user: user.map(|user| user.try_into().unwrap()), dry_run };
    let mut said = Vec::new();
    recount.run(&node.app.state().db, |difference| said.push(difference.to_string())).await.unwrap();
    said
}

async fn write_each_other(client: &Client) {
    for (receiver, sender) in [(2, 1), (1, 2)] {
        let message = json!({"sender_id": sender, "client_id": "a", "content": "x"});
        client.post(&format!("/v1/users/{receiver}/inbox"), &message).await.ok();
    }
    client.put("/v1/groups/9", &json!({})).await.ok();
    client.post("/v1/groups/9/members", &json!({"user_ids": [1, 2]})).await.ok();
    client.post("/v1/notifications", &json!({"type": "like", "recipients": [1, 2]})).await.ok();
}

both_tiers! {
    async fn rows_that_go_are_no_drift(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        write_each_other(client).await;
        fail::cfg("removal::before_relations", "pause").unwrap();
        fail::cfg("removal::before_user", "pause").unwrap();
        let location = erase(client, 2).await;
        // The entry is of this moment: its rows are still there.
        for _ in 0..2 {
            client.get("/v1/users/2/badges").await.problem(410, "erased");
        }
        fail::remove("removal::before_relations");
        let mut hand = Hand::on(&world).await;
        eventually("all but the user's own row is gone", async || {
            hand.text("select step from removals where finished_at = 0").await == "user"
        })
        .await;
        let own = hand.text("select cast(count(*) as text) from inbox where user_id = 2").await;
        hand.run("delete from unread_jobs").await;
        let drift = scrubbed(&node).await;
        let said = [recounted(&node, None, true).await, recounted(&node, None, false).await].concat();
        let jobs = hand.text("select cast(count(*) as text) from unread_jobs").await;
        // Before anything fails: what is paused would keep the test from its end.
        fail::remove("removal::before_user");
        assert_eq!(own, "0");
        assert_eq!(drift, 0, "the numbers of the row that is left count nothing any more");
        assert_eq!(said, [] as [String; 0]);
        assert_eq!(jobs, "0", "nothing is told");
        erased(client, &location).await;
        node.stop().await;
    }

    async fn a_repair_makes_no_head_of_a_creator_who_is_erased_meanwhile(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.put("/v1/users/2/posts/a", &json!({})).await.ok();
        let mut hand = Hand::on(&world).await;
        hand.run("update heads set head = 0 where owner_id = 2").await;
        let pause = Pause::at("recount::before_repair");
        let db = node.app.state().db.clone();
        let repair = tokio::spawn(async move {
            let recount = Recount { user: Some(2.try_into().unwrap()), dry_run: false };
            let mut said = Vec::new();
            recount.run(&db, |difference| said.push(difference.to_string())).await.map(|_| said)
        });
        pause.reached().await;
        let location = erase(client, 2).await;
        erased(client, &location).await;
        pause.go_on().await;
        let said = repair.await.unwrap().unwrap();
        assert!(!said.is_empty(), "there was something to repair");
        for table in ["heads", "users"] {
            let column = if table == "heads" { "owner_id" } else { "user_id" };
            assert_eq!(hand.text(&format!("select cast(count(*) as text) from {table} where {column} = 2")).await, "0", "{table}");
        }
        node.stop().await;
    }

    /// The mutes and blocks go first, and the chats in a later step: on a large database, hours later.
    async fn messages_of_an_erased_user_never_count_where_they_were_silenced(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        let silence = [
            ("/v1/users/2/mutes/1", json!({})),
            ("/v1/users/3/mutes/1", json!({"until": "2099-01-01T00:00:00.000Z"})),
            ("/v1/users/4/blocks/1", json!({})),
        ];
        for receiver in 2..=4 {
            let message = json!({"sender_id": 1, "client_id": receiver.to_string(), "content": "x"});
            client.post(&format!("/v1/users/{receiver}/inbox"), &message).await.ok();
        }
        for (path, body) in silence {
            client.put(path, &body).await.ok();
        }
        client.put("/v1/users/4/mutes/1", &json!({})).await.ok();
        let chats = async || {
            let mut chats = Vec::new();
            for user in 2..=4 {
                let summary = client.summary(user).await;
                chats.push([&summary["total"], &summary["chats"]["unread"], &summary["chats"]["directs"]].map(|n| n.as_i64().unwrap()));
            }
            chats
        };
        let nothing = vec![[0_i64; 3]; 3];
        assert_eq!(chats().await, nothing);
        let pause = Pause::at("removal::before_group_messages");
        let location = erase(client, 1).await;
        pause.reached().await;
        let shown = chats().await;
        let left = Hand::on(&world).await.text("select cast(count(*) as text) from directs where peer_id = 1").await;
        let said = recounted(&node, None, true).await;
        pause.go_on().await;
        assert_eq!((&shown, left.as_str(), said), (&nothing, "3", Vec::new()));
        erased(client, &location).await;
        assert_eq!((chats().await, recounted(&node, None, true).await), (nothing, Vec::new()));
        node.stop().await;
    }

    /// More rows than become tombstones at once.
    async fn a_long_chat_that_goes_is_no_drift(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        for number in 0..520 {
            let message = json!({"sender_id": 1, "client_id": number.to_string(), "content": "x"});
            client.post("/v1/users/2/inbox", &message).await.ok();
        }
        assert_eq!(client.delete("/v1/users/1/directs/2/messages/3").await.status, 204);
        fail::cfg("removal::before_directs", "1*off->pause").unwrap();
        let location = erase(client, 1).await;
        let mut hand = Hand::on(&world).await;
        eventually("the first rows are tombstones", async || {
            hand.text("select cast(count(*) as text) from inbox where user_id = 2 and peer_id = 0").await == "500"
        })
        .await;
        let drift = scrub(&node.app.state().contexts.scrub, &users()[1..]).await.unwrap();
        let said = recounted(&node, None, true).await;
        let unread = client.summary(2).await["chats"]["unread"].clone();
        fail::remove("removal::before_directs");
        assert_eq!((drift, said), (0, Vec::new()));
        assert_eq!(unread, 0, "the chat is going");
        erased(client, &location).await;
        node.stop().await;
    }

    async fn a_repair_makes_no_row_of_an_erased_user(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        write_each_other(client).await;
        let location = erase(client, 2).await;
        erased(client, &location).await;
        let mut hand = Hand::on(&world).await;
        // As a repair sees it that began before the erasure: a number that differs, and no row of the user.
        hand.run("insert into follower_counts (user_id, slot, followers, mutuals) values (2, 3, 4, 0)").await;
        scrubbed(&node).await;
        for user in [None, Some(2)] {
            recounted(&node, user, false).await;
        }
        assert_eq!(hand.text("select cast(count(*) as text) from users where user_id = 2").await, "0");
        client.get("/v1/users/2/badges").await.problem(410, "erased");
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.problem(410, "erased");
        node.stop().await;
    }
}
