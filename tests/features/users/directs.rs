//! Users who do not share receipts, in direct chats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::share;
use crate::both_tiers;
use crate::features::inbox::{message, read, unread};
use crate::support::{CREDENTIALS, Client, Dice, Node, Reply, eventually};

fn path(user: i64, peer: i64) -> String {
    format!("/v1/users/{user}/directs/{peer}/receipts")
}

/// The last message of the user that the peer is shown to have read.
async fn read_seq(client: &Client, user: i64, peer: i64) -> i64 {
    client.get(&path(user, peer)).await.ok()["read_seq"].as_i64().unwrap()
}

/// Sends a message. Returns its numbers in the inboxes of receiver and sender.
async fn send(client: &Client, sender: i64, receiver: i64, id: &str) -> (i64, i64) {
    let reply = client.post(&format!("/v1/users/{receiver}/inbox"), &message(sender, id, "x")).await.ok();
    (reply["seq"].as_i64().unwrap(), reply["own_seq"].as_i64().unwrap())
}

async fn wait_for(node: &Node, path: &str, tag: &str) -> tokio::task::JoinHandle<Reply> {
    let request = node.client.request(Method::GET, &format!("{path}?wait=60")).header("if-none-match", tag);
    let poll = tokio::spawn(Client::send(request));
    eventually("it waits", async || node.app.state().polling.waiting.taken() == 1).await;
    poll
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    sender: i64,
    receiver: i64,
    /// In the inbox of the sender.
    own_seq: i64,
    /// In the inbox of the receiver.
    seq: i64,
    is_read: bool,
    is_hidden: bool,
}

/// Everything that was sent, and who hides what is read. Each rule is a walk over the list.
#[derive(Debug, Default)]
struct Model {
    sent: Vec<Sent>,
    hides: BTreeMap<i64, bool>,
    heads: BTreeMap<i64, i64>,
}

impl Model {
    fn hides(&self, user: i64) -> bool {
        self.hides.get(&user).copied().unwrap_or(false)
    }

    fn sent(&mut self, sender: i64, receiver: i64, (seq, own_seq): (i64, i64)) {
        self.read(sender, receiver, own_seq);
        let is_hidden = self.hides(receiver);
        self.sent.push(Sent { sender, receiver, own_seq, seq, is_read: false, is_hidden });
        self.heads.extend([(receiver, seq), (sender, own_seq)]);
    }

    fn read(&mut self, user: i64, peer: i64, up_to: i64) {
        let read = self.sent.iter_mut().filter(|of| of.receiver == user && of.sender == peer && of.seq <= up_to);
        read.for_each(|of| of.is_read = true);
    }

    fn share(&mut self, user: i64, shares: bool) {
        if !shares && !self.hides(user) {
            self.sent.iter_mut().filter(|of| of.receiver == user && !of.is_read).for_each(|of| of.is_hidden = true);
        }
        self.hides.insert(user, !shares);
    }

    fn read_seq(&self, user: i64, peer: i64) -> i64 {
        let shown = self.sent.iter().filter(|of| of.sender == user && of.receiver == peer && of.is_read && !of.is_hidden);
        shown.map(|of| of.own_seq).max().unwrap_or(0)
    }
}

