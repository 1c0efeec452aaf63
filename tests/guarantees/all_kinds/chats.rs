//! Steps of groups and direct messages.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use headmark::base::clock::UnixMs;
use headmark::features::groups::expiry::{Walk, sweep_before};
use serde_json::json;

use super::model::{Group, Thing, USERS, read, unread};
use super::run::{Run, part, up_to};
use super::steps::{Step, What};
use crate::support::{Reply, eventually};

/// How long a removal may take.
const REMOVED: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Steps of a group, by a service.
    pub async fn groups(&mut self, step: &Step) {
        let (id, user) = (self.group_id(step.which), step.user);
        let path = format!("/v1/groups/{id}");
        let member_path = format!("{path}/members/{}", self.user(user));
        if step.what == What::PutGroup && !self.model.deleted_groups.contains_key(&id) {
            let writes = step.which / 2 % 2 == 1;
            let reply = self.put(&path, json!({"delivery": if writes { "write" } else { "read" }})).await;
            match self.group(id) {
                Some(group) => group.writes = writes,
                None => drop(self.model.groups.insert(id, Group { writes, ..Group::default() })),
            }
            drop(reply.ok());
            return;
        }
        if step.what == What::DeleteGroup {
            return self.delete_group(id).await;
        }
        if let Some(location) = self.model.deleted_groups.get(&id).cloned() {
            drop(self.put(&member_path, json!({})).await.problem(410, "gone"));
            return assert_eq!(self.delete(&path).await.header("location"), location);
        }
        if self.group(id).is_none() {
            return drop(self.put(&member_path, json!({})).await.problem(404, "not_found"));
        }
        match step.what {
            What::Join => {
                let reply = self.put(&member_path, json!({})).await;
                let group = self.group(id).unwrap();
                let head = group.messages.len();
                if let Entry::Vacant(seat) = group.members.entry(user) {
                    seat.insert(head);
                    let joined_at = self.made(reply)["joined_at"].as_str().unwrap().to_owned();
                    self.group(id).unwrap().joined_at.insert(user, joined_at);
                } else {
                    assert_eq!(reply.status, 200);
                }
            }
            What::Leave => {
                assert_eq!(self.delete(&member_path).await.status, 204);
                let group = self.group(id).unwrap();
                group.members.remove(&user);
                group.levels.remove(&user);
                read(&mut group.messages, user, usize::MAX);
            }
            What::Say => self.say(id, user, &[], false).await,
            // Now and then somebody who is not a member.
            What::Mention => self.say(id, user, &[step.other, (step.other + step.which) % USERS], false).await,
            What::MentionAll => self.say(id, user, if step.which.is_multiple_of(3) { &[0] } else { &[] }, true).await,
            What::SayAgain => self.say_again(id, step.which / 2).await,
            _ => {
                let at = step.which / 2 % (self.model.groups[&id].messages.len() + 1);
                let reply = self.delete(&format!("{path}/messages/{}", at + 1)).await;
                self.recalled(id, at, &reply);
            }
        }
    }

    /// A group goes, now and then.
    async fn delete_group(&mut self, id: i64) {
        let reply = self.delete(&format!("/v1/groups/{id}")).await;
        if self.model.deleted_groups.contains_key(&id) {
            return assert_eq!(reply.header("location"), self.model.deleted_groups[&id]);
        }
        if self.model.groups.remove(&id).is_none() {
            return drop(reply.problem(404, "not_found"));
        }
        assert_eq!(reply.status, 202, "{}", reply.text);
        self.model.deleted_groups.insert(id, reply.header("location").to_owned());
        self.model.inboxes.retain(|(_, of), _| *of != id);
    }

    /// All that was deleted is removed. A node that was stopped in the middle leaves it to another one
    /// when its turn is over.
    pub async fn settle_deletions(&mut self) {
        for location in self.model.deleted_groups.values().cloned().collect::<Vec<_>>() {
            let began = Instant::now();
            while self.fleet.client(0).get(&location).await.ok()["status"] != "done" {
                assert!(began.elapsed() < REMOVED, "the group is not removed");
                self.pass(1);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn say_to(&mut self, group: i64, sender: usize, client_id: &str, named: &[usize], all: bool) -> Reply {
        let named: Vec<_> = named.iter().map(|user| self.user(*user)).collect();
        let sender = self.user(sender);
        let body = json!({"sender_id": sender, "client_id": client_id, "content": client_id, "mentions": named, "mention_all": all});
        self.post(&format!("/v1/groups/{group}/messages"), body).await
    }

    async fn say(&mut self, id: i64, sender: usize, named: &[usize], all: bool) {
        let client_id = self.fresh();
        self.say_as(id, sender, client_id, named, all).await;
    }

    async fn say_as(&mut self, id: i64, sender: usize, client_id: String, named: &[usize], all: bool) {
        let reply = self.say_to(id, sender, &client_id, named, all).await;
        let group = self.model.groups.get_mut(&id).unwrap();
        if !group.members.contains_key(&sender) {
            return drop(reply.problem(403, "forbidden"));
        }
        if let Some(at) = named.iter().position(|user| !group.members.contains_key(user)) {
            return assert_eq!(reply.pointers(422, "invalid_body").first(), Some(&format!("/mentions/{at}")));
        }
        // Who says something has read what was said before.
        read(&mut group.messages, sender, usize::MAX);
        group.tell_read(sender, usize::MAX);
        let to: BTreeSet<_> = group.members.keys().copied().collect();
        let others = to.iter().copied().filter(|member| *member != sender);
        let message = Thing { id: client_id, by: sender, ..Thing::unread_by(others) };
        let sent_at = self.fleet.now().unwrap_or_default();
        let mentions = if all { to.clone() } else { named.iter().copied().collect() };
        let mentions = mentions.into_iter().filter(|member| *member != sender).collect();
        let told_at = reply.body["sent_at"].as_str().unwrap().to_owned();
        let hidden_by = to.intersection(&self.model.hides).copied().collect();
        group.messages.push(Thing { to: to.clone(), written: group.writes, sent_at, mentions, told_at, hidden_by, ..message });
        let seq = group.messages.len();
        if group.writes {
            to.into_iter().for_each(|member| self.model.inboxes.entry((member, id)).or_default().push((seq, false)));
        }
        assert_eq!(self.made(reply)["seq"], seq);
    }

    /// A message is sent again under the id that it has, also by who has left since.
    async fn say_again(&mut self, id: i64, which: usize) {
        let messages = &self.model.groups[&id].messages;
        let at = which % messages.len().max(1);
        let Some(message) = messages.get(at).cloned() else { return };
        // The id of what has expired is free, unless it was sent again.
        let is_it = |other: &Thing| (&other.id, other.by, other.expired) == (&message.id, message.by, false);
        let Some(at) = messages.iter().position(is_it) else { return self.say_as(id, message.by, message.id, &[], false).await };
        let message = messages[at].clone();
        let reply = self.say_to(id, message.by, &message.id, &[], false).await;
        if message.gone {
            return drop(reply.problem(410, "gone"));
        }
        assert_eq!((reply.status.as_u16(), reply.body["seq"].as_u64()), (200, u64::try_from(at + 1).ok()));
    }

    fn recalled(&mut self, id: i64, at: usize, reply: &Reply) {
        let group = self.model.groups.get_mut(&id).unwrap();
        let writes = group.writes;
        let Some(message) = group.messages.get_mut(at) else { return assert_eq!(reply.status, 404) };
        if message.expired {
            return assert_eq!(reply.status, 410);
        }
        assert_eq!(reply.status, 204);
        // Also where the delivery was switched since: devices that hold the message must hear of
        // it.
        if !message.gone && (writes || message.written) {
            for member in message.to.clone() {
                self.model.inboxes.entry((member, id)).or_default().push((at + 1, true));
            }
        }
        self.model.groups.get_mut(&id).unwrap().messages[at].gone = true;
    }

    /// What is as old as one of a group's messages expires, in all groups. Nodes that are processes
    /// have a clock of their own, and keep everything.
    pub async fn expire_messages(&mut self, step: &Step) {
        let id = self.group_id(step.which);
        let messages = self
            .model
            .groups
            .get(&id)
            .map(|group| &group.messages[..part(group.messages.len(), step.percent.map(|percent| percent.min(100)))]);
        let Some(before) = messages.and_then(<[Thing]>::last).map(|last| last.sent_at + 1).filter(|_| self.fleet.now().is_some()) else {
            return;
        };
        // Delivery goes on that a node left which was stopped.
        self.pass(3);
        for (id, group) in &mut self.model.groups {
            // What an earlier step has expired stays so, also where this one reaches less far.
            let old = group.messages.iter_mut().take_while(|message| message.expired || message.sent_at < before);
            let earliest = old.map(|message| (message.gone, message.expired) = (true, true)).count() + 1;
            let node = self.fleet.here_nodes().nth(self.node).unwrap();
            let path = format!("/v1/groups/{id}/messages?limit=1");
            eventually(&format!("group {id} is kept from {earliest} on"), async || {
                let context = &node.app.state().contexts.groups;
                sweep_before(context, &mut Walk::default(), UnixMs(before)).await.unwrap();
                let page = node.client.get(&path).await.ok();
                let first = page["items"][0]["seq"].as_u64().unwrap_or_else(|| page["head"].as_u64().unwrap() + 1);
                first == u64::try_from(earliest).unwrap()
            })
            .await;
        }
    }

    /// Steps of a member.
    pub async fn memberships(&mut self, step: &Step) {
        let (user, _) = self.own(step);
        let id = self.group_id(step.which);
        let head = self.group(id).map_or(0, |group| group.messages.len());
        let at = step.which / 2 % (head + 1);
        let path = self.user_path(user, &format!("groups/{id}"));
        let level = ["all", "mentions", "none"][step.which / 2 % 3];
        // Where the clock is known, some levels end, soon or later.
        let until =
            self.fleet.now().filter(|_| step.percent.is_some()).map(|now| now + 1000 * (1 + i64::try_from(step.which % 5).unwrap()));
        let reply = match step.what {
            What::ReadGroup => self.post(&format!("{path}/read"), up_to(head, step.percent)).await,
            What::ReadOne => self.post(&format!("{path}/messages/{}/read", at + 1), json!({})).await,
            What::UnreadGroup => self.post(&format!("{path}/unread"), json!({"from": at + 1})).await,
            _ => {
                let mut settings = json!({"level": level});
                until.into_iter().for_each(|until| settings["until"] = json!(UnixMs(until)));
                self.put(&format!("{path}/settings"), settings).await
            }
        };
        if self.model.deleted_groups.contains_key(&id) {
            return drop(reply.problem(410, "gone"));
        }
        let Some(group) = self.group(id) else { return drop(reply.problem(404, "not_found")) };
        let Some(from) = group.members.get(&user).copied() else { return drop(reply.problem(403, "forbidden")) };
        match step.what {
            What::ReadGroup => {
                read(&mut group.messages, user, part(head, step.percent));
                group.tell_read(user, part(head, step.percent));
            }
            What::ReadOne => match group.messages.get_mut(at).filter(|_| at >= from) {
                None => return drop(reply.problem(404, "not_found")),
                Some(message) if message.gone => return drop(reply.problem(410, "gone")),
                Some(message) => {
                    message.read_by(user);
                    message.receipts_of.insert(user);
                }
            },
            What::UnreadGroup => match group.messages.get(at).filter(|_| at >= from) {
                None => return drop(reply.problem(404, "not_found")),
                Some(message) if message.expired => return drop(reply.problem(410, "gone")),
                Some(_) => {
                    let others = group.messages.iter_mut().skip(at).filter(|message| message.by != user);
                    others.for_each(|message| {
                        message.again_by.insert(user);
                    });
                }
            },
            _ => drop(group.levels.insert(user, (level, until))),
        }
        let left = unread(&group.messages, user);
        let body = reply.ok();
        self.note(user, &body);
        if step.what != What::SetLevel {
            assert_eq!((&body["unread"], &body["head"]), (&json!(left), &json!(head)));
        }
    }

    pub async fn directs(&mut self, step: &Step) {
        match step.what {
            What::Tell => {
                // Now and then to oneself.
                let (sender, receiver) = (step.user, step.other);
                let id = self.fresh();
                let reply = self.tell(receiver, sender, &id).await;
                if self.model.blocks.contains(&(receiver, sender)) {
                    return drop(reply.problem(403, "blocked"));
                }
                let body = self.made(reply);
                let [seq, own_seq] = ["seq", "own_seq"].map(|name| body[name].as_i64().unwrap());
                let to = [receiver].into_iter().filter(|_| receiver != sender);
                let hidden_by = self.model.hides.get(&receiver).copied().into_iter().collect();
                let told_at = body["sent_at"].as_str().unwrap().to_owned();
                let message = Thing { id, by: sender, seq, own_seq, told_at, hidden_by, ..Thing::unread_by(to) };
                self.model.direct_read.insert((sender, receiver), own_seq);
                self.model.directs.entry((receiver, sender)).or_default().push(message);
                // Who answers has read.
                read_all(self.model.directs.entry((sender, receiver)).or_default(), sender, i64::MAX);
            }
            What::TellAgain => {
                let all = self.model.directs.iter().flat_map(|((receiver, _), things)| things.iter().map(|thing| (*receiver, thing)));
                let all: Vec<_> = all.map(|(receiver, thing)| (receiver, thing.clone())).collect();
                let Some((receiver, thing)) = all.get(step.which % all.len().max(1)) else { return };
                let reply = self.tell(*receiver, thing.by, &thing.id).await;
                if thing.gone {
                    return drop(reply.problem(410, "gone"));
                }
                assert_eq!((reply.status.as_u16(), reply.body["seq"].as_i64()), (200, Some(thing.seq)));
            }
            What::ReadDirect => self.read_direct(step).await,
            What::UnreadDirect => self.unread_direct(step).await,
            What::RecallDirect => self.recall_direct(step).await,
            _ => self.silence_direct(step).await,
        }
    }

    /// For ever or until a time, or no longer.
    async fn silence_direct(&mut self, step: &Step) {
        let (user, other) = self.own(step);
        let until = self.fleet.now().zip(step.percent).map(|(now, percent)| now + 1 + i64::try_from(percent).unwrap() * 300);
        let mut body = json!({"level": if step.which.is_multiple_of(3) { "all" } else { "none" }});
        if let Some(until) = until {
            body["until"] = json!(UnixMs(until).to_string());
        }
        let path = self.user_path(user, &format!("directs/{}/settings", self.user(other)));
        let body = self.put(&path, body).await.ok();
        self.note(user, &body);
        if step.which.is_multiple_of(3) {
            self.model.silent_directs.remove(&(user, other));
        } else {
            self.model.silent_directs.insert((user, other), until);
        }
    }

    /// As if the mark stood before a message. What is unread already stays so.
    async fn unread_direct(&mut self, step: &Step) {
        let (user, other) = self.own(step);
        let things = self.model.directs.get(&(user, other)).cloned().unwrap_or_default();
        let Some(from) = things.get(step.which % things.len().max(1)).map(|thing| thing.seq) else { return };
        let path = self.user_path(user, &format!("directs/{}/unread", self.user(other)));
        let body = self.post(&path, json!({"from": from})).await.ok();
        self.note(user, &body);
        let things = self.model.directs.get_mut(&(user, other)).unwrap();
        things.iter_mut().filter(|thing| thing.seq >= from).for_each(|thing| _ = thing.unread_by.insert(user));
        assert_eq!(body["unread"], unread(things, user));
    }

    /// By its sender, or by the receiver in vain.
    async fn recall_direct(&mut self, step: &Step) {
        let all = self.model.directs.iter().flat_map(|(chat, things)| things.iter().map(|thing| (*chat, thing.clone())));
        let all: Vec<_> = all.collect();
        let Some(((receiver, sender), thing)) = all.get(step.which % all.len().max(1)).cloned() else { return };
        let by_sender = step.percent.is_some() || receiver == sender;
        let (user, other, seq) = if by_sender { (sender, receiver, thing.own_seq) } else { (receiver, sender, thing.seq) };
        // The route would have the user seen.
        if !self.model.seen.contains(&user) {
            return;
        }
        let reply = self.delete(&self.user_path(user, &format!("directs/{}/messages/{seq}", self.user(other)))).await;
        if !by_sender {
            return drop(reply.problem(403, "forbidden"));
        }
        assert_eq!(reply.status, 204, "{}", reply.text);
        let things = self.model.directs.get_mut(&(receiver, sender)).unwrap();
        things.iter_mut().filter(|of| of.seq == thing.seq).for_each(|of| of.gone = true);
    }

    async fn tell(&mut self, receiver: usize, sender: usize, id: &str) -> Reply {
        let body = json!({"sender_id": self.user(sender), "client_id": id, "content": id});
        self.post(&self.user_path(receiver, "inbox"), body).await
    }

    /// Up to a row of the own inbox, no matter who sent it.
    async fn read_direct(&mut self, step: &Step) {
        let (user, other) = self.own(step);
        let mine = self.model.directs.iter().filter(|((receiver, _), _)| *receiver == user).flat_map(|(_, things)| things);
        let mut seqs: Vec<i64> = mine.map(|thing| thing.seq).collect();
        seqs.sort_unstable();
        let up_to = step.percent.and_then(|percent| seqs.get(part(seqs.len(), Some(percent.min(99)))).copied());
        let path = self.user_path(user, &format!("directs/{}/read", self.user(other)));
        let body = self.post(&path, up_to.map_or(json!({}), |up_to| json!({"up_to": up_to}))).await.ok();
        self.note(user, &body);
        self.model.read_direct(user, other, up_to.unwrap_or(i64::MAX));
        let mut none = Vec::new();
        let things = self.model.directs.get_mut(&(user, other)).unwrap_or(&mut none);
        read_all(things, user, up_to.unwrap_or(i64::MAX));
        assert_eq!(body["unread"], unread(things, user));
    }
}

/// A user reads the direct messages up to a number in its inbox.
fn read_all(things: &mut [Thing], user: usize, up_to: i64) {
    for thing in things.iter_mut().filter(|thing| thing.seq <= up_to) {
        thing.unread_by.remove(&user);
        thing.was_read = true;
    }
}
