//! A crowd of writers and pollers on the same few users. Writers note what was acknowledged;
//! pollers check that nothing they see is older.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::truth::{Summary, Truth, poll};
use crate::support::{Client, Dice, Nodes, eventually_within};

const BADGES: [&str; 3] = ["follow", "like", "mention"];

/// How long a writer insists on an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was acknowledged of one badge.
#[derive(Debug, Default, Clone)]
struct Tally {
    /// The sum of the increments.
    added: i64,
    /// The highest head that an increment returned.
    head: i64,
    /// The heads returned, which may be retracted.
    positions: Vec<i64>,
    up_to: i64,
    retracted: BTreeSet<i64>,
}

#[derive(Debug, Default)]
struct Ledger {
    badges: BTreeMap<(i64, &'static str), Tally>,
    revisions: BTreeMap<i64, i64>,
}

/// The crowd.
#[derive(Debug, Clone)]
pub struct Storm {
    pub nodes: Nodes,
    pub users: Vec<i64>,
    pub writers: usize,
    pub steps: usize,
    pub pollers: usize,
    /// Whether every request must succeed at once; else those that may be repeated are.
    pub calm: bool,
    /// Whether some polls carry the tag of what they saw last, and some of these wait.
    pub tags: bool,
    ledger: Arc<Mutex<Ledger>>,
    keys: Arc<AtomicU64>,
}

impl Storm {
    pub fn new(nodes: Nodes) -> Self {
        Self {
            nodes,
            users: (1..=4).collect(),
            writers: 16,
            steps: 40,
            pollers: 4,
            calm: true,
            tags: false,
            ledger: Arc::default(),
            keys: Arc::default(),
        }
    }

    /// Changes acknowledged so far.
    pub fn acknowledged(&self) -> i64 {
        self.ledger.lock().unwrap().revisions.values().sum()
    }

    /// Lets it loose; `disturb` goes on beside it, and is dropped when all has been written.
    pub async fn rage(&self, disturb: impl Future<Output = ()>) {
        let over = CancellationToken::new();
        let (mut writers, mut pollers) = (JoinSet::new(), JoinSet::new());
        for seed in 1..=self.writers {
            let this = self.clone();
            writers.spawn(async move { this.write(Dice::new(seed)).await });
        }
        for seed in 1..=self.pollers {
            let (this, over) = (self.clone(), over.clone());
            pollers.spawn(async move { this.watch(Dice::new(1000 + seed), over).await });
        }
        let crowd = async move {
            loop {
                // A poller ends early only by a failed check.
                tokio::select! {
                    done = writers.join_next() => match done {
                        Some(done) => done.unwrap(),
                        None => return pollers,
                    },
                    Some(done) = pollers.join_next() => drop(done.unwrap()),
                }
            }
        };
        tokio::pin!(crowd);
        let mut pollers = tokio::select! {
            pollers = &mut crowd => pollers,
            () = disturb => crowd.await,
        };
        over.cancel();
        let mut polls = 0;
        while let Some(done) = pollers.join_next().await {
            polls += done.unwrap();
        }
        assert!(polls > 0, "somebody must have polled");
    }

    /// Lets it loose again and again until this is done.
    pub async fn rage_during(&self, work: impl Future<Output = ()>) {
        let over = AtomicBool::new(false);
        let work = async {
            work.await;
            over.store(true, Ordering::Relaxed);
        };
        let rage = async {
            while !over.load(Ordering::Relaxed) {
                self.rage(std::future::pending()).await;
            }
        };
        tokio::join!(work, rage);
    }

    /// Waits until so many more changes are acknowledged.
    pub async fn more(&self, changes: i64, within_s: u64) {
        let enough = self.acknowledged() + changes;
        eventually_within(within_s, "writes are acknowledged", async || self.acknowledged() >= enough).await;
    }

    /// After it: rows, polls of every node and what was acknowledged agree.
    pub async fn settle(&self, truth: &mut Truth) {
        let tallies = self.ledger.lock().unwrap().badges.clone();
        for &user in &self.users {
            let summary = truth.summary(user).await;
            for badge in BADGES {
                let tally = tallies.get(&(user, badge)).cloned().unwrap_or_default();
                assert_eq!(summary.head(badge), tally.added, "every acknowledged increment once: {user} {badge}");
                let unread = (tally.up_to + 1..=tally.added).filter(|position| !tally.retracted.contains(position)).count();
                assert_eq!(summary.unread(badge), i64::try_from(unread).unwrap(), "{user} {badge} {tally:?}");
            }
            for client in self.nodes.up() {
                assert_eq!(poll(&client, user).await, summary, "user {user}");
            }
        }
    }

    async fn write(&self, mut dice: Dice) {
        for _ in 0..self.steps {
            let (user, badge) = (dice.pick(&self.users), dice.pick(&BADGES));
            let tally = self.ledger.lock().unwrap().badges.get(&(user, badge)).cloned().unwrap_or_default();
            match dice.roll(20) {
                0..10 => self.increment(&mut dice, user, badge).await,
                10..13 => self.batch(&mut dice).await,
                13..16 => {
                    let body =
                        self.insist(&mut dice, &format!("/v1/users/{user}/badges/{badge}/reset"), &json!({"up_to": tally.head})).await;
                    self.note(user, badge, &body, |noted| noted.up_to = noted.up_to.max(tally.head));
                }
                16..18 => {
                    let body =
                        self.insist(&mut dice, &format!("/v1/users/{user}/badges/reset"), &json!({"up_to": {badge: tally.head}})).await;
                    self.note(user, badge, &body, |noted| noted.up_to = noted.up_to.max(tally.head));
                }
                _ if tally.positions.is_empty() => {}
                _ => {
                    let at = dice.pick(&tally.positions);
                    let body = self.insist(&mut dice, &format!("/v1/users/{user}/badges/{badge}/retract"), &json!({"at": at})).await;
                    self.note(user, badge, &body, |noted| noted.retracted.extend([at]));
                }
            }
        }
    }

