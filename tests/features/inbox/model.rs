//! Random sends, reads, mutes and expiries, with restarts and through two nodes, against a model
//! that keeps everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::{Clock, DAY_MS};
use headmark::features::inbox::expiry::{Walk, sweep};
use headmark::maintenance::scrub::scrub;
use serde_json::json;

use super::{id, message, mute, read, seqs, sums};
use crate::both_tiers;
use crate::support::{Client, Dice, Node, World};

const USERS: i64 = 4;
const STEPS: usize = 260;

/// A row of an inbox: when, the other side, whether it is the owner's own, and its sender's id.
#[derive(Debug, Clone)]
struct Row {
    at: i64,
    peer: i64,
    own: bool,
    client: String,
}

#[derive(Debug, Default, Clone)]
struct Chat {
    read_to: i64,
    muted: bool,
}

#[derive(Debug, Default, Clone)]
struct Owner {
    /// The row of seq n is at n − 1.
    rows: Vec<Row>,
    /// How many of the first have expired.
    gone: usize,
    chats: BTreeMap<i64, Chat>,
    /// Whose chats count in no sum as long as they are in here.
    blocked: BTreeSet<i64>,
    /// Cursor, and when it was put.
    devices: BTreeMap<String, (i64, i64)>,
}

impl Owner {
    fn head(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap()
    }

    fn numbered(&self) -> impl DoubleEndedIterator<Item = (i64, &Row)> {
        self.rows.iter().enumerate().map(|(at, row)| (i64::try_from(at).unwrap() + 1, row))
    }

    fn unread(&self, peer: i64) -> i64 {
        let read_to = self.chats.get(&peer).map_or(0, |chat| chat.read_to);
        i64::try_from(self.numbered().filter(|(seq, row)| row.peer == peer && !row.own && *seq > read_to).count()).unwrap()
    }

    /// As the list shows it: peer, unread, muted; those with nothing in them last.
    fn list(&self) -> Vec<(i64, i64, bool)> {
        let last = |peer: i64| self.numbered().filter(|(_, row)| row.peer == peer).map(|(seq, _)| seq).next_back().unwrap_or(0);
        let mut chats: Vec<_> = self.chats.iter().map(|(peer, chat)| (last(*peer), *peer, self.unread(*peer), chat.muted)).collect();
        chats.retain(|(last, _, _, muted)| *last > 0 || *muted);
        chats.iter_mut().for_each(|(_, peer, _, muted)| *muted |= self.blocked.contains(peer));
        chats.sort_unstable_by_key(|(last, peer, ..)| (-last, -peer));
        chats.into_iter().map(|(_, peer, unread, muted)| (peer, unread, muted)).collect()
    }

    fn sums(&self) -> (i64, i64) {
        let silent = |peer: &i64, chat: &Chat| chat.muted || self.blocked.contains(peer);
        let counted: Vec<_> =
            self.chats.iter().filter(|(peer, chat)| !silent(peer, chat)).map(|(peer, _)| self.unread(*peer)).filter(|n| *n > 0).collect();
        (counted.iter().sum(), i64::try_from(counted.len()).unwrap())
    }

    /// The number of what was sent with this id, if its row is kept.
    fn sent(&self, peer: i64, own: bool, client: &str) -> Option<i64> {
        let kept = self.numbered().skip(self.gone);
        kept.filter(|(_, row)| row.peer == peer && row.own == own && row.client == client).map(|(seq, _)| seq).last()
    }

    fn append(&mut self, row: Row) -> i64 {
        self.chats.entry(row.peer).or_default();
        self.rows.push(row);
        self.head()
    }

    fn expire(&mut self, now: i64) {
        let before = now - 30 * DAY_MS;
        let fetched = self.devices.values().filter(|(_, seen)| *seen >= before).map(|(cursor, _)| *cursor).min().unwrap_or(i64::MAX);
        while self.gone < self.rows.len() && self.rows[self.gone].at < before && i64::try_from(self.gone).unwrap() < fetched {
            self.gone += 1;
        }
    }
}

