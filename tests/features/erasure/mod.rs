//! The erasure of a user, over HTTP, as the contract has it.

mod answers;
mod batches;
mod deleted_groups;
mod kills;
mod leases;
mod left;
mod meanwhile;
mod recipients;
mod repeats;
mod routes;
mod scrubbed;
mod stuck;
mod traces;
mod waits;
mod world;

use serde_json::Value;

use crate::support::{Client, World, eventually_within};

/// The shortest life of cached entries, so that an erasure is over soon; and badges of followers and
/// requests.
pub const ARGS: [&str; 8] = ["--cache-ttl-s", "10", "--follower-badge", "fans", "--request-badge", "asks", "--scrub-users", "0"];

/// Erases a user. Where to ask for the operation.
pub async fn erase(client: &Client, user: i64) -> String {
    let reply = client.delete(&format!("/v1/users/{user}")).await;
    assert_eq!(reply.status.as_u16(), 202, "{}", reply.text);
    let location = reply.header("location").to_owned();
    assert_eq!(location, format!("/v1/operations/{}", reply.body["operation_id"].as_str().unwrap()));
    location
}

/// Waits until an erasure is done.
pub async fn erased(client: &Client, location: &str) -> Value {
    let mut told = Value::Null;
    eventually_within(90, "the user is erased", async || {
        told = client.get(location).await.ok();
        told["status"] != "pending"
    })
    .await;
    assert_eq!((&told["status"], &told["answer"]["status"]), (&"done".into(), &204.into()), "{told}");
    told
}

/// A node on which erasures are over soon.
pub async fn node(world: &World) -> crate::support::Node {
    world.node_with(&ARGS).await
}
