//! Mutes and blocks that change while messages, posts and notifications come, through two nodes.

use futures_util::future::join_all;
use serde_json::json;

use super::{check, notify, numbers};
use crate::both_tiers;
use crate::features::feed::{feed, post};
use crate::support::{Client, Node, eventually};

const ME: i64 = 9;
const PEERS: [i64; 3] = [1, 2, 3];
const ROUNDS: usize = 30;

async fn is_muted(client: &Client, peer: i64) -> bool {
    let whole = client.get(&format!("/v1/users/{ME}/mutes/ids")).await.ok();
    whole["ids"].as_array().unwrap().contains(&json!(peer.to_string()))
}

both_tiers! {
    async fn whatever_comes_while_mutes_change_is_there_afterwards(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        first.summary(ME).await;
        for peer in PEERS {
            first.follow(ME, peer).await;
        }
        let mutes = PEERS.map(|peer| {
            let nodes = &nodes;
            async move {
                for round in 0..ROUNDS {
                    let client = &nodes[round % nodes.len()].client;
                    let path = format!("/v1/users/{ME}/mutes/{peer}");
                    assert_eq!(client.put(&path, &json!({})).await.ok()["muting"], true);
                    assert!(is_muted(client, peer).await);
                    assert_eq!(client.delete(&path).await.status, 204);
                    assert!(!is_muted(client, peer).await);
                }
            }
        });
        let comes = PEERS.map(|peer| {
            let nodes = &nodes;
            async move {
                for round in 0..ROUNDS {
                    let client = &nodes[(round + 1) % nodes.len()].client;
                    let id = format!("c{round}");
                    let body = json!({"sender_id": peer, "client_id": id, "content": id});
                    assert_eq!(client.post(&format!("/v1/users/{ME}/inbox"), &body).await.status, 201);
                    post(client, peer, &id).await.ok();
                    notify(client, peer, &[ME, 8], Some("post-1")).await;
                }
            }
        });
        tokio::join!(join_all(mutes), join_all(comes));
        let all = i64::try_from(ROUNDS * PEERS.len()).unwrap();
        for client in [first, last] {
            eventually("all posts are counted", async || feed(client, ME).await.0 == all).await;
            let shown = numbers(client, ME).await;
            let entries = client.get(&format!("/v1/users/{ME}/notifications")).await.ok()["items"].as_array().unwrap().len();
            assert_eq!((shown[0], shown[1], shown[3]), (all, 3, all));
            assert_eq!(shown[2], all + i64::try_from(entries).unwrap(), "what came while it was unread joined one entry");
            assert_eq!(client.summary(8).await["notifications"]["like"]["unread"], 1);
        }
        check(&nodes[0], &[ME, 8, 1, 2, 3]).await;
        Node::stop_all(nodes).await;
    }
}
