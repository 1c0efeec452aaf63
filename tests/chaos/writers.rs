//! The writers: every kind of write, sent again under the same key until it is acknowledged.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::Run;
use super::ledger::{self, BADGES, BUSY_GROUPS, CHANNELS, DOTS, LARGE_GROUP, STEADY_GROUPS, Sent};
use crate::support::{Client, Dice, Reply};

/// How long a writer insists on an answer before that is a finding.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// Makes the groups, and lets every user be seen, so that broadcasts count for them.
pub async fn prepare(run: &Run) {
    let writer = Writer::new(run, 0, 0);
    let groups = STEADY_GROUPS.into_iter().chain(BUSY_GROUPS).chain([LARGE_GROUP]);
    for (group, delivery) in groups.zip(["read", "write", "read", "write", "write"]) {
        writer.insist(&mut Dice::new(1), Method::PUT, &format!("/v1/groups/{group}"), &json!({"delivery": delivery})).await;
        let listeners = ledger::listeners().filter(|_| group == LARGE_GROUP);
        let members: Vec<String> = ledger::users().chain(listeners).map(|user| user.to_string()).collect();
        for members in members.chunks(1000) {
            let body = json!({"user_ids": members});
            writer.insist(&mut Dice::new(1), Method::POST, &format!("/v1/groups/{group}/members"), &body).await;
        }
    }
    for user in ledger::users() {
        run.nodes.any(&mut Dice::new(1)).await.get(&format!("/v1/users/{user}/badges")).await;
    }
}

/// One writer, until the run is over.
pub async fn write(run: Run, writer: usize, seed: usize) {
    let mut dice = Dice::new(seed * 1000 + writer + 1);
    let writer = Writer::new(&run, writer, seed);
    while !run.over.is_cancelled() {
        run.pace.turn().await;
        let me = dice.pick(&writer.mine);
        match dice.roll(22) {
            0..5 => writer.increment(&mut dice).await,
            5 => writer.increment_many(&mut dice).await,
            6..8 => writer.reset(&mut dice, me).await,
            8 => writer.retract(&mut dice).await,
            9 => writer.broadcast(&mut dice, me).await,
            10 => writer.dot(&mut dice, me).await,
            11 => writer.post(&mut dice).await,
            12 => writer.act(&mut dice, Method::POST, format!("/v1/users/{me}/feed/reset"), me, json!({})).await,
            13..16 => writer.say(&mut dice, me).await,
            16 => writer.read_group(&mut dice, me).await,
            17 => writer.join_or_leave(&mut dice, me).await,
            18..20 => writer.direct(&mut dice, me).await,
            20 => writer.read_direct(&mut dice, me).await,
            _ => writer.relate(&mut dice, me).await,
        }
    }
}

struct Writer {
    run: Run,
    mine: Vec<i64>,
    name: String,
}

impl Writer {
    fn new(run: &Run, writer: usize, seed: usize) -> Self {
        Self { run: run.clone(), mine: ledger::owned_by(writer), name: format!("{seed}-{writer}") }
    }

    async fn increment(&self, dice: &mut Dice) {
        let (user, badge) = (any_user(dice), dice.pick(&BADGES));
        let by = i64::try_from(1 + dice.roll(3)).unwrap();
        let path = format!("/v1/users/{user}/badges/{badge}/increment");
        let body = self.insist(dice, Method::POST, &path, &json!({"by": by})).await;
        self.note_increment(user, badge, by, &body);
    }

    async fn increment_many(&self, dice: &mut Dice) {
        let picked: Vec<(i64, &str)> = (0..=dice.roll(8)).map(|_| (any_user(dice), dice.pick(&BADGES))).collect();
        let items: Vec<Value> = picked.iter().map(|(user, badge)| json!({"user_id": user.to_string(), "badge": badge})).collect();
        let body = self.insist(dice, Method::POST, "/v1/badges/increment", &json!({"items": items})).await;
        let empty = Vec::new();
        for ((user, badge), item) in picked.into_iter().zip(body["items"].as_array().unwrap_or(&empty)) {
            self.note_increment(user, badge, 1, item);
        }
    }

    fn note_increment(&self, user: i64, badge: &'static str, by: i64, body: &Value) {
        let Some(head) = body["head"].as_i64() else { return };
        self.run.ledger.note(|noted| {
            let tally = noted.counters.entry((user, badge)).or_default();
            tally.added += by;
            tally.head = tally.head.max(head);
            tally.positions.push(head);
        });
        self.run.ledger.revision(user, body["revision"].as_i64());
    }

