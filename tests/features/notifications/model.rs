//! Random requests against a naive model: each user's list as a list.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::mark;
use crate::both_tiers;
use crate::support::{Client, Dice, Node, NotificationList, ShownEntry};

both_tiers! {
    async fn every_sequence_matches_a_model(world: World) {
        let nodes = world.nodes().await;
        for seed in 1..=6 {
            let clients = nodes.iter().map(|node| node.client.clone()).collect();
            let first_user = 100 * i64::try_from(seed).unwrap();
            Run { clients, dice: Dice::new(seed), first_user, sent: Vec::new(), lists: Default::default(), revisions: [1; 3] }.go().await;
        }
        Node::stop_all(nodes).await;
    }
}

const KINDS: [&str; 2] = ["mail", "notice"];
const KEYS: [&str; 2] = ["post:1", "post:2"];
const STATUSES: [&str; 4] = ["all", "unread", "unseen", "read"];

/// A notification of the model.
#[derive(Debug, Clone)]
struct Sent {
    id: String,
    to: BTreeSet<usize>,
    title: String,
    withdrawn: bool,
}

/// A random sequence of requests, and a naive model beside it.
struct Run {
    clients: Vec<Client>,
    dice: Dice,
    first_user: i64,
    sent: Vec<Sent>,
    lists: [NotificationList; 3],
    revisions: [i64; 3],
}

impl Run {
    async fn go(mut self) {
        for at in 0..3 {
            // Each is enrolled by its first poll.
            self.clients[0].summary(self.user(at)).await;
        }
        for _ in 0..70 {
            self.step().await;
            let at = self.dice.roll(3);
            self.compare(at).await;
        }
        for at in 0..3 {
            self.compare(at).await;
        }
    }

    fn user(&self, at: usize) -> i64 {
        self.first_user + i64::try_from(at).unwrap()
    }

    /// Changes a user's list; a change of what it shows raises the revision.
    fn change<T>(&mut self, at: usize, act: impl FnOnce(&mut NotificationList) -> T) -> T {
        let shown = |list: &NotificationList| (list.shown("all"), list.seen);
        let before = shown(&self.lists[at]);
        let made = act(&mut self.lists[at]);
        self.revisions[at] += i64::from(before != shown(&self.lists[at]));
        made
    }

