//! Devices with `push`, and the `unread` events that follow from them.

mod changes;
mod devices;
mod stuck;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, eventually_within};

/// How long a change without a write may take to be told.
const SOON_S: u64 = 15;

/// The user has a push device.
async fn flag(client: &Client, user: i64) {
    client.put(&format!("/v1/users/{user}/devices/phone"), &json!({"push": true})).await.ok();
}

/// The user is seen, so that broadcasts count from here on.
async fn enrol(client: &Client, user: i64) {
    client.get(&format!("/v1/users/{user}/badges")).await.ok();
}

async fn make_group(client: &Client, group: i64, delivery: &str, members: &[i64]) {
    client.put(&format!("/v1/groups/{group}"), &json!({"delivery": delivery})).await.ok();
    client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": members})).await.ok();
}

async fn say(client: &Client, group: i64, sender: i64, id: &str) {
    let body = json!({"sender_id": sender, "client_id": id, "content": "hello"});
    client.post(&format!("/v1/groups/{group}/messages"), &body).await.ok();
}

/// The numbers of an icon, as a service asks for them.
async fn total(client: &Client, user: i64) -> i64 {
    loop {
        let reply = client.post("/v1/badges/query", &json!({"user_ids": [user]})).await;
        if reply.status != 503 {
            return reply.ok()["items"][0]["total"].as_i64().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn revision(client: &Client, user: i64) -> i64 {
    let body = client.post("/v1/badges/query", &json!({"user_ids": [user]})).await.ok();
    body["items"][0]["revision"].as_i64().unwrap()
}

/// A service that reads `unread` events.
struct Reader {
    client: Client,
    after: i64,
}

impl Reader {
    /// From the end on.
    async fn at_the_end(client: &Client) -> Self {
        let mut this = Self { client: client.clone(), after: 0 };
        this.read().await;
        this
    }

    /// What there is now: user and revision.
    async fn read(&mut self) -> Vec<(i64, i64)> {
        let mut all = Vec::new();
        loop {
            let page = self.client.get(&format!("/v1/events?types=unread&limit=1000&after={}", self.after)).await.ok();
            let event =
                |event: &Value| (event["data"]["user_id"].as_str().unwrap().parse().unwrap(), event["data"]["revision"].as_i64().unwrap());
            all.extend(page["items"].as_array().unwrap().iter().map(event));
            self.after = page["next_after"].as_i64().unwrap();
            if page["has_more"] == false {
                return all;
            }
        }
    }

    /// Nothing comes any more for a while: what there was.
    async fn settle(&mut self) -> Vec<(i64, i64)> {
        let (mut all, mut still) = (Vec::new(), 0);
        while still < 40 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let more = self.read().await;
            still = if more.is_empty() { still + 1 } else { 0 };
            all.extend(more);
        }
        all
    }

    /// Reads until these users were told; nobody else must be. The number of events.
    async fn told(&mut self, what: &str, users: &[i64]) -> usize {
        let expected: BTreeSet<i64> = users.iter().copied().collect();
        let (mut told, mut count) = (BTreeSet::new(), 0);
        eventually_within(SOON_S, what, async || {
            let events = self.read().await;
            count += events.len();
            told.extend(events.into_iter().map(|(user, _)| user));
            told.is_superset(&expected)
        })
        .await;
        assert_eq!(told, expected, "{what}");
        count
    }
}
