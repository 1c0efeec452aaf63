//! Random requests against a naive model: what each user has of each notification.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{mark, send};
use crate::both_tiers;
use crate::support::{Client, Dice, Node};

both_tiers! {
    async fn every_sequence_matches_a_model(world: World) {
        let nodes = world.nodes().await;
        for seed in 1..=4 {
            Run { clients: nodes.iter().map(|node| node.client.clone()).collect(), dice: Dice::new(seed), first_user: 100 * i64::try_from(seed).unwrap(), sent: Vec::new(), revisions: [1; 3] }.go().await;
        }
        Node::stop_all(nodes).await;
    }
}

const KINDS: [&str; 2] = ["mail", "notice"];

/// What one of the three users has of a notification.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Has {
    read: bool,
    gone: bool,
}

/// A notification of the model, with what each user has of it.
#[derive(Debug, Clone)]
struct Sent {
    id: String,
    kind: &'static str,
    has: [Option<Has>; 3],
    withdrawn: bool,
}

/// A random sequence of requests, and a naive model beside it.
struct Run {
    clients: Vec<Client>,
    dice: Dice,
    first_user: i64,
    sent: Vec<Sent>,
    revisions: [i64; 3],
}

impl Run {
    async fn go(mut self) {
        for at in 0..3 {
            // Each is enrolled by its first poll.
            self.clients[0].summary(self.user(at)).await;
        }
        for _ in 0..60 {
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

    /// Changes what a user has; a change raises the revision. Returns how many rows changed.
    fn change(&mut self, at: usize, meant: impl Fn(&Sent) -> bool, to: impl Fn(Has) -> Has) -> usize {
        let mut changed = 0;
        for sent in self.sent.iter_mut().filter(|sent| meant(sent)) {
            let before = sent.has[at];
            sent.has[at] = before.map(&to);
            changed += usize::from(sent.has[at] != before);
        }
        self.revisions[at] += i64::from(changed > 0);
        changed
    }

    fn unread(&self, at: usize, kind: &str) -> Option<usize> {
        let mut mine = self.sent.iter().filter(|sent| sent.kind == kind).filter_map(|sent| sent.has[at]).peekable();
        mine.peek()?;
        Some(mine.filter(|has| !has.read && !has.gone).count())
    }

    async fn step(&mut self) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let (at, which) = (self.dice.roll(3), self.dice.roll(self.sent.len().max(1)));
        let (user, known) = (self.user(at), self.sent.get(which).cloned());
        match (self.dice.roll(10), known) {
            (0..=2, _) | (_, None) => {
                let (kind, others) = (self.dice.pick(&KINDS), 1 + self.dice.roll(7));
                let to: Vec<usize> = (0..3).filter(|at| others >> at & 1 == 1).collect();
                let id = send(&client, kind, &to.iter().map(|at| self.user(*at)).collect::<Vec<_>>()).await;
                let has = [0, 1, 2].map(|at| to.contains(&at).then_some(Has { read: false, gone: false }));
                to.into_iter().for_each(|at| self.revisions[at] += 1);
                self.sent.push(Sent { id, kind, has, withdrawn: false });
            }
            (roll @ 3..=5, Some(sent)) => {
                let read = roll < 5;
                let reply = mark(&client, user, &sent.id, if read { "read" } else { "unread" }).await;
                match sent.has[at] {
                    None => drop(reply.problem(404, "not_found")),
                    Some(has) if has.gone => drop(reply.problem(410, "gone")),
                    Some(_) => {
                        self.change(at, |other| other.id == sent.id, |has| Has { read, ..has });
                        let body = reply.ok();
                        assert_eq!(
                            (body["unread"].as_u64().map(|unread| usize::try_from(unread).unwrap()), &body["revision"]),
                            (self.unread(at, sent.kind), &json!(self.revisions[at]))
                        );
                    }
                }
            }
            (6, Some(sent)) => {
                let reply = client.delete(&format!("/v1/users/{user}/notifications/{}", sent.id)).await;
                assert_eq!(reply.status, if sent.has[at].is_some() { 200 } else { 404 });
                self.change(at, |other| other.id == sent.id, |has| Has { gone: true, ..has });
                if sent.has[at].is_some() {
                    assert_eq!(reply.body, json!({"revision": self.revisions[at]}));
                }
            }
            (7, Some(sent)) => {
                assert_eq!(client.delete(&format!("/v1/notifications/{}", sent.id)).await.status, 204);
                for at in 0..3 {
                    self.change(at, |other| other.id == sent.id, |has| Has { gone: true, ..has });
                }
                self.sent[which].withdrawn = true;
            }
            (_, Some(sent)) => self.many(&client, at, &sent).await,
        }
    }

    /// Reads by type, all, or two by id.
    async fn many(&mut self, client: &Client, at: usize, sent: &Sent) {
        let seq_of = |this: &Self, id: &str| {
            this.sent.iter().filter(|sent| sent.has[at].is_some()).position(|sent| sent.id == id).map_or(0, |at| at + 1)
        };
        let up_to = (self.dice.roll(2) == 0).then(|| self.dice.roll(self.sent.len() + 1));
        let other = self.sent[self.dice.roll(self.sent.len())].clone();
        let (mut body, ids) = match self.dice.roll(3) {
            0 => (json!({"all": true}), None),
            1 => (json!({"type": sent.kind}), None),
            _ => {
                let ids: BTreeSet<_> = [sent.id.clone(), other.id.clone()].into();
                (json!({"ids": ids}), Some(ids))
            }
        };
        if let Some(up_to) = up_to {
            body["up_to_seq"] = json!(up_to);
        }
        let reply = client.post(&format!("/v1/users/{}/notifications/read", self.user(at)), &body).await;
        let named = |sent: &Sent| ids.as_ref().is_some_and(|ids| ids.contains(&sent.id));
        if self.sent.iter().any(|sent| named(sent) && sent.has[at].is_none()) {
            return drop(reply.problem(404, "not_found"));
        }
        if self.sent.iter().any(|sent| named(sent) && sent.has[at].is_some_and(|has| has.gone)) {
            return drop(reply.problem(410, "gone"));
        }
        let in_reach: BTreeSet<String> =
            self.sent.iter().filter(|sent| up_to.is_none_or(|up_to| seq_of(self, &sent.id) <= up_to)).map(|sent| sent.id.clone()).collect();
        let of_type = body["type"].as_str().map(str::to_owned);
        let meant = |sent: &Sent| {
            let asked = match &ids {
                Some(ids) => ids.contains(&sent.id),
                None => of_type.as_ref().is_none_or(|kind| kind == sent.kind),
            };
            asked && in_reach.contains(&sent.id) && sent.has[at].is_some_and(|has| !has.gone)
        };
        let changed = self.change(at, meant, |has| Has { read: true, ..has });
        let reply = reply.ok();
        assert_eq!((&reply["changed"], &reply["revision"]), (&json!(changed), &json!(self.revisions[at])), "{body}");
        assert_eq!(reply["notifications"], self.notifications(at));
    }

    fn notifications(&self, at: usize) -> Value {
        let shown = KINDS.iter().filter_map(|kind| Some(((*kind).to_owned(), json!({"unread": self.unread(at, kind)?}))));
        Value::Object(shown.collect())
    }

    /// Summary, list and counts are those of the model, on any node.
    async fn compare(&mut self, at: usize) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let summary = client.summary(self.user(at)).await;
        assert_eq!((&summary["notifications"], &summary["revision"]), (&self.notifications(at), &json!(self.revisions[at])));
        let mine = self.sent.iter().filter_map(|sent| Some((sent, sent.has[at]?)));
        let mut listed: Vec<_> =
            (1..).zip(mine).filter(|(_, (_, has))| !has.gone).map(|(seq, (sent, has))| (seq, sent.id.clone(), has.read)).collect();
        listed.reverse();
        let items = client.walk(&format!("/v1/users/{}/notifications", self.user(at)), 9).await;
        let shown = items.iter().map(|item| {
            (item["seq"].as_i64().unwrap(), item["notification_id"].as_str().unwrap().to_owned(), item.get("read_at").is_some())
        });
        assert_eq!(shown.collect::<Vec<_>>(), listed);
        if let Some(sent) = self.sent.last() {
            let reply = client.get(&format!("/v1/notifications/{}", sent.id)).await;
            if sent.withdrawn {
                return drop(reply.problem(410, "gone"));
            }
            let read = sent.has.iter().flatten().filter(|has| has.read).count();
            assert_eq!(reply.ok()["read_count"], json!(read));
        }
    }
}
