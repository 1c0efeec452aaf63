//! Random sends, reads, recalls, levels and mutes that end and expiries, with restarts and through two nodes,
//! against a model that keeps everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::{Clock, DAY_MS, UnixMs};
use headmark::features::inbox::expiry::{Walk, sweep};
use headmark::features::relations::mute_http::sweep_mutes;
use headmark::maintenance::scrub::scrub;
use serde_json::json;

use super::{id, message, read, seqs};
use crate::both_tiers;
use crate::support::{Client, Dice, Node, World};

const USERS: i64 = 4;
const STEPS: usize = 320;

/// A row of an inbox: when, the other side, whether it is the owner's own, its sender's id, and its
/// number on the other side.
#[derive(Debug, Clone)]
struct Row {
    at: i64,
    peer: i64,
    own: bool,
    client: String,
    other_seq: i64,
    recalled: bool,
    /// It tells that the message of this number was recalled.
    recall: Option<i64>,
}

#[derive(Debug, Default, Clone)]
struct Chat {
    read_to: i64,
    /// The peer's messages that show as unread.
    unread: BTreeSet<i64>,
    /// Until when it counts in no sum; 0: for ever.
    none_until: Option<i64>,
}

impl Chat {
    fn is_silent(&self, now: i64) -> bool {
        self.none_until.is_some_and(|until| until == 0 || until > now)
    }
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
    /// Whom the user mutes, and until when; 0: for ever.
    muted: BTreeMap<i64, i64>,
    /// Cursor, and when it was put.
    devices: BTreeMap<String, (i64, i64)>,
}

impl Owner {
    fn is_silenced(&self, peer: i64, now: i64) -> bool {
        self.blocked.contains(&peer) || self.muted.get(&peer).is_some_and(|until| *until == 0 || *until > now)
    }

    fn head(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap()
    }

    fn numbered(&self) -> impl DoubleEndedIterator<Item = (i64, &Row)> {
        self.rows.iter().enumerate().map(|(at, row)| (i64::try_from(at).unwrap() + 1, row))
    }

    fn unread(&self, peer: i64) -> i64 {
        let unread = self.chats.get(&peer).into_iter().flat_map(|chat| &chat.unread);
        i64::try_from(unread.filter(|seq| !self.row(**seq).recalled).count()).unwrap()
    }

    fn row(&self, seq: i64) -> &Row {
        &self.rows[usize::try_from(seq - 1).unwrap()]
    }

    fn messages(&self, peer: i64) -> impl DoubleEndedIterator<Item = (i64, &Row)> {
        self.numbered().filter(move |(_, row)| row.peer == peer && row.recall.is_none())
    }

    fn is_kept(&self, seq: i64) -> bool {
        seq > i64::try_from(self.gone).unwrap()
    }

    fn read(&mut self, peer: i64, up_to: i64) {
        let last = self.messages(peer).map(|(seq, _)| seq).take_while(|seq| *seq <= up_to).last().unwrap_or(0);
        if let Some(chat) = self.chats.get_mut(&peer) {
            chat.read_to = chat.read_to.max(last);
            chat.unread.retain(|seq| *seq > up_to);
        }
    }

    /// As if the mark stood before that row; what is unread already stays so.
    fn unread_again(&mut self, peer: i64, from: i64) {
        let theirs: Vec<_> = self.messages(peer).filter(|(seq, row)| !row.own && *seq >= from).map(|(seq, _)| seq).collect();
        if let Some(chat) = self.chats.get_mut(&peer) {
            chat.unread.extend(theirs);
        }
    }

    /// As the list shows it: peer, unread, whether sums leave it out, and the first unread message
    /// that is kept.
    fn list(&self, now: i64) -> Vec<(i64, i64, bool, Option<i64>)> {
        let last = |peer: i64| self.messages(peer).map(|(seq, _)| seq).next_back().unwrap_or(0);
        let first = |chat: &Chat| chat.unread.iter().copied().find(|seq| self.is_kept(*seq) && !self.row(*seq).recalled);
        let silent = |peer: i64, chat: &Chat| chat.is_silent(now) || self.is_silenced(peer, now);
        let mut chats: Vec<_> =
            self.chats.iter().map(|(peer, chat)| (last(*peer), *peer, self.unread(*peer), silent(*peer, chat), first(chat))).collect();
        chats.retain(|(last, ..)| *last > 0);
        chats.sort_unstable_by_key(|(last, peer, ..)| (-last, -peer));
        chats.into_iter().map(|(_, peer, unread, silent, first)| (peer, unread, silent, first)).collect()
    }

