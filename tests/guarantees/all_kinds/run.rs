//! A case under way: how its requests are sent, and which step does what.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::model::{Group, Model, USERS, View};
use super::push::Reader;
use super::steps::{Step, What};
use crate::support::{Client, Reply};

/// How long an answer is waited for that a dead node owes.
const MAX_REPEATS: usize = 400;

/// A keyed request and its first answer.
struct Sent {
    path: String,
    key: String,
    body: Value,
    first: Reply,
}

pub struct Run<'a> {
    pub fleet: &'a mut Fleet,
    /// Apart from those of other cases: its users, groups and names.
    case: i64,
    pub model: Model,
    /// Which step it is, and from which on the last user may be seen.
    at: usize,
    late: usize,
    /// Whom the present step asks.
    pub node: usize,
    doom: Option<u64>,
    /// Whether the present request was sent again, as its node died before it answered.
    pub repeated: bool,
    sent: Vec<Sent>,
    keys: usize,
    /// The highest revision that each user was shown.
    pub revisions: [i64; USERS],
    /// The last tag of each path whose body is compared with a fresh one.
    pub tags: HashMap<String, String>,
    /// A service that reads events.
    pub reader: Reader,
}

impl<'a> Run<'a> {
    pub fn new(fleet: &'a mut Fleet, late: usize) -> Self {
        fleet.cases += 1;
        let case = fleet.cases;
        let now = fleet.now().unwrap_or_default();
        let mut model = Model { seen: (0..USERS - 1).collect(), now, ..Model::default() };
        for view in 0..2 {
            model.views.insert(format!("room:{case}-{view}"), View::default());
        }
        let (sent, revisions) = (Vec::new(), [0; USERS]);
        let (tags, reader) = (HashMap::new(), Reader::default());
        Self { fleet, case, model, at: 0, late, node: 0, doom: None, repeated: false, sent, keys: 0, revisions, tags, reader }
    }