struct Run {
    world: World,
    at: Arc<AtomicI64>,
    nodes: Vec<Node>,
    owners: BTreeMap<i64, Owner>,
    dice: Dice,
}

impl Run {
    async fn start_nodes(&mut self) {
        let many = if self.world.tier == crate::support::Tier::Server { 2 } else { 1 };
        for _ in 0..many {
            self.nodes.push(self.world.try_node(&["--scrub-users", "0"], Clock::Manual(Arc::clone(&self.at))).await.unwrap());
        }
    }

    fn client(&mut self) -> Client {
        let at = self.dice.roll(self.nodes.len());
        self.nodes[at].client.clone()
    }

    fn user(&mut self) -> i64 {
        1 + i64::try_from(self.dice.roll(usize::try_from(USERS).unwrap())).unwrap()
    }

    fn owner(&mut self, user: i64) -> &mut Owner {
        self.owners.entry(user).or_default()
    }

    async fn send(&mut self) {
        let (client, sender, receiver) = (self.client(), self.user(), self.user());
        let client_id = format!("c-{}", self.dice.roll(25));
        let reply = client.post(&format!("/v1/users/{receiver}/inbox"), &message(sender, &client_id, &client_id)).await;
        let to_oneself = sender == receiver;
        if let Some(seq) = self.owner(receiver).sent(sender, to_oneself, &client_id) {
            assert_eq!((reply.status.as_u16(), &reply.body["seq"]), (200, &json!(seq)), "{}", reply.text);
            return;
        }
        if self.owner(receiver).blocked.contains(&sender) {
            return drop(reply.problem(403, "blocked"));
        }
        let at = self.at.load(Ordering::SeqCst);
        let seq = self.owner(receiver).append(Row { at, peer: sender, own: to_oneself, client: client_id.clone() });
        let own = if to_oneself { seq } else { self.owner(sender).append(Row { at, peer: receiver, own: true, client: client_id }) };
        assert_eq!((reply.status.as_u16(), &reply.body["seq"], &reply.body["own_seq"]), (201, &json!(seq), &json!(own)), "{}", reply.text);
    }

    async fn read(&mut self) {
        let (client, user, peer) = (self.client(), self.user(), self.user());
        let head = self.owner(user).head();
        let up_to = i64::try_from(self.dice.roll(usize::try_from(head + 3).unwrap())).unwrap();
        let all = self.dice.roll(5) == 0;
        let body = if all { json!({}) } else { json!({"up_to": up_to}) };
        let unread = read(&client, user, peer, &body).await;
        if let Some(chat) = self.owner(user).chats.get_mut(&peer) {
            chat.read_to = chat.read_to.max(if all { head } else { up_to.min(head) });
        }
        assert_eq!(unread, self.owner(user).unread(peer), "{user} reads {peer} up to {body}: {:?}", self.owner(user));
    }

    async fn mute(&mut self) {
        let (client, user, peer, muted) = (self.client(), self.user(), self.user(), self.dice.roll(2) == 0);
        mute(&client, user, peer, muted).await;
        let owner = self.owner(user);
        if muted || owner.chats.contains_key(&peer) {
            owner.chats.entry(peer).or_default().muted = muted;
        }
    }

    async fn block(&mut self) {
        let (client, user, peer, blocks) = (self.client(), self.user(), self.user(), self.dice.roll(2) == 0);
        if user == peer {
            return;
        }
        let path = format!("/v1/users/{user}/blocks/{peer}");
        let reply = if blocks { client.put(&path, &json!({})).await } else { client.delete(&path).await };
        assert!(reply.status.is_success(), "{}", reply.text);
        let owner = self.owner(user);
        if blocks {
            owner.blocked.insert(peer)
        } else {
            owner.blocked.remove(&peer)
        };
    }

