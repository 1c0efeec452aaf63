//! Mutes, and blocks, over HTTP, as the contract has them: what the user is shown no longer, and that
//! it all comes back.

mod effects;
mod ends;
mod races;
mod routes;
mod sizes;

use headmark::base::clock::UnixMs;
use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use crate::support::{Client, Node};

const START: i64 = 1_800_000_000_000;

fn time(at: i64) -> Value {
    json!(UnixMs(at).to_string())
}

/// Mutes for ever.
async fn mute(client: &Client, user: i64, target: i64) -> Value {
    client.put(&format!("/v1/users/{user}/mutes/{target}"), &json!({})).await.ok()
}

/// Mutes until a time.
async fn mute_until(client: &Client, user: i64, target: i64, until: i64) -> Value {
    client.put(&format!("/v1/users/{user}/mutes/{target}"), &json!({"until": time(until)})).await.ok()
}

async fn unmute(client: &Client, user: i64, target: i64) {
    assert_eq!(client.delete(&format!("/v1/users/{user}/mutes/{target}")).await.status, 204);
}

/// The users of the list, page by page, and those of the whole list, which are the same.
async fn muted(client: &Client, user: i64) -> Vec<i64> {
    let id = |id: &Value| id.as_str().unwrap().parse::<i64>().unwrap();
    let items = client.walk(&format!("/v1/users/{user}/mutes"), 3).await;
    let listed: Vec<_> = items.iter().map(|item| id(&item["user_id"])).collect();
    let whole = client.get(&format!("/v1/users/{user}/mutes/ids")).await.ok();
    assert_eq!(whole["ids"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), listed);
    assert_eq!(whole["count"], listed.len());
    listed
}

/// Sends a direct message.
async fn send(client: &Client, sender: i64, receiver: i64, client_id: &str) {
    let body = json!({"sender_id": sender, "client_id": client_id, "content": client_id});
    assert_eq!(client.post(&format!("/v1/users/{receiver}/inbox"), &body).await.status, 201);
}

/// Sends a notification of somebody's act; the id.
async fn notify(client: &Client, actor: i64, recipients: &[i64], group_key: Option<&str>) -> String {
    let mut body = json!({"type": "like", "title": "A like", "actor_id": actor, "recipients": recipients});
    if let Some(key) = group_key {
        body["group_key"] = json!(key);
    }
    let sent = client.post("/v1/notifications", &body).await;
    assert_eq!((sent.status.as_u16(), &sent.body["recipient_count"]), (201, &json!(recipients.len())));
    sent.body["notification_id"].as_str().unwrap().to_owned()
}

/// The chats' sum and how many direct chats are in it, the total, and the feed: as the summary has
/// them, and the terms beside it.
async fn numbers(client: &Client, user: i64) -> [i64; 4] {
    let summary = client.summary(user).await;
    let explained = client.get(&format!("/v1/users/{user}/badges/explain")).await.ok();
    for (shown, told) in [
        (&summary["chats"]["unread"], &explained["chats"]["unread"]),
        (&summary["total"], &explained["total"]),
        (&summary["feed"]["unread"], &explained["feed"]["unread"]),
    ] {
        assert_eq!(shown, told, "{summary} {explained}");
    }
    let feed = client.get(&format!("/v1/users/{user}/feed")).await.ok();
    assert_eq!(feed["unread"], summary["feed"]["unread"]);
    [&summary["chats"]["unread"], &summary["chats"]["directs"], &summary["total"], &summary["feed"]["unread"]]
        .map(|number| number.as_i64().unwrap())
}

/// Nothing differs from its rows.
async fn check(node: &Node, users: &[i64]) {
    let ids: Vec<_> = users.iter().map(|user| (*user).try_into().unwrap()).collect();
    assert_eq!(scrub(&node.app.state().contexts.scrub, &ids).await.unwrap(), 0);
    let mut found = Vec::new();
    let recount = Recount { user: None, dry_run: true };
    recount.run(&node.app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
    assert_eq!(found, Vec::<String>::new());
}
