//! What users set, over HTTP, as the contract has it.

mod directs;
mod last_seen;
mod receipts;
mod settings;

use serde_json::{Value, json};

use crate::support::{Client, Reply};

async fn patch(client: &Client, user: i64, body: &Value) -> Reply {
    Client::send(client.request(reqwest::Method::PATCH, &format!("/v1/users/{user}/settings")).json(body)).await
}

pub(crate) async fn share(client: &Client, user: i64, shares: bool) -> Reply {
    patch(client, user, &json!({"share_receipts": shares})).await
}
