//! Users with a push device, as a service sees them that asks for numbers where an event tells it
//! to, and never else: in the end it must have those of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::model::USERS;
use super::run::Run;
use super::steps::Step;
use crate::support::{Client, eventually};

/// What an icon counts. Feed and dots are not told.
const TOLD: [&str; 5] = ["total", "counters", "broadcasts", "chats", "notifications"];

/// How long the end is waited for, in steps of the clock or tenths of seconds.
const PATIENCE: usize = 150;

/// After so many steps of the clock, all that ends by time has ended.
const ALL_ENDED: usize = 31;

/// The pause between steps until then, in which what the clock brings begins.
const STEP: Duration = Duration::from_millis(50);

/// The service.
#[derive(Debug, Default)]
pub struct Reader {
    /// The first event of the case, and how far it has read.
    first: i64,
    after: i64,
    /// Who has a push device now.
    pub flagged: BTreeSet<usize>,
    /// Who ever had one.
    ever: BTreeSet<usize>,
    /// What it was answered last.
    shown: BTreeMap<usize, Value>,
}

/// Events of type `unread` after a number, up to the end.
async fn unread_events(client: &Client, mut after: i64) -> (Vec<(i64, i64, i64)>, i64) {
    let mut all = Vec::new();
    loop {
        let page = client.get(&format!("/v1/events?types=unread&limit=7&after={after}")).await.ok();
        for event in page["items"].as_array().unwrap() {
            assert_eq!(event["type"], "unread");
            let user = event["data"]["user_id"].as_str().unwrap().parse().unwrap();
            all.push((event["id"].as_i64().unwrap(), user, event["data"]["revision"].as_i64().unwrap()));
        }
        let next = page["next_after"].as_i64().unwrap();
        assert!(next >= after && all.last().is_none_or(|(id, ..)| *id <= next), "{page}");
        if page["has_more"] == false {
            return (all, next);
        }
        assert!(next > after, "a page makes progress: {page}");
        after = next;
    }
}

impl Run<'_> {
    /// From here on the service reads.
    pub async fn begin_push(&mut self) {
        let (_, end) = unread_events(&self.fleet.client(0), 0).await;
        (self.reader.first, self.reader.after) = (end, end);
        for user in 0..2 {
            self.set_push(user, "phone", true).await;
        }
    }

    async fn set_push(&mut self, user: usize, device: &str, push: bool) {
        let path = self.user_path(user, &format!("devices/{device}"));
        let body = self.put(&path, serde_json::json!({"push": push})).await.ok();
        assert_eq!((&body["device_id"], &body["push"]), (&device.into(), &push.into()));
        if push {
            self.reader.flagged.insert(user);
            self.reader.ever.insert(user);
        } else {
            self.reader.flagged.remove(&user);
            self.reader.shown.remove(&user);
        }
    }

    /// The third user has a device now and then; the fourth never.
    pub async fn push_device(&mut self, step: &Step) {
        let (user, device) = (2, "tablet");
        if step.percent.is_none() && self.reader.flagged.contains(&user) {
            let path = self.user_path(user, &format!("devices/{device}"));
            let reply = self.delete(&path).await;
            assert!(reply.status == 204 || (self.repeated && reply.status == 404), "{}", reply.text);
            self.reader.flagged.remove(&user);
            self.reader.shown.remove(&user);
        } else {
            self.set_push(user, device, step.which.is_multiple_of(2)).await;
        }
    }

    /// The service reads on, at any node, and asks any.
    pub async fn read_push(&mut self) {
        let client = self.fleet.client(self.node + 1);
        let (events, end) = unread_events(&client, self.reader.after).await;
        self.reader.after = end;
        let users: BTreeSet<_> = events.iter().filter_map(|(_, user, _)| self.users().iter().position(|id| id == user)).collect();
        if users.is_empty() {
            return;
        }
        // The clock of the test is faster than nodes look at each other.
        self.fleet.catch_up().await;
        let ids: Vec<_> = users.iter().map(|user| self.user(*user)).collect();
        loop {
            let reply = self.fleet.client(self.node).post("/v1/badges/query", &serde_json::json!({"user_ids": ids})).await;
            if reply.status != 503 {
                let items = reply.ok()["items"].as_array().unwrap().clone();
                self.reader.shown.extend(users.into_iter().zip(items));
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn push_differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        for user in &self.reader.flagged {
            let mut expected = self.model.summary(*user, false);
            // Channels of other cases are there, with nothing in them.
            let mut shown = self.reader.shown.get(user).cloned().unwrap_or_default();
            for kind in TOLD {
                let (expected, shown) = (expected[kind].take(), shown[kind].take());
                let same = match (&expected, &shown) {
                    (Value::Object(expected), Value::Object(shown)) if kind == "broadcasts" => {
                        expected.iter().all(|(name, of)| shown.get(name) == Some(of))
                    }
                    _ => expected == shown,
                };
                if !same {
                    differences.push(format!("{kind} of user {user}: {shown}, not {expected}"));
                }
            }
        }
        differences
    }

    /// In the end the service has the numbers of the model, and the last event of each user its
    /// revision, from wherever it is read.
    pub async fn settle_push(&mut self) {
        let mut differences = Vec::new();
        if self.fleet.now().is_some() {
            for _ in 0..ALL_ENDED {
                self.pass(1);
                tokio::time::sleep(STEP).await;
            }
        }
        // The model stays as it is from here on, and what is in hand brings the service to it.
        for _ in 0..PATIENCE {
            self.pass(1);
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.read_push().await;
            differences = self.push_differences();
            if differences.is_empty() {
                break;
            }
        }
        assert!(differences.is_empty(), "{differences:?}");
        let client = self.fleet.client(0);
        // What writes beside the requests, as what has ended by time, may raise a revision until the end.
        let mut all = Vec::new();
        eventually("the last event of each user has its revision", async || {
            all = unread_events(&client, self.reader.first).await.0;
            for user in &self.reader.flagged {
                let of_user = all.iter().rev().find(|(_, of, _)| *of == self.user(*user));
                let badges = client.get(&self.user_path(*user, "badges?include=counters")).await.ok();
                if badges["revision"] != of_user.map_or(0, |(.., revision)| *revision) {
                    return false;
                }
            }
            true
        })
        .await;
        let middle = all.get(all.len() / 2).map_or(self.reader.first, |(id, ..)| *id);
        let (mut rest, _) = unread_events(&client, middle).await;
        // More may have come meanwhile.
        rest.retain(|(id, ..)| all.last().is_some_and(|(last, ..)| id <= last));
        assert_eq!(rest, all.iter().filter(|(id, ..)| *id > middle).copied().collect::<Vec<_>>());
        for user in 0..USERS {
            let mut last = 0;
            for (.., revision) in all.iter().filter(|(_, of, _)| *of == self.user(user)) {
                assert!(*revision >= last, "the events of a user are in the order of revisions: {all:?}");
                last = *revision;
            }
            assert!(last == 0 || self.reader.ever.contains(&user), "user {user} has no push device");
        }
    }
}
