//! Direct messages, inboxes and devices over HTTP, as the contract has them.

mod chats;
mod devices;
mod directs;
mod epochs;
mod expiry;
mod kills;
mod levels;
mod model;
mod receipts;
mod routes;
mod sync;

use headmark::base::clock::UnixMs;
use headmark::base::error::Problem;
use headmark::base::ids::{GroupId, UserId};
use headmark::db::{Column, Statement, Type};
use headmark::engine::lanes::{self, Answer, Job, Names, Needs, Rows};
use headmark::features::inbox::{GroupRun, append_runs};
use serde_json::{Value, json};

use crate::support::{Client, Node};

fn id(user: i64) -> UserId {
    user.try_into().unwrap()
}

pub fn message(sender: i64, client_id: &str, content: &str) -> Value {
    json!({"sender_id": sender, "client_id": client_id, "content": content})
}

/// Sends a direct message; its number in the receiver's inbox.
async fn send(client: &Client, sender: i64, receiver: i64, client_id: &str) -> i64 {
    let reply = client.post(&format!("/v1/users/{receiver}/inbox"), &message(sender, client_id, client_id)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.body["seq"].as_i64().unwrap()
}

async fn inbox(client: &Client, user: i64, query: &str) -> Value {
    client.get(&format!("/v1/users/{user}/inbox{query}")).await.ok()
}

/// The numbers of some rows.
fn seqs(inbox: &Value) -> Vec<i64> {
    inbox["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect()
}

/// Marks a chat as read; what is unread after it.
pub async fn read(client: &Client, user: i64, peer: i64, body: &Value) -> i64 {
    client.post(&format!("/v1/users/{user}/directs/{peer}/read"), body).await.ok()["unread"].as_i64().unwrap()
}

/// Shows a chat as unread again; what is unread after it.
pub async fn unread(client: &Client, user: i64, peer: i64, from: i64) -> i64 {
    client.post(&format!("/v1/users/{user}/directs/{peer}/unread"), &json!({"from": from})).await.ok()["unread"].as_i64().unwrap()
}

async fn mute(client: &Client, user: i64, peer: i64, muted: bool) -> Value {
    client.put(&format!("/v1/users/{user}/directs/{peer}/settings"), &json!({"level": if muted { "none" } else { "all" }})).await.ok()
}

/// Peer, unread and whether sums leave it out, of each chat in the order of the list.
async fn chats(client: &Client, user: i64) -> Vec<(i64, i64, bool)> {
    let items = client.walk(&format!("/v1/users/{user}/directs"), 3).await;
    let chat =
        |item: &Value| (item["peer_id"].as_str().unwrap().parse().unwrap(), item["unread"].as_i64().unwrap(), item["level"] == "none");
    items.iter().map(chat).collect()
}

/// What a user's own row sums up: unread direct messages, and from how many peers.
async fn sums(node: &Node, user: i64) -> (i64, i64) {
    static SUMS: Statement = Statement::one("select direct_unread, direct_chats from users where user_id = $1", &[("user_id", Type::Int)]);
    let rows: Vec<(i64, i64)> = node.app.state().db.fetch(&SUMS, &[Column::Int(vec![user])]).await.unwrap();
    rows.first().copied().unwrap_or_default()
}

/// What the rows of all users differ in from the numbers.
async fn differences(node: &Node) -> Vec<String> {
    let (recount, mut found) = (headmark::maintenance::recount::Recount { user: None, dry_run: true }, Vec::new());
    recount.run(&node.app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
    found
}

/// Puts rows of groups into inboxes, as a group's fan-out does.
#[derive(Debug)]
struct FanOut(Vec<(UserId, GroupRun)>);

impl lanes::Command for FanOut {
    fn needs(&self, needs: &mut Needs) {
        self.0.iter().for_each(|(user, _)| needs.user(*user));
    }

    fn lane_key(&self) -> i64 {
        0
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let seqs: Vec<_> = self.0.iter().map(|(user, run)| append_runs(rows, *user, std::slice::from_ref(run), now)).collect();
        Ok(Answer::ok(seqs))
    }
}

/// The numbers that the rows got.
async fn fan_out(node: &Node, runs: Vec<(i64, GroupRun)>) -> Vec<i64> {
    let runs = runs.into_iter().map(|(user, run)| (id(user), run)).collect();
    let answer = node.app.state().lanes.submit(Job { command: std::sync::Arc::new(FanOut(runs)), key: None }).await.unwrap();
    answer.value().unwrap()
}

fn of_group(group: i64, seq: i64, own: bool) -> GroupRun {
    GroupRun::new(GroupId::try_from(group).unwrap(), [seq].into_iter(), own, false)
}
