//! The lists of chats and the receipts, against a scan and a sort of all that was sent.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::model::{Group, Model, Thing, USERS, unread};
use super::run::Run;
use crate::support::{Client, eventually};

/// The list of whoever acts is compared at one step in so many. There are many requests at each.
const LIST_EVERY: usize = 3;

/// Everybody's receipts at one step in so many: what another node read shows within a second.
const RECEIPTS_EVERY: usize = 16;

/// How many recipients have read a message, by its number.
type Counts = Vec<(usize, usize, usize)>;

impl Group {
    /// A member has read the first so many messages, those of the present membership.
    pub fn tell_read(&mut self, user: usize, up_to: usize) {
        let from = self.members.get(&user).copied().unwrap_or(0);
        self.messages.iter_mut().take(up_to).skip(from).for_each(|message| _ = message.receipts_of.insert(user));
    }

    /// Of each message that is neither recalled nor expired.
    fn receipts(&self) -> Counts {
        let kept = self.messages.iter().enumerate().filter(|(_, message)| !message.gone);
        let counts = kept.map(|(at, message)| {
            let to: Vec<_> = message.to.iter().filter(|user| **user != message.by).collect();
            let read = to.iter().filter(|user| message.receipts_of.contains(user) && !message.hidden_by.contains(user)).count();
            (at + 1, read, to.len() - read)
        });
        counts.collect()
    }
}

/// A chat as it is expected in a list.
struct Expected {
    at: String,
    is_group: bool,
    id: i64,
    shown: Value,
}

fn message(thing: &Thing, seq: i64, sender: i64) -> Value {
    let mut shown = json!({"seq": seq, "sender_id": sender.to_string()});
    if thing.gone {
        shown["recalled"] = json!(true);
    } else {
        shown["content"] = json!(thing.id);
        shown["sent_at"] = json!(thing.told_at);
    }
    shown
}

impl Model {
    /// A user switches receipts on or off.
    pub fn share_receipts(&mut self, user: usize, shares: bool) {
        if shares {
            self.hides.remove(&user);
            return;
        }
        if !self.hides.insert(user) {
            return;
        }
        for group in self.groups.values_mut() {
            let Some(from) = group.members.get(&user).copied() else { continue };
            let mut mine = group.messages.iter_mut().skip(from);
            let is_unread = |message: &&mut Thing| !message.gone && message.by != user && !message.receipts_of.contains(&user);
            if let Some(first) = mine.find(is_unread) {
                [first].into_iter().chain(mine).for_each(|message| _ = message.hidden_by.insert(user));
            }
        }
        let mine = self.directs.iter_mut().filter(|((receiver, _), _)| *receiver == user).flat_map(|(_, things)| things);
        mine.filter(|thing| !thing.was_read).for_each(|thing| _ = thing.hidden_by.insert(user));
    }

    /// The messages of a direct chat, each with its number in the user's inbox.
    fn direct(&self, user: usize, other: usize) -> impl Iterator<Item = (i64, &Thing)> {
        let received = self.directs.get(&(user, other)).into_iter().flatten().map(|thing| (thing.seq, thing));
        let sent = self.directs.get(&(other, user)).into_iter().flatten().map(|thing| (thing.own_seq, thing));
        received.chain(sent)
    }

    /// A user has read a direct chat up to a row of its inbox.
    pub fn read_direct(&mut self, user: usize, other: usize, up_to: i64) {
        let last = self.direct(user, other).map(|(seq, _)| seq).filter(|seq| *seq <= up_to).max().unwrap_or(0);
        let read = self.direct_read.entry((user, other)).or_default();
        *read = last.max(*read);
    }

    /// The last message of a user that a peer is shown to have read.
    fn direct_receipts(&self, user: usize, peer: usize) -> i64 {
        let sent = self.directs.get(&(peer, user)).into_iter().flatten();
        sent.filter(|thing| thing.was_read && !thing.hidden_by.contains(&peer)).map(|thing| thing.own_seq).max().unwrap_or(0)
    }
}