    async fn reset(&self, dice: &mut Dice, me: i64) {
        let badge = dice.pick(&BADGES);
        let head = self.run.ledger.note(|noted| noted.counters.entry((me, badge)).or_default().head);
        let path = format!("/v1/users/{me}/badges/{badge}/reset");
        let body = self.insist(dice, Method::POST, &path, &json!({"up_to": head})).await;
        self.run.ledger.note(|noted| {
            let tally = noted.counters.entry((me, badge)).or_default();
            tally.up_to = tally.up_to.max(head);
        });
        self.run.ledger.revision(me, body["revision"].as_i64());
    }

    async fn retract(&self, dice: &mut Dice) {
        let (user, badge) = (any_user(dice), dice.pick(&BADGES));
        let latest: Vec<i64> = self.run.ledger.note(|noted| {
            let positions = &noted.counters.entry((user, badge)).or_default().positions;
            positions[positions.len().saturating_sub(20)..].to_vec()
        });
        if latest.is_empty() {
            return;
        }
        let at = dice.pick(&latest);
        let path = format!("/v1/users/{user}/badges/{badge}/retract");
        let body = self.insist(dice, Method::POST, &path, &json!({"at": at})).await;
        self.run.ledger.note(|noted| noted.counters.entry((user, badge)).or_default().retracted.insert(at));
        self.run.ledger.revision(user, body["revision"].as_i64());
    }

    async fn broadcast(&self, dice: &mut Dice, me: i64) {
        let channel = dice.pick(&CHANNELS);
        if dice.roll(4) > 0 {
            return self.act(dice, Method::POST, format!("/v1/users/{me}/broadcasts/{channel}/read"), me, json!({})).await;
        }
        let body = self.insist(dice, Method::POST, &format!("/v1/broadcasts/{channel}"), &json!({"title": "chaos"})).await;
        if let Some(seq) = body["seq"].as_i64() {
            self.run.ledger.note(|noted| {
                noted.shared.entry(format!("c:{channel}")).or_default().push(seq);
                noted.events.insert(format!("broadcast {channel} {seq}"));
            });
        }
    }

    async fn dot(&self, dice: &mut Dice, me: i64) {
        let dot = dice.pick(&DOTS);
        if dice.roll(4) > 0 {
            return self.act(dice, Method::POST, format!("/v1/users/{me}/dots/{dot}/clear"), me, json!({})).await;
        }
        let body = self.insist(dice, Method::POST, &format!("/v1/dots/{dot}/light"), &json!({})).await;
        if let Some(head) = body["head"].as_i64() {
            self.run.ledger.note(|noted| noted.shared.entry(format!("d:{dot}")).or_default().push(head));
        }
    }

    async fn post(&self, dice: &mut Dice) {
        let (creator, post) = (any_user(dice), self.run.ledger.key());
        self.insist(dice, Method::PUT, &format!("/v1/users/{creator}/posts/{post}"), &Value::Null).await;
        self.run.ledger.note(|noted| *noted.posts.entry(creator).or_default() += 1);
    }

    async fn say(&self, dice: &mut Dice, me: i64) {
        let is_steady = dice.roll(3) > 0;
        let is_large = is_steady && dice.roll(6) == 0;
        let group = if is_large { LARGE_GROUP } else { dice.pick(if is_steady { &STEADY_GROUPS } else { &BUSY_GROUPS }) };
        let content = self.run.ledger.key();
        let body = json!({"sender_id": me.to_string(), "client_id": content, "content": content});
        let answer = self.insist(dice, Method::POST, &format!("/v1/groups/{group}/messages"), &body).await;
        let Some(seq) = answer["seq"].as_i64() else {
            // The writer itself had the sender leave a busy group.
            return self.run.findings.check(!is_steady, || format!("a member cannot send to group {group}: {answer}"));
        };
        let was = self.run.ledger.note(|noted| {
            noted.group_heads.entry(group).or_default().push(seq);
            noted.messages.insert((group, seq), Sent { sender: me, content })
        });
        self.run.findings.check(was.is_none(), || format!("group {group} gave seq {seq} twice: {was:?}"));
    }

