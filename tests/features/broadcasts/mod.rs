//! Broadcasts over HTTP, as the contract has them: one write for everybody, a mark for each user
//! who looked.

mod deletion;
mod model;
mod routes;

use serde_json::json;

use crate::support::Client;

pub async fn send(client: &Client, channel: &str, title: &str) -> i64 {
    let reply = client.post(&format!("/v1/broadcasts/{channel}"), &json!({ "title": title })).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.ok()["seq"].as_i64().unwrap()
}

pub async fn unread(client: &Client, user: i64, channel: &str) -> i64 {
    let summary = client.summary(user).await;
    assert_eq!(summary["degraded"], false, "{summary}");
    summary["broadcasts"][channel]["unread"].as_i64().unwrap_or(0)
}