impl Run<'_> {
    fn expected_group(&self, user: usize, id: i64, group: &Group) -> Expected {
        let of = &self.model.groups_of(user)[&id];
        let head = group.messages.len();
        let last = group.messages.last().filter(|_| head > group.members[&user]);
        let at = if last.is_some() { group.messages.iter().map(|of| of.told_at.clone()).max() } else { None };
        let at = at.unwrap_or_else(|| group.joined_at[&user].clone());
        let last = last.filter(|of| !of.expired).map(|of| message(of, i64::try_from(head).unwrap(), self.user(of.by)));
        let mut shown = json!({
            "kind": "group", "id": id.to_string(), "unread": of.unread, "mentions": of.mentions, "head": head, "level": of.level,
            "last": last, "last_at": at,
        });
        if let Some(first) = of.first {
            shown["first_unread_seq"] = json!(first);
        }
        Expected { at, is_group: true, id, shown }
    }

    fn expected_direct(&self, user: usize, other: usize) -> Option<Expected> {
        let id = self.user(other);
        let (seq, last) = self.model.direct(user, other).max_by_key(|(seq, _)| *seq)?;
        let at = self.model.direct(user, other).map(|(_, thing)| thing.told_at.clone()).max()?;
        let things = self.model.directs.get(&(user, other)).map_or(&[][..], Vec::as_slice);
        let chat = (user, other);
        let silent = self.model.silent_directs.contains_key(&chat) || self.model.is_silenced(chat.0, chat.1);
        let mut shown = json!({
            "kind": "direct", "id": id.to_string(), "unread": unread(things, user), "mentions": 0, "head": seq,
            "read_seq": self.model.direct_read.get(&chat).copied().unwrap_or(0), "level": if silent { "none" } else { "all" },
            "last": message(last, seq, self.user(last.by)), "last_at": at,
        });
        if let Some(first) = things.iter().filter(|thing| thing.is_unread_to(user)).map(|thing| thing.seq).min() {
            shown["first_unread_seq"] = json!(first);
        }
        Some(Expected { at, is_group: false, id, shown })
    }

    /// All chats of a user, sorted as a whole.
    fn expected_chats(&self, user: usize) -> Vec<Value> {
        let groups = self.model.groups.iter().filter(|(_, group)| group.members.contains_key(&user));
        let groups = groups.map(|(id, group)| self.expected_group(user, *id, group));
        let directs = (0..USERS).filter_map(|other| self.expected_direct(user, other));
        let mut all: Vec<_> = groups.chain(directs).collect();
        all.sort_by_key(|chat| Reverse((chat.at.clone(), chat.is_group, chat.id)));
        all.into_iter().map(|chat| chat.shown).collect()
    }

    /// At some of the steps.
    pub async fn compare_chat_lists(&self, user: usize, after: &str) {
        if self.at().is_multiple_of(RECEIPTS_EVERY) {
            return self.compare_all_lists(after).await;
        }
        if self.at().is_multiple_of(LIST_EVERY) && self.model.seen.contains(&user) {
            self.compare_chats(&self.fleet.client(self.node), user, after).await;
        }
    }

    /// On every node.
    pub async fn compare_all_lists(&self, after: &str) {
        for at in 0..self.fleet.len() {
            let node = self.fleet.client(self.node + at);
            for user in self.model.seen.clone() {
                self.compare_chats(&node, user, after).await;
                self.compare_direct_receipts(&node, user, after).await;
            }
            self.compare_group_receipts(&node, after).await;
        }
    }

    async fn compare_chats(&self, node: &Client, user: usize, after: &str) {
        let expected = self.expected_chats(user);
        let path = self.user_path(user, "chats");
        eventually(&format!("the chats of {user} after {after}: {expected:?}"), async || {
            let mut shown = node.walk(&path, 2).await;
            for chat in &mut shown {
                let chat = chat.as_object_mut().unwrap();
                // Of a group it is not in the model, and ends of levels are those of levels.
                if chat["kind"] == "group" {
                    chat.remove("read_seq");
                }
                chat.remove("level_until");
            }
            shown == expected
        })
        .await;
        let unread = node.get(&format!("{path}?unread=true&limit=100")).await.ok();
        let ids =
            |chats: &mut dyn Iterator<Item = &Value>| chats.map(|chat| (chat["kind"].clone(), chat["id"].clone())).collect::<Vec<_>>();
        let shown = ids(&mut unread["items"].as_array().unwrap().iter());
        assert_eq!(shown, ids(&mut expected.iter().filter(|chat| chat["unread"] != 0)), "unread chats of {user} after {after}");
    }

    async fn compare_direct_receipts(&self, node: &Client, user: usize, after: &str) {
        for peer in (0..USERS).filter(|peer| *peer != user) {
            let path = self.user_path(user, &format!("directs/{}/receipts", self.user(peer)));
            let expected = json!({"delivered_seq": 0, "read_seq": self.model.direct_receipts(user, peer)});
            let reply = node.get(&path).await;
            if self.model.hides.contains(&user) {
                reply.problem(403, "receipts_hidden");
            } else {
                assert_eq!(reply.ok(), expected, "receipts of {user} from {peer} after {after}");
            }
        }
    }

    async fn compare_group_receipts(&self, node: &Client, after: &str) {
        for (id, group) in &self.model.groups {
            let (head, gone) = (group.messages.len(), group.messages.iter().take_while(|message| message.expired).count());
            if gone == head {
                continue;
            }
            let path = format!("/v1/groups/{id}/receipts?from={}&to={}", gone + 1, head.min(gone + 100));
            let expected = group.receipts();
            eventually(&format!("the receipts of group {id} after {after}: {expected:?}"), async || {
                let body = node.get(&path).await.ok();
                let number = |item: &Value, field: &str| usize::try_from(item[field].as_u64().unwrap()).unwrap();
                let shown = body["items"].as_array().unwrap().iter();
                shown.map(|item| (number(item, "seq"), number(item, "read_count"), number(item, "unread_count"))).eq(expected.clone())
            })
            .await;
        }
    }
}