    /// Which step it is.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn user(&self, user: usize) -> i64 {
        self.case * 10 + 1 + i64::try_from(user).unwrap()
    }

    pub fn users(&self) -> Vec<i64> {
        (0..USERS).map(|user| self.user(user)).collect()
    }

    pub fn user_path(&self, user: usize, rest: &str) -> String {
        format!("/v1/users/{}/{rest}", self.user(user))
    }

    /// One of two groups. In place of one that was deleted comes another.
    pub fn group_id(&self, which: usize) -> i64 {
        let first = self.case * 10 + i64::try_from(which % 2).unwrap();
        (first..first + 10).step_by(2).find(|id| !self.model.deleted_groups.contains_key(id)).unwrap_or(first)
    }

    pub fn group(&mut self, id: i64) -> Option<&mut Group> {
        self.model.groups.get_mut(&id)
    }

    /// One of two channels or dots.
    pub fn name(&self, which: usize) -> String {
        format!("{}-{}", ["news", "sale"][which % 2], self.case)
    }

    /// One of two views.
    pub fn view(&self, which: usize) -> String {
        format!("room:{}-{}", self.case, which % 2)
    }

    /// Who acts on a route of its own, and so is seen, and about whom.
    pub fn own(&mut self, step: &Step) -> (usize, usize) {
        let user = if self.model.seen.contains(&step.user) || self.at >= self.late { step.user } else { 0 };
        self.model.seen.insert(user);
        (user, if step.other == user { (user + 1) % USERS } else { step.other })
    }

    /// An id that was not used before in this case.
    pub fn fresh(&mut self) -> String {
        self.keys += 1;
        format!("{}-{}", self.case, self.keys)
    }

    /// Sends to the node of the step. Where that dies meanwhile, it is sent again until a node has
    /// answered.
    async fn send(&mut self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Reply {
        let request = |client: Client| {
            let mut request = client.request(method.clone(), path);
            if let Some(body) = body {
                request = request.json(body);
            }
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            request
        };
        let Some(doom) = self.doom.take() else { return Client::send(request(self.fleet.client(self.node))).await };
        let asked = Client::try_send(request(self.fleet.client(self.node)));
        let (answer, ()) = tokio::join!(asked, self.fleet.kill(self.node, Duration::from_millis(doom)));
        if self.fleet.len() > 1 && doom % 2 == 0 {
            // The other one is asked while the first is dead.
            self.repeated = answer.is_err();
            let answer = match answer {
                Ok(answer) => answer,
                Err(_) => self.insist(request, self.node + 1).await,
            };
            self.fleet.restart(self.node).await;
            return answer;
        }
        self.fleet.restart(self.node).await;
        self.repeated = answer.is_err();
        match answer {
            Ok(answer) => answer,
            Err(_) => self.insist(request, self.node).await,
        }
    }

    async fn insist(&self, request: impl Fn(Client) -> reqwest::RequestBuilder, node: usize) -> Reply {
        for _ in 0..MAX_REPEATS {
            let reply = Client::send(request(self.fleet.client(node))).await;
            // A store that has yet to notice the death, or the first request, which still holds the
            // key.
            if reply.status != 503 && reply.body["code"] != "idempotency_in_progress" {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("a request that a dead node did not answer is never answered");
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, None, Some(&body)).await
    }

    pub async fn put(&mut self, path: &str, body: Value) -> Reply {
        self.send(Method::PUT, path, None, Some(&body)).await
    }

    pub async fn patch(&mut self, path: &str, body: Value) -> Reply {
        self.send(Method::PATCH, path, None, Some(&body)).await
    }

    pub async fn delete(&mut self, path: &str) -> Reply {
        self.send(Method::DELETE, path, None, None).await
    }

    /// Sends under a new key, and remembers the answer for [`What::Repeat`].
    pub async fn keyed(&mut self, path: &str, body: Value) -> Reply {
        let key = format!("key-{}", self.fresh());
        let reply = self.send(Method::POST, path, Some(&key), Some(&body)).await;
        assert!(self.repeated || reply.header("idempotent-replayed").is_empty(), "{path} {body}");
        if reply.status.is_success() {
            self.sent.push(Sent { path: path.to_owned(), key, body, first: reply.clone() });
        }
        reply
    }

    /// The answer of what makes something: where it was sent twice, the first time may have made
    /// it.
    #[track_caller]
    pub fn made(&self, reply: Reply) -> Value {
        assert!(reply.status == 201 || (self.repeated && reply.status == 200), "{} {}", reply.status, reply.text);
        reply.body
    }

    /// The revision of an answer about a user; no later poll may be below it.
    pub fn note(&mut self, user: usize, body: &Value) {
        let revision = body["revision"].as_i64().unwrap();
        self.revisions[user] = self.revisions[user].max(revision);
    }

    async fn repeat(&mut self, which: usize) {
        let Some(sent) = self.sent.get(which % self.sent.len().max(1)) else { return };
        let reply = self.fleet.client(self.node).post_once(&sent.path, &sent.key, &sent.body).await;
        assert_eq!((reply.status, &reply.text), (sent.first.status, &sent.first.text));
        assert_eq!(reply.header("idempotent-replayed"), "true");
    }

    pub async fn step(&mut self, step: &Step) {
        self.fleet.catch_up().await;
        self.pass(1);
        (self.at, self.node, self.doom, self.repeated) = (self.at + 1, step.node % self.fleet.len(), step.doom, false);
        match step.what {
            What::Repeat => self.repeat(step.which).await,
            What::ForgetUser => self.fleet.forget(Some(self.user(step.user))).await,
            What::Forget => self.fleet.forget(None).await,
            What::EvictLists => self.fleet.evict(self.node, false),
            What::EvictHeads => self.fleet.evict(self.node, true),
            What::Restart => self.fleet.restart(self.node).await,
            What::Pass => self.pass(1 + step.which % 20),
            _ => self.act(step).await,
        }
        // Its step had no request.
        self.doom = None;
    }

    /// It is so many steps later.
    pub fn pass(&mut self, steps: usize) {
        self.fleet.pass(steps);
        self.fleet.now().into_iter().for_each(|now| self.model.pass(now));
    }

    async fn act(&mut self, step: &Step) {
        match step.what {
            What::Increment
            | What::IncrementMany
            | What::RetractAt
            | What::RetractNewest
            | What::Reset
            | What::ResetAll
            | What::DeleteBadge => {
                self.counters(step).await;
            }
            What::SendNotification
            | What::ReadNotification
            | What::UnreadNotification
            | What::ReadNotifications
            | What::DeleteNotification
            | What::WithdrawNotification
            | What::EditNotification
            | What::SeeNotifications => {
                self.notifications(step).await;
            }
            What::PutItem | What::DeleteItem | What::Access => self.views(step).await,
            What::SendNotice | What::Withdraw | What::DeleteChannel | What::ReadNotices => self.notices(step).await,
            What::Light | What::DeleteDot | What::ClearDot => self.dots(step).await,
            What::Post | What::PostAgain | What::DeletePost | What::ResetFeed => self.posts(step).await,
            What::Follow
            | What::Unfollow
            | What::RemoveFollower
            | What::Approve
            | What::AcceptRequest
            | What::RefuseRequest
            | What::Block
            | What::Unblock => self.relations(step).await,
            What::Mute | What::Unmute => self.mutes(step).await,
            What::SweepMutes => self.fleet.sweep_mutes().await,
            What::PutGroup
            | What::DeleteGroup
            | What::Join
            | What::Leave
            | What::Say
            | What::SayAgain
            | What::Mention
            | What::MentionAll
            | What::Recall => {
                self.groups(step).await;
            }
            What::ReadGroup | What::ReadOne | What::UnreadGroup | What::SetLevel => self.memberships(step).await,
            What::LeaveOut | What::ShareReceipts => self.settings(step).await,
            What::ExpireMessages => self.expire_messages(step).await,
            What::PushDevice => self.push_device(step).await,
            _ => self.directs(step).await,
        }
    }
}

/// So much of something: all, or a share.
pub fn part(of: usize, percent: Option<usize>) -> usize {
    percent.map_or(of, |percent| of * percent / 100)
}

/// The body of what is read up to a head; without one, all.
pub fn up_to(of: usize, percent: Option<usize>) -> Value {
    percent.map_or(json!({}), |_| json!({"up_to": part(of, percent)}))
}
