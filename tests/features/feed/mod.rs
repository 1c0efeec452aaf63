//! Posts and feeds over HTTP, as the contract has them.

mod batch;
mod model;
mod races;
pub mod resets;
mod routes;
mod sizes;
mod tokens;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Reply};

fn post_path(creator: i64, id: &str) -> String {
    format!("/v1/users/{creator}/posts/{id}")
}

/// Puts a post.
pub async fn post(client: &Client, creator: i64, id: &str) -> Reply {
    Client::send(client.request(Method::PUT, &post_path(creator, id))).await
}

/// Deletes one that is there.
pub async fn delete(client: &Client, creator: i64, id: &str) {
    let reply = client.delete(&post_path(creator, id)).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
}

/// Unread and creators.
pub async fn feed(client: &Client, user: i64) -> (i64, i64) {
    shown(&client.get(&format!("/v1/users/{user}/feed")).await.ok())
}

#[track_caller]
fn shown(body: &Value) -> (i64, i64) {
    assert!(body.as_object().unwrap().len() == 3 && body["token"].is_string(), "{body}");
    (body["unread"].as_i64().unwrap(), body["creators"].as_i64().unwrap())
}

/// Looks at the feed; the answer.
pub async fn reset(client: &Client, user: i64) -> Value {
    client.post(&format!("/v1/users/{user}/feed/reset"), &json!({})).await.ok()
}

/// Posts and head.
pub async fn count(client: &Client, creator: i64) -> (i64, i64) {
    let counts = client.get(&format!("/v1/users/{creator}/posts/count")).await.ok();
    (counts["posts"].as_i64().unwrap(), counts["head"].as_i64().unwrap())
}