both_tiers! {
    async fn what_is_read_meanwhile_never_shows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        // Other rows between, so that the numbers of both sides differ.
        send(client, 3, 2, "o").await;
        for id in ["a", "b"] { send(client, 1, 2, id).await; }
        read(client, 2, 1, &json!({"up_to": 2})).await;
        assert_eq!(read_seq(client, 1, 2).await, 1);
        share(client, 2, false).await.ok();
        send(client, 1, 2, "c").await;
        read(client, 2, 1, &json!({})).await;
        assert_eq!(read_seq(client, 1, 2).await, 1, "from the first message that was unread on");
        client.put("/v1/users/2/devices/phone/cursor", &json!({"seq": 4})).await.ok();
        assert_eq!(client.get(&path(1, 2)).await.ok(), json!({"delivered_seq": 3, "read_seq": 1}), "what is fetched says nothing of reading");
        send(client, 1, 2, "d").await;
        share(client, 2, true).await.ok();
        assert_eq!(read_seq(client, 1, 2).await, 1);
        read(client, 2, 1, &json!({})).await;
        assert_eq!(read_seq(client, 1, 2).await, 1, "up to the last message that there was");
        send(client, 1, 2, "e").await;
        assert_eq!(read_seq(client, 1, 2).await, 1);
        read(client, 2, 1, &json!({})).await;
        assert_eq!(read_seq(client, 1, 2).await, 5, "a later one shows");
        // A chat that begins meanwhile, with an answer, which reads.
        share(client, 2, false).await.ok();
        send(client, 4, 2, "f").await;
        send(client, 2, 4, "g").await;
        assert_eq!((read_seq(client, 4, 2).await, read_seq(client, 1, 2).await), (0, 5));
        share(client, 2, true).await.ok();
        send(client, 4, 2, "h").await;
        send(client, 2, 4, "i").await;
        assert_eq!((read_seq(client, 4, 2).await, read_seq(client, 1, 2).await), (3, 5));
        node.stop().await;
    }

    async fn who_hides_sees_no_receipts_of_directs(world: World) {
        let nodes = match world.tier {
            crate::support::Tier::Server => vec![world.node_with(&CREDENTIALS).await, world.node_with(&CREDENTIALS).await],
            _ => vec![world.node_with(&CREDENTIALS).await],
        };
        let (one, other) = (nodes[0].user(1), nodes.last().unwrap().user(1));
        share(&one, 1, false).await.ok();
        for client in [&one, &other] { client.get(&path(1, 2)).await.problem(403, "receipts_hidden"); }
        one.get("/v1/users/me/directs/2/receipts").await.problem(403, "receipts_hidden");
        nodes[0].service().get(&path(1, 2)).await.problem(403, "receipts_hidden");
        assert_eq!(nodes[0].user(2).get(&path(2, 1)).await.status, 200, "the peer sees them");
        share(&other, 1, true).await.ok();
        for client in [&one, &other] { assert_eq!(client.get(&path(1, 2)).await.status, 200); }
        Node::stop_all(nodes).await;
    }

    async fn a_switch_wakes_who_waits_for_receipts(world: World) {
        let nodes = world.nodes().await;
        let (client, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        send(client, 1, 2, "a").await;
        let known = client.get(&path(1, 2)).await;
        // The one who waits hides from now on: the poll is refused, and not at its next look.
        let poll = wait_for(&nodes[0], &path(1, 2), known.header("etag")).await;
        let switched = Instant::now();
        share(last, 1, false).await.ok();
        poll.await.unwrap().problem(403, "receipts_hidden");
        assert!(switched.elapsed() < Duration::from_secs(3), "{:?}", switched.elapsed());
        client.get_if_changed(&path(1, 2), known.header("etag")).await.problem(403, "receipts_hidden");
        share(last, 1, true).await.ok();
        assert_eq!(client.get_if_changed(&path(1, 2), known.header("etag")).await.status, 304, "the same is shown as before");
        // What is read after the peer shares again wakes.
        share(last, 2, false).await.ok();
        share(last, 2, true).await.ok();
        send(client, 1, 2, "b").await;
        let poll = wait_for(&nodes[0], &path(1, 2), known.header("etag")).await;
        read(last, 2, 1, &json!({})).await;
        assert_eq!(poll.await.unwrap().ok()["read_seq"], 2);
        Node::stop_all(nodes).await;
    }

    async fn what_is_hidden_matches_a_list(world: World) {
        let nodes = world.nodes().await;
        for seed in 0..3 {
            let mut dice = Dice::new(500 + seed);
            let mut model = Model::default();
            // Other users for each round.
            let base = i64::try_from(seed).unwrap() * 10;
            let users = [base + 1, base + 2, base + 3];
            for step in 0..150 {
                let client = nodes[dice.roll(nodes.len())].client.clone();
                let user = dice.pick(&users);
                let peer = dice.pick(&users.iter().copied().filter(|of| *of != user).collect::<Vec<_>>());
                let head = model.heads.get(&user).copied().unwrap_or(0);
                let place = i64::try_from(dice.roll(usize::try_from(head + 2).unwrap())).unwrap();
                match dice.roll(10) {
                    0..=2 => model.sent(user, peer, send(&client, user, peer, &format!("m{step}")).await),
                    3 | 4 => {
                        read(&client, user, peer, &json!({"up_to": place})).await;
                        model.read(user, peer, place);
                    }
                    5 => {
                        read(&client, user, peer, &json!({})).await;
                        model.read(user, peer, head);
                    }
                    6 | 7 => {
                        let shares = dice.roll(2) == 0;
                        share(&client, user, shares).await.ok();
                        model.share(user, shares);
                    }
                    8 if model.sent.iter().any(|of| of.receiver == user && of.sender == peer) => {
                        let of = *model.sent.iter().find(|of| of.receiver == user && of.sender == peer).unwrap();
                        unread(&client, user, peer, of.seq).await;
                    }
                    _ => {
                        let own: Vec<_> = model.sent.iter().filter(|of| of.sender == user && of.receiver == peer).map(|of| of.own_seq).collect();
                        if !own.is_empty() {
                            client.delete(&format!("/v1/users/{user}/directs/{peer}/messages/{}", dice.pick(&own))).await;
                            for of in [user, peer] {
                                let inbox = client.get(&format!("/v1/users/{of}/inbox?limit=1")).await.ok();
                                model.heads.insert(of, inbox["head"].as_i64().unwrap());
                            }
                        }
                    }
                }
                let reply = nodes[dice.roll(nodes.len())].client.get(&path(user, peer)).await;
                if model.hides(user) {
                    reply.problem(403, "receipts_hidden");
                } else {
                    assert_eq!(reply.ok()["read_seq"], model.read_seq(user, peer), "seed {seed} step {step}: {user} {peer} {model:?}");
                }
            }
        }
        Node::stop_all(nodes).await;
    }
}
