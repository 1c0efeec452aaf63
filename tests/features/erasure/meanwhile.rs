//! What comes between two steps of an erasure, or is written after it and was read before.

use headmark::db::Statement;
use headmark::features::feed::Snapshot;
use reqwest::Method;
use serde_json::json;

use super::world::ERASED;
use super::{erase, erased, node};
use crate::both_tiers;
use crate::features::feed::resets::{apply, read};
use crate::features::feed::{feed, post};
use crate::support::{Client, Hand, Node, Pause};

/// The creators in the snapshot of user 1.
async fn snapshot(node: &Node) -> Vec<i64> {
    static SNAPSHOT: Statement = Statement::new("select s.data from feed_snapshots s where s.user_id = 1", &[]);
    let rows: Vec<(Vec<u8>,)> = node.app.state().db.fetch(&SNAPSHOT, &[]).await.unwrap();
    Snapshot::decode(&rows[0].0).unwrap().iter().map(|(creator, _)| creator.get()).collect()
}

both_tiers! {
    /// It read that the user follows the creator, and is written when nobody looks for the creator any more.
    async fn a_reset_adds_nobody_who_was_erased_since_it_was_read(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.get("/v1/users/1/badges").await.ok();
        client.follow(1, 3).await;
        for (creator, unfollows) in [(5, false), (6, true)] {
            client.follow(1, creator).await;
            for of in [3, creator] {
                post(client, of, &format!("p{creator}")).await.ok();
            }
            let early = read(&node).await;
            if unfollows {
                client.unfollow(1, creator).await;
            }
            let location = erase(client, creator).await;
            erased(client, &location).await;
            apply(&node, early).await;
            assert_eq!(snapshot(&node).await, [3], "with creator {creator}");
            assert_eq!(feed(client, 1).await, (0, 1));
        }
        node.stop().await;
    }

    async fn an_item_that_another_maker_made_again_keeps_its_maker(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        for item in ["a", "b"] {
            let put = client.request(Method::PUT, &format!("/v1/views/home/1/items/{item}"));
            assert_eq!(Client::send(put.json(&json!({"actor_id": ERASED}))).await.status, 201);
        }
        let pause = Pause::at("views::before_forget");
        let location = erase(client, ERASED).await;
        pause.reached().await;
        let mut hand = Hand::on(&world).await;
        // As after its id had expired.
        hand.run("update view_items set actor_id = 5 where item_id = 'a'").await;
        pause.go_on().await;
        erased(client, &location).await;
        for (item, maker) in [("a", "5"), ("b", "0")] {
            let actor = format!("select cast(actor_id as text) from view_items where item_id = '{item}'");
            assert_eq!(hand.text(&actor).await, maker, "item {item}");
        }
        node.stop().await;
    }
}
