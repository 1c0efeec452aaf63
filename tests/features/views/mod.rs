//! Views, over HTTP, as the contract has them.

mod batch;
mod expiry;
mod model;
mod routes;

use std::sync::Arc;

use futures_util::future::join_all;
use headmark::engine::lanes::Job;
use headmark::features::views::{NewItem, ViewCommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Node, Reply, eventually};

async fn put(client: &Client, view: &str, item: &str, actor: Option<i64>) -> Reply {
    let request = client.request(Method::PUT, &format!("/v1/views/{view}/items/{item}"));
    Client::send(match actor {
        Some(actor) => request.json(&json!({"actor_id": actor})),
        None => request,
    })
    .await
}

async fn delete(client: &Client, view: &str, item: &str) -> u16 {
    client.delete(&format!("/v1/views/{view}/items/{item}")).await.status.as_u16()
}

async fn access(client: &Client, user: i64, view: &str, up_to: Option<i64>) -> Value {
    let body = up_to.map_or(json!({}), |up_to| json!({"up_to": up_to}));
    client.post(&format!("/v1/users/{user}/views/{view}/access"), &body).await.ok()
}

async fn view(client: &Client, user: i64, view: &str) -> Value {
    client.get(&format!("/v1/users/{user}/views/{view}")).await.ok()
}

/// Unread and head, as a poll and as an unread summary show them, which must agree; on a node that
/// is told of a change in between, once it is.
async fn numbers(client: &Client, user: i64, name: &str) -> (i64, i64) {
    let colon = name.replacen('/', ":", 1);
    let mut shown = Vec::new();
    eventually("poll and summary agree", async || {
        let summary = client.get(&format!("/v1/users/{user}/badges?views={colon}")).await.ok();
        let both = [view(client, user, name).await, summary["views"][&colon].clone()];
        shown =
            both.map(|body| (body["unread"].as_i64().unwrap(), body["head"].as_i64().unwrap(), body.get("last_access_at").cloned())).into();
        shown[0] == shown[1]
    })
    .await;
    (shown[0].0, shown[0].1)
}

/// Items in this order, many in a transaction; the actor of each.
async fn put_in_order(node: &Node, name: &str, actors: impl Iterator<Item = Option<i64>>) {
    let puts = actors.enumerate().map(|(n, actor)| {
        let command = ViewCommand::Put(NewItem {
            view: name.parse().unwrap(),
            item: format!("i{n}").parse().unwrap(),
            actor: actor.map(|actor| actor.try_into().unwrap()),
        });
        node.app.state().lanes.submit(Job { command: Arc::new(command), key: None })
    });
    for answer in join_all(puts).await {
        assert_eq!(answer.unwrap().status(), 201);
    }
}