    async fn increment(&self, dice: &mut Dice, user: i64, badge: &'static str) {
        let by = i64::try_from(1 + dice.roll(3)).unwrap();
        let body = self.insist(dice, &format!("/v1/users/{user}/badges/{badge}/increment"), &json!({"by": by})).await;
        self.note_increment(user, badge, by, &body);
    }

    /// Users and badges in any order, some twice: bait for deadlocks.
    async fn batch(&self, dice: &mut Dice) {
        let picked: Vec<(i64, &str)> = (0..=dice.roll(6)).map(|_| (dice.pick(&self.users), dice.pick(&BADGES))).collect();
        let items: Vec<Value> = picked.iter().map(|(user, badge)| json!({"user_id": user.to_string(), "badge": badge})).collect();
        let body = self.insist(dice, "/v1/badges/increment", &json!({"items": items})).await;
        for ((user, badge), item) in picked.into_iter().zip(body["items"].as_array().unwrap()) {
            self.note_increment(user, badge, 1, item);
        }
    }

    fn note_increment(&self, user: i64, badge: &'static str, by: i64, body: &Value) {
        let head = body["head"].as_i64().unwrap();
        self.note(user, badge, body, |noted| {
            noted.added += by;
            noted.head = noted.head.max(head);
            noted.positions.push(head);
        });
    }

    fn note(&self, user: i64, badge: &'static str, body: &Value, change: impl FnOnce(&mut Tally)) {
        let mut ledger = self.ledger.lock().unwrap();
        change(ledger.badges.entry((user, badge)).or_default());
        let revision = ledger.revisions.entry(user).or_default();
        *revision = body["revision"].as_i64().unwrap().max(*revision);
    }

    /// Sends until it succeeds, always under the same key.
    async fn insist(&self, dice: &mut Dice, path: &str, body: &Value) -> Value {
        let key = format!("storm-{}", self.keys.fetch_add(1, Ordering::Relaxed));
        let give_up = Instant::now() + PATIENCE;
        loop {
            let client = self.nodes.any(dice).await;
            let mut request = client.request(reqwest::Method::POST, path).json(body);
            if !path.ends_with("/reset") {
                request = request.header("idempotency-key", &key);
            }
            match Client::try_send(request).await {
                Ok(reply) if reply.status == 200 => return reply.body,
                Ok(reply) => assert!(!self.calm && reply.may_repeat(), "{} {}", reply.status, reply.text),
                Err(error) => assert!(!self.calm, "{error:?}"),
            }
            assert!(Instant::now() < give_up, "no success in {PATIENCE:?}: {path} {body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Polls until told to stop; returns how many full answers it had.
    async fn watch(&self, mut dice: Dice, over: CancellationToken) -> usize {
        let (mut seen, mut polls) = (BTreeMap::<i64, i64>::new(), 0);
        let mut tagged = BTreeMap::<i64, (String, Summary)>::new();
        while !over.is_cancelled() {
            let user = dice.pick(&self.users);
            let (revision, heads) = {
                let ledger = self.ledger.lock().unwrap();
                let heads = BADGES.map(|badge| ledger.badges.get(&(user, badge)).map_or(0, |tally| tally.head));
                (ledger.revisions.get(&user).copied().unwrap_or_default(), heads)
            };
            let client = self.nodes.any(&mut dice).await;
            let Some(summary) = self.poll(&mut dice, &client, user, &mut tagged).await else { continue };
            let newest = seen.entry(user).or_default();
            assert!(summary.revision >= *newest, "user {user} went back from {newest} to {summary:?}");
            assert!(summary.revision >= revision, "user {user} is at {revision}, acknowledged, but the poll shows {summary:?}");
            for (badge, head) in BADGES.into_iter().zip(heads) {
                assert!(summary.head(badge) >= head, "user {user}: {badge} is at {head}, acknowledged, but the poll shows {summary:?}");
            }
            *newest = summary.revision;
            polls += 1;
        }
        polls
    }

    /// Polls once; None where nothing that counts was answered.
    async fn poll(&self, dice: &mut Dice, client: &Client, user: i64, tagged: &mut BTreeMap<i64, (String, Summary)>) -> Option<Summary> {
        let with_tag = tagged.get(&user).filter(|_| self.tags && dice.roll(3) > 0).cloned();
        let waits = if with_tag.is_some() && dice.roll(2) > 0 { "?wait=1" } else { "" };
        let mut request = client.request(reqwest::Method::GET, &format!("/v1/users/{user}/badges{waits}"));
        if let Some((tag, _)) = &with_tag {
            request = request.header("if-none-match", tag);
        }
        let reply = match Client::try_send(request).await {
            Ok(reply) => reply,
            Err(error) => {
                assert!(!self.calm, "{error:?}");
                return None;
            }
        };
        if reply.body["degraded"] == true {
            assert!(!self.calm, "{}", reply.text);
            tokio::time::sleep(Duration::from_millis(5)).await;
            return None;
        }
        if let Some((_, unchanged)) = with_tag
            && reply.status == 304
        {
            return Some(unchanged);
        }
        let tag = reply.header("etag").to_owned();
        let summary = Summary::shown(&reply.ok());
        tagged.insert(user, (tag, summary.clone()));
        Some(summary)
    }
}
