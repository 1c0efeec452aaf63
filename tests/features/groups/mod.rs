//! Groups, over HTTP, as the contract has them.

mod again;
mod crowds;
pub mod deletion;
mod expiry;
pub mod fan_out;
mod far_behind;
mod history;
mod levels;
mod mentions;
mod message_changes;
mod routes;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Client, Reply};

pub(crate) async fn make(client: &Client, group: i64, members: &[i64]) {
    client.put(&format!("/v1/groups/{group}"), &json!({})).await.ok();
    if !members.is_empty() {
        client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": members})).await.ok();
    }
}

pub(crate) async fn send(client: &Client, group: i64, sender: i64, client_id: &str) -> Reply {
    client
        .post(
            &format!("/v1/groups/{group}/messages"),
            &json!({"sender_id": sender, "client_id": client_id, "content": format!("it is {client_id}")}),
        )
        .await
}

pub(crate) async fn read(client: &Client, user: i64, group: i64, up_to: Option<i64>) -> Reply {
    let body = up_to.map_or(json!({}), |up_to| json!({"up_to": up_to}));
    client.post(&format!("/v1/users/{user}/groups/{group}/read"), &body).await
}

pub(crate) async fn read_one(client: &Client, user: i64, group: i64, seq: i64) -> Reply {
    client.post(&format!("/v1/users/{user}/groups/{group}/messages/{seq}/read"), &json!({})).await
}

async fn join(client: &Client, group: i64, user: i64) -> Reply {
    client.put(&format!("/v1/groups/{group}/members/{user}"), &json!({})).await
}

async fn leave(client: &Client, group: i64, user: i64) -> u16 {
    client.delete(&format!("/v1/groups/{group}/members/{user}")).await.status.as_u16()
}

async fn recall(client: &Client, group: i64, seq: i64) -> Reply {
    client.delete(&format!("/v1/groups/{group}/messages/{seq}")).await
}

/// Unread and head of each of a user's groups, page by page.
async fn shown(client: &Client, user: i64) -> BTreeMap<i64, (i64, i64)> {
    let items = client.walk(&format!("/v1/users/{user}/groups"), 3).await;
    let number = |item: &Value, field: &str| item[field].as_i64().unwrap();
    items.iter().map(|item| (item["group_id"].as_str().unwrap().parse().unwrap(), (number(item, "unread"), number(item, "head")))).collect()
}

async fn chats(client: &Client, user: i64) -> Value {
    client.summary(user).await["chats"].clone()
}
