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

use headmark::base::clock::UnixMs;
use headmark::features::removals::{Place, Removal, RemovalKind};
use serde_json::Value;

use crate::support::{Client, Hand, World, eventually_within};

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

/// A step that no node of this version does.
const STEP: &str = "of_a_newer_version";

/// A removal that is at such a step, so that only the test moves it.
async fn begun_by_a_newer_version(world: &World) -> Removal {
    const ID: &str = "0190163d8694739b3d5c2a7f00112230";
    let columns = "operation_id, kind, subject_id, caller, step, after_id, after_seq, after_name, due_at, created_at, finished_at";
    let row = format!("'{ID}', 1, 7, 'open', '{STEP}', 3, 0, '', 5000, 1, 0");
    Hand::on(world).await.run(&format!("insert into removals ({columns}) values ({row})")).await;
    let (kind, step, due_at) = (RemovalKind::User, STEP.to_owned(), UnixMs(5000));
    Removal { id: ID.parse().unwrap(), kind, subject: 7, step, place: Place::id(3), due_at, unsure: Vec::new() }
}