    async fn put_cursor(&mut self) {
        let (client, user, device) = (self.client(), self.user(), format!("d{}", self.dice.roll(2)));
        let now = self.at.load(Ordering::SeqCst);
        let head = self.owner(user).head();
        let seq = i64::try_from(self.dice.roll(usize::try_from(head + 2).unwrap())).unwrap();
        let reply = client.put(&format!("/v1/users/{user}/devices/{device}/cursor"), &json!({"seq": seq})).await.ok();
        let entry = self.owner(user).devices.entry(device).or_insert((0, now));
        *entry = (entry.0.max(seq.min(head)), now);
        assert_eq!(reply["cursor"], entry.0);
        // A node sweeps by itself as it starts: nothing is to be left for that.
        self.sweep().await;
    }

    async fn pass_time(&mut self) {
        let days = i64::try_from(self.dice.roll(12)).unwrap();
        self.at.fetch_add(days * DAY_MS + 1, Ordering::SeqCst);
        self.sweep().await;
    }

    async fn sweep(&mut self) {
        let (at, now) = (self.dice.roll(self.nodes.len()), self.at.load(Ordering::SeqCst));
        sweep(&self.nodes[at].app.state().contexts.inbox, &mut Walk::default()).await.unwrap();
        self.owners.values_mut().for_each(|owner| owner.expire(now));
    }

    async fn check(&mut self) {
        for user in 1..=USERS {
            let owner = self.owner(user).clone();
            let shown: Vec<_> = super::chats(&self.client(), user).await;
            // A chat that was muted ahead and is so no longer keeps its row.
            let is_muted = |peer: &i64| owner.chats.get(peer).is_some_and(|chat| chat.muted);
            let shown: Vec<_> =
                shown.into_iter().filter(|(peer, ..)| is_muted(peer) || owner.rows.iter().any(|row| row.peer == *peer)).collect();
            assert_eq!(shown, owner.list(), "{user}");
            assert_eq!(sums(&self.nodes[0], user).await, owner.sums(), "{user}");
            let client = self.client();
            let after = self.dice.roll(owner.rows.len() + 2);
            let reply = client.get(&format!("/v1/users/{user}/inbox?after={after}&limit=100")).await;
            if after > owner.rows.len() {
                reply.problem(410, "inbox_reset");
            } else if after < owner.gone {
                assert_eq!(reply.problem(410, "cursor_expired")["earliest_seq"], owner.gone + 1);
            } else {
                let body = reply.ok();
                let expected: Vec<_> = owner.numbered().skip(after).take(100).collect();
                assert_eq!(seqs(&body), expected.iter().map(|(seq, _)| *seq).collect::<Vec<_>>());
                for (item, (_, row)) in body["items"].as_array().unwrap().iter().zip(expected) {
                    let (own, peer) = (item["own"] == true, item["peer_id"].as_str().unwrap().parse::<i64>().unwrap());
                    assert_eq!((own, peer, item["content"].as_str().unwrap()), (row.own, row.peer, row.client.as_str()));
                }
            }
        }
        let users: Vec<_> = (1..=USERS).map(id).collect();
        assert_eq!(scrub(&self.nodes[0].app.state().contexts.scrub, &users).await.unwrap(), 0, "what rows and entries say is the same");
    }
}

both_tiers! {
    async fn whatever_is_done_the_numbers_are_those_of_the_rows(world: World) {
        for seed in 1..=2 {
            let world = World::new(world.tier).await;
            let at = Arc::new(AtomicI64::new(1_800_000_000_000));
            let mut run = Run { world, at, nodes: Vec::new(), owners: BTreeMap::new(), dice: Dice::new(seed * 7919) };
            run.start_nodes().await;
            for step in 0..STEPS {
                match run.dice.roll(22) {
                    0..=9 => run.send().await,
                    20..=21 => run.block().await,
                    10..=13 => run.read().await,
                    14..=15 => run.mute().await,
                    16..=17 => run.put_cursor().await,
                    18 => run.pass_time().await,
                    _ => run.check().await,
                }
                if step % 90 == 89 {
                    Node::stop_all(std::mem::take(&mut run.nodes)).await;
                    run.start_nodes().await;
                }
            }
            run.check().await;
            Node::stop_all(std::mem::take(&mut run.nodes)).await;
        }
    }
}
