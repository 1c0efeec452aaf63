//! Notifications, over HTTP, as the contract has them.

mod crowds;
mod expiry;
mod grouping;
mod leaving;
mod model;
mod reading;
mod rules;
mod seeing;
mod types;
mod upgrade;

use serde_json::{Value, json};

use crate::support::{Client, Reply};

fn notification(kind: &str, recipients: &[i64]) -> Value {
    json!({"type": kind, "title": "Hello", "content": "World", "recipients": recipients})
}

/// Sends, and returns the id.
async fn send(client: &Client, kind: &str, recipients: &[i64]) -> String {
    let reply = client.post("/v1/notifications", &notification(kind, recipients)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.body["notification_id"].as_str().unwrap().to_owned()
}

async fn mark(client: &Client, user: i64, id: &str, verb: &str) -> Reply {
    client.post(&format!("/v1/users/{user}/notifications/{id}/{verb}"), &json!({})).await
}

#[expect(clippy::print_stderr, reason = "how long it took depends on the machine: shown to anyone who asks for the output, and no test")]
fn say(what: &str) {
    eprintln!("{what}");
}

/// Seqs of a list, in its order.
async fn seqs(client: &Client, user: i64, query: &str) -> Vec<i64> {
    let (mut seqs, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/users/{user}/notifications?limit=7{query}{cursor}")).await.ok();
        seqs.extend(page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()));
        match page["next_cursor"].as_str() {
            None => return seqs,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// The notifications of an unread summary.
async fn shown(client: &Client, user: i64) -> Value {
    client.summary(user).await["notifications"].clone()
}
