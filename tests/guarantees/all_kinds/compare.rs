//! What every node shows, and what the rows hold at the end, against the model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use super::model::{Delivered, USERS};
use super::run::Run;
use crate::support::{Client, eventually};

/// Within which time every node shows what another took.
const SOON: Duration = Duration::from_secs(2);

/// How long a node that has just started, or lost another, may take to be sure of itself.
const SETTLED: Duration = Duration::from_secs(5);

/// What every node shows at once, whichever took the write.
const OWN: [&str; 2] = ["counters", "notifications"];

/// A poll that is not degraded; None where it tells that nothing changed.
async fn poll(client: &Client, path: &str, tag: &str) -> (String, Option<Value>) {
    let began = Instant::now();
    loop {
        let reply = if tag.is_empty() { client.get(path).await } else { client.get_if_changed(path, tag).await };
        if reply.status == 304 {
            return (tag.to_owned(), None);
        }
        let tag = reply.header("etag").to_owned();
        let body = reply.ok();
        if body["degraded"] == false {
            return (tag, Some(body));
        }
        assert!(began.elapsed() < SETTLED, "still degraded: {body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Run<'_> {
    /// Every node shows the model; that of the step comes first.
    pub async fn compare(&mut self, user: usize, after: &str) {
        let nodes: Vec<_> = (0..self.fleet.len()).map(|at| self.fleet.client(self.node + at)).collect();
        for user in self.model.seen.clone() {
            let views: Vec<_> = self.model.views.keys().map(String::as_str).collect();
            let path = self.user_path(user, &format!("badges?views={}", views.join(",")));
            let mut tag = String::new();
            for node in &nodes {
                // What one node has shown, no other contradicts.
                if !tag.is_empty()
                    && let (_, Some(body)) = poll(node, &path, &tag).await
                {
                    self.check(user, body, after);
                }
                tag = self.shows(node, user, &path, after).await;
            }
        }
        self.compare_query(&nodes, after).await;
        self.compare_lists(&nodes[0], user, after).await;
        if self.model.seen.contains(&user) {
            self.compare_notifications(user, after).await;
        }
    }

    /// A poll without a tag shows the model. Processes are not told to listen to each other before
    /// each step, so there what another node took may come a little later.
    async fn shows(&mut self, node: &Client, user: usize, path: &str, after: &str) -> String {
        let began = Instant::now();
        loop {
            let (tag, body) = poll(node, path, "").await;
            let body = body.unwrap();
            let expected = self.model.summary(user, true);
            let shown = self.own_names(body.clone());
            let late = self.fleet.now().is_none() && began.elapsed() < SOON && OWN.iter().all(|kind| shown[kind] == expected[kind]);
            if !late || shown == expected {
                self.check(user, body, after);
                return tag;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// An unread summary without id, epoch and revisions, and without the channels and dots of
    /// other cases, in which there must be nothing.
    fn own_names(&self, mut summary: Value) -> Value {
        let body = summary.as_object_mut().unwrap();
        for name in ["user_id", "epoch", "revision", "shared_revision"] {
            assert!(body.remove(name).is_some(), "{name}: {body:?}");
        }
        let mine = [self.name(0), self.name(1)];
        for (kind, field, nothing) in [("broadcasts", "unread", json!(0)), ("dots", "lit", json!(false))] {
            body[kind].as_object_mut().unwrap().retain(|name, shown| {
                assert!(mine.contains(name) || shown[field] == nothing, "{name}: {shown}");
                mine.contains(name)
            });
        }
        summary
    }

    fn check(&mut self, user: usize, body: Value, after: &str) {
        let revision = body["revision"].as_i64().unwrap();
        assert!(revision >= self.revisions[user], "after {after}, user {user} is back from revision {}: {body}", self.revisions[user]);
        self.revisions[user] = revision;
        let shown = self.own_names(body);
        assert_eq!(shown, self.model.summary(user, true), "user {user} after {after}");
    }

    /// What push senders are told, also of those who were not seen. Where there are such, no tag
    /// has had the others catch up.
    async fn compare_query(&self, nodes: &[Client], after: &str) {
        let body = json!({"user_ids": self.users(), "include": ["counters", "broadcasts", "dots", "feed", "chats", "notifications"]});
        let expected: Vec<_> = (0..USERS).map(|user| self.model.summary(user, false)).collect();
        let everybody = self.model.seen.len() == USERS;
        for node in nodes.iter().take(if everybody { 1 } else { nodes.len() }) {
            let began = Instant::now();
            loop {
                let reply = node.post("/v1/badges/query", &body).await;
                // It is never degraded.
                let items = if reply.status == 503 { Vec::new() } else { reply.ok()["items"].as_array().unwrap().clone() };
                let shown: Vec<_> = items.into_iter().map(|summary| self.own_names(summary)).collect();
                if shown == expected {
                    break;
                }
                let patience = if shown.is_empty() { SETTLED } else { SOON };
                assert!(began.elapsed() < patience, "after {after}: {shown:?}, not {expected:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// The numbers behind the sums.
    async fn compare_lists(&self, node: &Client, user: usize, after: &str) {
        for user in [user, (user + 1) % USERS] {
            let counts = node.get(&self.user_path(user, "relation-counts")).await.ok();
            assert_eq!(counts, self.model.relation_counts(user), "user {user} after {after}");
        }
        if !self.model.seen.contains(&user) {
            return;
        }
        let muted = node.get(&self.user_path(user, "mutes/ids")).await.ok();
        let place = |id: &Value| self.users().iter().position(|user| id.as_str() == Some(user.to_string().as_str())).unwrap();
        assert_eq!(
            muted["ids"].as_array().unwrap().iter().map(place).collect::<BTreeSet<_>>(),
            self.model.muted_by(user),
            "mutes of {user} after {after}"
        );
        let number = |item: &Value, field: &str| usize::try_from(item[field].as_u64().unwrap()).unwrap();
        eventually(&format!("the groups of {user} after {after}: {:?}", self.model.groups_of(user)), async || {
            let items = node.walk(&self.user_path(user, "groups"), 100).await;
            let shown = items.iter().map(|item| {
                let id: i64 = item["group_id"].as_str().unwrap().parse().unwrap();
                let level = item["level"].as_str().unwrap().to_owned();
                let first = item.get("first_unread_seq").map(|_| number(item, "first_unread_seq"));
                (id, (number(item, "unread"), number(item, "mentions"), number(item, "head"), first, level))
            });
            let groups = self.model.groups_of(user).into_iter();
            let expected = groups.map(|(id, of)| (id, (of.unread, of.mentions, of.head, of.first, of.level.to_owned())));
            shown.collect::<BTreeMap<_, _>>() == expected.collect()
        })
        .await;
        let items = node.walk(&self.user_path(user, "directs"), 100).await;
        let peer = |item: &Value| self.users().iter().position(|id| item["peer_id"].as_str() == Some(id.to_string().as_str())).unwrap();
        let shown = items.iter().map(|item| (peer(item), (number(item, "unread"), item["level"] == "none")));
        let shown: BTreeMap<_, _> = shown.filter(|(_, (unread, _))| *unread > 0).collect();
        assert_eq!(shown, self.model.directs_of(user), "user {user} after {after}");
    }

    /// The end of a case: what was delivered, and whether rows, numbers and entries agree.
    pub async fn settle(&mut self) {
        // What a node that was stopped left undelivered is only taken up after it has stood still
        // for two seconds.
        self.pass(3);
        self.settle_deletions().await;
        for user in 0..USERS {
            let delivered: BTreeMap<i64, &Vec<Delivered>> =
                self.model.inboxes.iter().filter(|((of, _), _)| *of == user).map(|((_, group), rows)| (*group, rows)).collect();
            let client = self.fleet.client(0);
            eventually("the inbox holds what was delivered", async || {
                let inbox = self.inbox(&client, user).await;
                inbox.iter().map(|(group, rows)| (*group, rows)).collect::<BTreeMap<_, _>>() == delivered
            })
            .await;
        }
        // The last look makes seen who was not.
        self.model.seen = (0..USERS).collect();
        self.compare(0, "the end").await;
        self.compare_all_lists("the end").await;
        self.recount().await;
        for at in 0..self.fleet.len() {
            let metrics = self.fleet.client(at).get("/metrics").await.text;
            let drift: Vec<_> = metrics.lines().filter(|line| line.starts_with("headmark_drift_total") && !line.ends_with(" 0")).collect();
            assert!(drift.is_empty(), "{drift:?}");
        }
    }

    /// The groups' rows of an inbox, by group, each in its order.
    async fn inbox(&self, client: &Client, user: usize) -> BTreeMap<i64, Vec<Delivered>> {
        let (mut rows, mut after): (BTreeMap<i64, Vec<Delivered>>, u64) = (BTreeMap::new(), 0);
        loop {
            let page = client.get(&self.user_path(user, &format!("inbox?limit=100&after={after}"))).await.ok();
            for item in page["items"].as_array().unwrap() {
                after += 1;
                assert_eq!(item["seq"], after, "no gaps");
                let Some(group) = item["group_id"].as_str() else { continue };
                let recall = item.get("recall").is_some();
                let id = group.parse().unwrap();
                if self.model.deleted_groups.contains_key(&id) {
                    assert!(recall || (item["recalled"] == true && item.get("content").is_none()), "{item}");
                    continue;
                }
                let seq = item[if recall { "recall" } else { "group_seq" }].as_u64().unwrap();
                rows.entry(id).or_default().push((usize::try_from(seq).unwrap(), recall));
            }
            if page["has_more"] == false {
                return rows;
            }
        }
    }

    async fn recount(&self) {
        let mut here = false;
        for node in self.fleet.here_nodes() {
            let state = node.app.state();
            let (recount, mut found) = (Recount { user: None, dry_run: true }, Vec::new());
            recount.run(&state.db, |difference| found.push(difference.to_string())).await.unwrap();
            assert!(found.is_empty(), "{found:?}");
            let users: Vec<_> = self.users().into_iter().map(|user| user.try_into().unwrap()).collect();
            assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0);
            here = true;
        }
        if !here {
            let ran = crate::maintenance::import::headmark(&self.fleet.world, &["recount", "--dry-run"], false, &[], Vec::new()).await;
            assert!(ran.status == Some(0) && ran.out.contains("nothing differs"), "{ran:?}");
        }
    }
}