    fn sums(&self, now: i64) -> (i64, i64) {
        let silent = |peer: &i64, chat: &Chat| chat.is_silent(now) || self.is_silenced(*peer, now);
        let counted: Vec<_> =
            self.chats.iter().filter(|(peer, chat)| !silent(peer, chat)).map(|(peer, _)| self.unread(*peer)).filter(|n| *n > 0).collect();
        (counted.iter().sum(), i64::try_from(counted.len()).unwrap())
    }

    /// The number of what was sent with this id, if its row is kept.
    fn sent(&self, peer: i64, own: bool, client: &str) -> Option<i64> {
        let kept = self.numbered().skip(self.gone);
        kept.filter(|(_, row)| (row.peer, row.own, row.client.as_str(), row.recall) == (peer, own, client, None)).map(|(seq, _)| seq).last()
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
            if self.owner(receiver).row(seq).recalled {
                return drop(reply.problem(410, "gone"));
            }
            assert_eq!((reply.status.as_u16(), &reply.body["seq"]), (200, &json!(seq)), "{}", reply.text);
            return;
        }
        if self.owner(receiver).blocked.contains(&sender) {
            return drop(reply.problem(403, "blocked"));
        }
        let at = self.at.load(Ordering::SeqCst);
        let row = Row { at, peer: sender, own: to_oneself, client: client_id, other_seq: 0, recalled: false, recall: None };
        let own = self.owner(sender).head() + 1;
        let seq = self.owner(receiver).append(Row { other_seq: if to_oneself { 0 } else { own }, ..row.clone() });
        if !to_oneself {
            self.owner(receiver).chats.entry(sender).or_default().unread.insert(seq);
            self.owner(sender).append(Row { peer: receiver, own: true, other_seq: seq, ..row });
        }
        self.owner(sender).read(receiver, own);
        assert_eq!((reply.status.as_u16(), &reply.body["seq"], &reply.body["own_seq"]), (201, &json!(seq), &json!(own)), "{}", reply.text);
    }

    async fn read(&mut self) {
        let (client, user, peer) = (self.client(), self.user(), self.user());
        let head = self.owner(user).head();
        let up_to = i64::try_from(self.dice.roll(usize::try_from(head + 3).unwrap())).unwrap();
        let all = self.dice.roll(5) == 0;
        let body = if all { json!({}) } else { json!({"up_to": up_to}) };
        let unread = read(&client, user, peer, &body).await;
        self.owner(user).read(peer, if all { head } else { up_to.min(head) });
        assert_eq!(unread, self.owner(user).unread(peer), "{user} reads {peer} up to {body}: {:?}", self.owner(user));
    }

    async fn unread_again(&mut self) {
        let (client, user, peer) = (self.client(), self.user(), self.user());
        let head = self.owner(user).head();
        let from = 1 + i64::try_from(self.dice.roll(usize::try_from(head + 1).unwrap())).unwrap();
        let reply = client.post(&format!("/v1/users/{user}/directs/{peer}/unread"), &json!({"from": from})).await;
        let owner = self.owner(user);
        if from > head || owner.messages(peer).next().is_none() {
            return drop(reply.problem(404, "not_found"));
        }
        if !owner.is_kept(from) {
            return drop(reply.problem(410, "cursor_expired"));
        }
        owner.unread_again(peer, from);
        let body = reply.ok();
        assert_eq!(body["unread"], owner.unread(peer), "{user} has {peer} unread from {from} on: {owner:?}");
    }

    async fn recall(&mut self) {
        let (client, user, peer) = (self.client(), self.user(), self.user());
        let head = self.owner(user).head();
        let seq = 1 + i64::try_from(self.dice.roll(usize::try_from(head + 1).unwrap())).unwrap();
        let reply = client.delete(&format!("/v1/users/{user}/directs/{peer}/messages/{seq}")).await;
        let (at, owner) = (self.at.load(Ordering::SeqCst), self.owner(user));
        if seq <= head && !owner.is_kept(seq) {
            return assert_eq!(reply.status, 410, "{}", reply.text);
        }
        let row = owner.messages(peer).find(|(of, _)| *of == seq).map(|(_, row)| row.clone());
        let Some(row) = row else { return assert_eq!(reply.status, 404, "{}", reply.text) };
        assert_eq!(reply.status, if row.own { 204 } else { 403 }, "{}", reply.text);
        if !row.own || row.recalled {
            return;
        }
        let told = Row { at, peer, own: true, client: String::new(), other_seq: 0, recalled: false, recall: Some(seq) };
        owner.rows[usize::try_from(seq - 1).unwrap()].recalled = true;
        owner.append(told.clone());
        if user != peer {
            let other = self.owner(peer);
            other.rows[usize::try_from(row.other_seq - 1).unwrap()].recalled = true;
            other.append(Row { peer: user, own: false, recall: Some(row.other_seq), ..told });
        }
    }

    async fn set_level(&mut self) {
        let (client, user, peer, now) = (self.client(), self.user(), self.user(), self.at.load(Ordering::SeqCst));
        let days = i64::try_from(self.dice.roll(4)).unwrap();
        let none_until = [None, Some(0), Some(now + 1 + days * DAY_MS)][self.dice.roll(3)];
        let mut body = json!({"level": if none_until.is_some() { "none" } else { "all" }});
        if let Some(until) = none_until.filter(|until| *until > 0) {
            body["until"] = json!(UnixMs(until).to_string());
        }
        client.put(&format!("/v1/users/{user}/directs/{peer}/settings"), &body).await.ok();
        self.owner(user).chats.entry(peer).or_default().none_until = none_until;
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

    async fn mute(&mut self) {
        let (client, user, peer, now) = (self.client(), self.user(), self.user(), self.at.load(Ordering::SeqCst));
        if user == peer {
            return;
        }
        let days = i64::try_from(self.dice.roll(4)).unwrap();
        let until = [None, Some(0), Some(now + 1 + days * DAY_MS)][self.dice.roll(3)];
        let path = format!("/v1/users/{user}/mutes/{peer}");
        let Some(until) = until else {
            assert_eq!(client.delete(&path).await.status, 204);
            self.owner(user).muted.remove(&peer);
            return;
        };
        let body = if until > 0 { json!({"until": UnixMs(until).to_string()}) } else { json!({}) };
        client.put(&path, &body).await.ok();
        self.owner(user).muted.insert(peer, until);
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
        if self.dice.roll(2) == 0 {
            sweep_mutes(&self.nodes[at].app.state().contexts.relations).await.unwrap();
        }
        self.owners.values_mut().for_each(|owner| owner.expire(now));
    }

    async fn check(&mut self) {
        for user in 1..=USERS {
            let owner = self.owner(user).clone();
            let now = self.at.load(Ordering::SeqCst);
            let items = self.client().walk(&format!("/v1/users/{user}/directs"), 3).await;
            // One that was only silenced ahead has a row, too.
            let items = items.iter().filter(|item| item["last_seq"] != 0);
            let shown = items.map(|item| {
                let peer = item["peer_id"].as_str().unwrap().parse().unwrap();
                (peer, item["unread"].as_i64().unwrap(), item["level"] == "none", item["first_unread_seq"].as_i64())
            });
            assert_eq!(shown.collect::<Vec<_>>(), owner.list(now), "{user}: {owner:?}");
            let summary = self.client().summary(user).await["chats"].clone();
            assert_eq!((summary["unread"].as_i64().unwrap(), summary["directs"].as_i64().unwrap()), owner.sums(now), "{user}");
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
                    assert_eq!((own, peer, item["recall"].as_i64()), (row.own, row.peer, row.recall));
                    let content = Some(row.client.as_str()).filter(|_| !row.recalled && row.recall.is_none());
                    assert_eq!((item["content"].as_str(), item["recalled"] == true), (content, row.recalled));
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
                match run.dice.roll(30) {
                    0..=9 => run.send().await,
                    20..=21 => run.block().await,
                    10..=13 => run.read().await,
                    14..=15 => run.set_level().await,
                    22..=23 => run.unread_again().await,
                    24..=26 => run.recall().await,
                    27..=29 => run.mute().await,
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