    async fn step(&mut self) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let (at, which) = (self.dice.roll(3), self.dice.roll(self.sent.len().max(1)));
        let (user, known) = (self.user(at), self.sent.get(which).cloned());
        match (self.dice.roll(16), known) {
            (0..=5, _) | (_, None) => self.send(&client).await,
            (roll @ 6..=8, Some(sent)) => {
                let read = roll < 8;
                let reply = mark(&client, user, &sent.id, if read { "read" } else { "unread" }).await;
                let Some(entry) = self.lists[at].entry(&sent.id).cloned() else { return drop(reply.problem(404, "not_found")) };
                if entry.gone {
                    return drop(reply.problem(410, "gone"));
                }
                self.change(at, |list| list.mark(&sent.id, read));
                let body = reply.ok();
                let (unread, unseen) = self.lists[at].numbers()[entry.kind];
                assert_eq!(
                    (&body["unread"], &body["unseen"], &body["revision"]),
                    (&json!(unread), &json!(unseen), &json!(self.revisions[at]))
                );
            }
            (9, Some(sent)) => {
                let reply = client.delete(&format!("/v1/users/{user}/notifications/{}", sent.id)).await;
                let is_known = self.lists[at].entry(&sent.id).is_some();
                assert_eq!(reply.status, if is_known { 200 } else { 404 });
                self.change(at, |list| list.delete(&sent.id));
                if is_known {
                    assert_eq!(reply.body, json!({"revision": self.revisions[at]}));
                }
            }
            (10..=11, Some(sent)) => {
                assert_eq!(client.delete(&format!("/v1/notifications/{}", sent.id)).await.status, 204);
                (0..3).for_each(|at| self.change(at, |list| list.withdraw(&sent.id)));
                self.sent[which].withdrawn = true;
            }
            (12, Some(sent)) => self.edit(&client, which, &sent).await,
            (13, Some(_)) => {
                let up_to = (self.dice.roll(2) == 0).then(|| self.dice.roll(self.lists[at].last + 2));
                let body = up_to.map_or(json!({}), |up_to| json!({"up_to_seq": up_to}));
                let answer = client.post(&format!("/v1/users/{user}/notifications/seen"), &body).await.ok();
                self.change(at, |list| list.see(up_to));
                let unseen: usize = self.lists[at].numbers().values().map(|(_, unseen)| unseen).sum();
                assert_eq!(answer, json!({"unseen": unseen, "revision": self.revisions[at]}));
            }
            (_, Some(sent)) => self.many(&client, at, &sent).await,
        }
    }

    async fn send(&mut self, client: &Client) {
        let (kind, others) = (self.dice.pick(&KINDS), 1 + self.dice.roll(7));
        let to: BTreeSet<usize> = (0..3).filter(|at| others >> at & 1 == 1).collect();
        let group_key = (self.dice.roll(5) > 0).then(|| self.dice.pick(&KEYS));
        let actor = (self.dice.roll(6) > 0).then(|| i64::try_from(self.dice.roll(5)).unwrap() + 1);
        let title = format!("title {}", self.sent.len());
        let mut body = json!({"type": kind, "title": title, "recipients": to.iter().map(|at| self.user(*at)).collect::<Vec<_>>()});
        if let Some(key) = group_key {
            body["group_key"] = json!(key);
        }
        if let Some(actor) = actor {
            body["actor_id"] = json!(actor.to_string());
        }
        let reply = client.post("/v1/notifications", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        let id = reply.body["notification_id"].as_str().unwrap().to_owned();
        to.iter().for_each(|at| self.change(*at, |list| list.send(&id, kind, group_key, actor)));
        self.sent.push(Sent { id, to, title, withdrawn: false });
    }

    async fn edit(&mut self, client: &Client, which: usize, sent: &Sent) {
        let title = format!("edited {}", self.dice.roll(2));
        let reply = client.put(&format!("/v1/notifications/{}", sent.id), &json!({"title": title})).await;
        if sent.withdrawn {
            return drop(reply.problem(410, "gone"));
        }
        let body = reply.ok();
        assert_eq!((&body["title"], &body["read_count"]), (&json!(title), &json!(self.readers(&sent.id))));
        if sent.title != title {
            (0..3).for_each(|at| self.revisions[at] += i64::from(self.lists[at].shows(&sent.id)));
        }
        self.sent[which].title = title;
    }

    fn readers(&self, id: &str) -> usize {
        self.lists.iter().filter(|list| list.has_read(id)).count()
    }

    /// Reads by type, all, or two by id.
    async fn many(&mut self, client: &Client, at: usize, sent: &Sent) {
        let up_to = (self.dice.roll(2) == 0).then(|| self.dice.roll(self.lists[at].last + 1));
        let other = self.sent[self.dice.roll(self.sent.len())].clone();
        let kind = self.dice.pick(&KINDS);
        let (mut body, ids) = match self.dice.roll(3) {
            0 => (json!({"all": true}), None),
            1 => (json!({"type": kind}), None),
            _ => {
                let ids: BTreeSet<_> = [sent.id.clone(), other.id.clone()].into();
                (json!({"ids": ids}), Some(ids))
            }
        };
        if let Some(up_to) = up_to {
            body["up_to_seq"] = json!(up_to);
        }
        let reply = client.post(&format!("/v1/users/{}/notifications/read", self.user(at)), &body).await;
        for id in ids.iter().flatten() {
            if self.lists[at].entry(id).is_none() {
                return drop(reply.problem(404, "not_found"));
            }
        }
        if ids.iter().flatten().any(|id| self.lists[at].entry(id).unwrap().gone) {
            return drop(reply.problem(410, "gone"));
        }
        let of_type = body["type"].as_str().map(str::to_owned);
        let changed = self.change(at, |list| {
            list.read(up_to, |entry| match &ids {
                Some(ids) => ids.contains(&entry.id),
                None => of_type.as_ref().is_none_or(|kind| kind == entry.kind),
            })
        });
        let reply = reply.ok();
        assert_eq!((&reply["changed"], &reply["revision"]), (&json!(changed), &json!(self.revisions[at])), "{body}");
        assert_eq!(reply["notifications"], self.lists[at].summary());
    }

    /// Summary, list and counts are those of the model, on any node.
    async fn compare(&mut self, at: usize) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let summary = client.summary(self.user(at)).await;
        assert_eq!((&summary["notifications"], &summary["revision"]), (&self.lists[at].summary(), &json!(self.revisions[at])));
        let status = self.dice.pick(&STATUSES);
        let items = walk(&client, &format!("/v1/users/{}/notifications?status={status}", self.user(at))).await;
        let shown: Vec<_> = items.iter().map(ShownEntry::of).collect();
        assert_eq!(shown, self.lists[at].shown(status), "{status}");
        for item in &items {
            let newest = self.sent.iter().find(|sent| item["notification_id"] == sent.id.as_str()).unwrap();
            assert_eq!((&item["title"], newest.to.contains(&at)), (&json!(newest.title), true));
        }
        if let Some(sent) = self.sent.last() {
            let reply = client.get(&format!("/v1/notifications/{}", sent.id)).await;
            if sent.withdrawn {
                return drop(reply.problem(410, "gone"));
            }
            let found = reply.ok();
            assert_eq!((&found["read_count"], &found["recipient_count"]), (&json!(self.readers(&sent.id)), &json!(sent.to.len())));
        }
    }
}

async fn walk(client: &Client, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}&limit=4{cursor}")).await.ok();
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            None => return items,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}