    async fn read_group(&self, dice: &mut Dice, me: i64) {
        let group = dice.pick(&STEADY_GROUPS);
        self.act(dice, Method::POST, format!("/v1/users/{me}/groups/{group}/read"), me, json!({})).await;
    }

    async fn join_or_leave(&self, dice: &mut Dice, me: i64) {
        let group = dice.pick(&BUSY_GROUPS);
        let method = if dice.roll(2) == 0 { Method::PUT } else { Method::DELETE };
        self.insist(dice, method, &format!("/v1/groups/{group}/members/{me}"), &Value::Null).await;
    }

    async fn direct(&self, dice: &mut Dice, me: i64) {
        let peer = any_user(dice);
        if peer == me {
            return;
        }
        let content = self.run.ledger.key();
        let body = json!({"sender_id": me.to_string(), "client_id": content, "content": content});
        let answer = self.insist(dice, Method::POST, &format!("/v1/users/{peer}/inbox"), &body).await;
        let Some(seq) = answer["seq"].as_i64() else {
            return self.run.findings.check(answer["code"] == "blocked", || format!("{me} cannot write to {peer}: {answer}"));
        };
        let was = self.run.ledger.note(|noted| noted.directs.insert((peer, seq), Sent { sender: me, content }));
        self.run.findings.check(was.is_none(), || format!("the inbox of {peer} gave seq {seq} twice: {was:?}"));
    }

    async fn read_direct(&self, dice: &mut Dice, me: i64) {
        let peer = any_user(dice);
        if peer != me {
            self.act(dice, Method::POST, format!("/v1/users/{me}/directs/{peer}/read"), me, json!({})).await;
        }
    }

    async fn relate(&self, dice: &mut Dice, me: i64) {
        let target = any_user(dice);
        if target == me {
            return;
        }
        let (method, list, body) = match dice.roll(8) {
            0..4 => (Method::PUT, "following", json!({"visibility": dice.pick(&["public", "secret"])})),
            4..6 => (Method::DELETE, "following", Value::Null),
            6 => (Method::PUT, "blocks", Value::Null),
            _ => (Method::DELETE, "blocks", Value::Null),
        };
        let answer = self.insist(dice, method, &format!("/v1/users/{me}/{list}/{target}"), &body).await;
        let is_expected = answer["code"].is_null() || answer["code"] == "blocked";
        self.run.findings.check(is_expected, || format!("{me} {list} {target}: {answer}"));
    }

    /// A write of the user's own numbers, whose answer has the revision.
    async fn act(&self, dice: &mut Dice, method: Method, path: String, me: i64, body: Value) {
        let answer = self.insist(dice, method, &path, &body).await;
        self.run.ledger.revision(me, answer["revision"].as_i64());
    }

    /// Sends until there is an answer that says what came of it. Returns its body.
    async fn insist(&self, dice: &mut Dice, method: Method, path: &str, body: &Value) -> Value {
        let key = format!("{}-{}", self.name, self.run.ledger.key());
        let began = Instant::now();
        let mut told = false;
        loop {
            let client = self.run.nodes.any(dice).await;
            let mut request = client.request(method.clone(), path).timeout(REQUEST);
            if !body.is_null() {
                request = request.json(body);
            }
            if takes_key(path) {
                request = request.header("idempotency-key", &key);
            }
            let sent = Instant::now();
            match Client::try_send(request).await {
                Ok(reply) if !reply.may_repeat() => {
                    self.run.latencies.write(&client.base, sent.elapsed());
                    return self.taken(path, reply);
                }
                Ok(_) | Err(_) => self.run.ledger.retries.fetch_add(1, Ordering::Relaxed),
            };
            if began.elapsed() > PATIENCE && !told {
                told = true;
                self.run.findings.add(&format!("no answer in {PATIENCE:?}: {path} {body}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn taken(&self, path: &str, reply: Reply) -> Value {
        self.run.ledger.writes.fetch_add(1, Ordering::Relaxed);
        let is_expected = reply.status.is_success() || reply.status == 403;
        self.run.findings.check(is_expected, || format!("{path}: {} {}", reply.status, reply.text));
        reply.body
    }
}

fn takes_key(path: &str) -> bool {
    let counts = ["/increment", "/retract", "/light"].iter().any(|end| path.ends_with(end));
    counts || path.starts_with("/v1/broadcasts/")
}

fn any_user(dice: &mut Dice) -> i64 {
    let users: Vec<i64> = ledger::users().collect();
    dice.pick(&users)
}
