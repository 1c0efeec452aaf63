//! What comes between two readings of one answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use reqwest::Method;
use serde_json::json;

use super::post;
use crate::both_tiers;
use crate::support::Client;

/// Where a list is read from SQL.
const STEP: &str = "feed::before_read";

both_tiers! {
    /// An answer names the revision of the user's own state. It must not show the creators of
    /// another revision: at one revision `shared_revision` would go down.
    async fn a_follow_between_two_readings_is_in_both(world: World) {
        let node = world.node().await;
        let client = &node.client;
        follow(client, 8).await;
        for n in 0..3 {
            post(client, 9, &format!("p-{n}")).await;
        }
        for (load, shown) in [("/v1/users/7/feed", ["unread", "creators"]), ("/v1/users/7/badges", ["revision", "feed"])] {
            let held = Held::begin();
            node.app.state().summaries.parts.feed.feeds.clear();
            let reading = tokio::spawn({ let client = client.clone(); async move { client.get(load).await } });
            let held = held.reached().await;
            follow(client, 9).await;
            held.release().await;
            let (seen, now) = (reading.await.unwrap(), client.get(load).await);
            for name in shown {
                assert!(!now.body[name].is_null(), "{load}: {}", now.text);
                assert_eq!(seen.body[name], now.body[name], "{load}: {} and then {}", seen.text, now.text);
            }
            assert_eq!(seen.header("etag"), now.header("etag"), "{load}: {} and then {}", seen.text, now.text);
            client.delete("/v1/users/7/following/9").await;
        }
        node.stop().await;
    }
}

async fn follow(client: &Client, creator: i64) {
    Client::send(client.request(Method::PUT, &format!("/v1/users/7/following/{creator}")).json(&json!({}))).await.ok();
}

/// Holds the first reading of a list.
struct Held {
    reached: Arc<Barrier>,
    released: Arc<Barrier>,
}

impl Held {
    fn begin() -> Self {
        let (reached, released) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (at, to, hits) = (Arc::clone(&reached), Arc::clone(&released), AtomicUsize::new(0));
        let hold = move || {
            if hits.fetch_add(1, Ordering::SeqCst) == 0 {
                at.wait();
                to.wait();
            }
        };
        fail::cfg_callback(STEP, hold).unwrap();
        Self { reached, released }
    }

    async fn reached(self) -> Self {
        let reached = Arc::clone(&self.reached);
        tokio::task::spawn_blocking(move || reached.wait()).await.unwrap();
        self
    }

    async fn release(self) {
        tokio::task::spawn_blocking(move || self.released.wait()).await.unwrap();
        fail::remove(STEP);
    }
}
