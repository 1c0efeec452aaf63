//! Clients that go on asking while the database is replaced under their nodes. They fail the test
//! for what no client may be shown.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use headmark::engine::epoch::EVENTS_STEP;
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Client, Dice, Nodes, Reply, eventually_within};

/// What is written in the time that will be lost is raised by so much: no number of another time is
/// as high.
pub const LOST: i64 = 1000;

/// How much later than it was made an answer may come.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// How long a held poll asks to be held, in seconds.
const HELD_S: u32 = 3;

/// Answers that each client must have had from after the restore.
const ENOUGH: usize = 2;

const SUMMARY: &str = "/v1/users/1/badges";

/// The clients.
#[derive(Debug)]
pub struct Clients {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    /// Of these users.
    inboxes: Vec<(i64, Stream)>,
    events: Vec<Stream>,
}

#[derive(Debug)]
struct Shared {
    nodes: Nodes,
    /// The epoch before the restore.
    first: String,
    /// From when on nothing of the lost time may be shown.
    complete: OnceLock<Instant>,
    over: CancellationToken,
    /// Answers from after that, of each client.
    answers: Vec<AtomicUsize>,
}

impl Shared {
    /// Whether an answer that comes now was made when the restore was complete. Counts it then.
    fn is_after(&self, client: usize) -> bool {
        let after = self.complete.get().is_some_and(|complete| complete.elapsed() > ON_ITS_WAY);
        self.answers[client].fetch_add(usize::from(after), Ordering::Relaxed);
        after
    }

    /// Asks a node that is up; None where it does not answer.
    async fn ask(&self, dice: &mut Dice, path: &str, tag: &str) -> Option<Reply> {
        let request = self.nodes.any(dice).await.request(Method::GET, path);
        let request = if tag.is_empty() { request } else { request.header("if-none-match", tag) };
        let reply = Client::try_send(request).await.ok().filter(|reply| reply.status != 503);
        if reply.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        reply
    }
}

/// What a reader of a numbered stream has, by number, and how often it began again.
#[derive(Debug, Clone, Default)]
pub struct Stream(Arc<Mutex<(BTreeMap<i64, Value>, usize)>>);

impl Stream {
    fn take(&self, items: &Value, number: &str) {
        let mut had = self.0.lock().unwrap();
        for item in items.as_array().unwrap() {
            let id = item[number].as_i64().unwrap();
            let next = had.0.keys().last().map_or(1, |last| last + 1);
            let is_after_restore = number == "id" && next < EVENTS_STEP && id > EVENTS_STEP;
            assert!(id == next || is_after_restore, "nothing is passed over: {id} after {next}");
            had.0.insert(id, item.clone());
        }
    }

    /// Whether it has all of these events. What it has beside them is lost, and no other event has its number.
    fn has_events(&self, events: &[Value]) -> bool {
        let had = self.0.lock().unwrap();
        let of = |event: &Value| event["id"].as_i64().unwrap();
        let has_all = events.iter().all(|event| had.0.get(&of(event)) == Some(event));
        has_all && had.0.keys().all(|id| *id < EVENTS_STEP || events.iter().any(|event| of(event) == *id))
    }

    fn begin_again(&self) {
        let mut had = self.0.lock().unwrap();
        had.0.clear();
        had.1 += 1;
    }

    fn items(&self) -> Vec<Value> {
        self.0.lock().unwrap().0.values().cloned().collect()
    }
}

impl Clients {
    /// Polls with a tag, held and not, readers of inboxes (of user 1, and of user 3, who is sent
    /// nothing) and of events.
    pub fn start(nodes: Nodes, first: &str) -> Self {
        let answers = std::iter::repeat_with(AtomicUsize::default).take(8).collect();
        let shared = Shared { nodes, first: first.to_owned(), complete: OnceLock::new(), over: CancellationToken::new(), answers };
        let (shared, mut tasks) = (Arc::new(shared), JoinSet::new());
        let inboxes = vec![(1, Stream::default()), (3, Stream::default())];
        let events = vec![Stream::default(), Stream::default()];
        for at in 0..2 {
            tasks.spawn(poll(Arc::clone(&shared), at, 0));
            tasks.spawn(poll(Arc::clone(&shared), 2 + at, HELD_S));
            tasks.spawn(read_inbox(Arc::clone(&shared), 4 + at, inboxes[at].clone()));
            tasks.spawn(read_events(Arc::clone(&shared), 6 + at, events[at].clone()));
        }
        Self { shared, tasks, inboxes, events }
    }

    /// Waits until every reader has what a node lists: all messages, and an event of each.
    pub async fn catch_up(&mut self) {
        eventually_within(20, "the readers have everything", async || {
            self.check();
            let Some(node) = self.shared.nodes.up().pop() else { return false };
            let events = items(&node, "/v1/events?limit=1000").await;
            let mut messages = events.iter().filter(|event| event["type"] == "direct_message").count();
            for (user, stream) in &self.inboxes {
                let inbox = items(&node, &format!("/v1/users/{user}/inbox?limit=100")).await;
                messages = messages.wrapping_sub(inbox.len());
                if stream.items() != inbox {
                    return false;
                }
            }
            messages == 0 && self.events.iter().all(|stream| stream.has_events(&events))
        })
        .await;
    }

    /// A client ends early only by a failed check.
    fn check(&mut self) {
        if let Some(ended) = self.tasks.try_join_next() {
            ended.unwrap();
        }
    }

    /// From now on nothing of the lost time may be shown. Waits until every client has had answers.
    pub async fn complete(&mut self) {
        self.shared.complete.set(Instant::now()).unwrap();
        eventually_within(30, "every client has had answers", async || {
            self.check();
            self.shared.answers.iter().all(|answers| answers.load(Ordering::Relaxed) >= ENOUGH)
        })
        .await;
    }

    /// Ends them, who must have everything. Readers of inboxes must have begun again.
    pub async fn finish(mut self) {
        self.catch_up().await;
        self.shared.over.cancel();
        self.tasks.join_all().await;
        for (_, stream) in &self.inboxes {
            assert!(stream.0.lock().unwrap().1 > 0, "it began again");
        }
    }
}

async fn items(node: &Client, path: &str) -> Vec<Value> {
    let body = node.get(path).await.body;
    body["items"].as_array().cloned().unwrap_or_default()
}

/// Polls the unread summary with the tag of the last answer.
async fn poll(shared: Arc<Shared>, client: usize, wait: u32) {
    let (mut dice, mut tag, mut shown) = (Dice::new(client + 1), String::new(), (String::new(), 0, 0));
    while !shared.over.is_cancelled() {
        let path = if wait > 0 && !tag.is_empty() { format!("{SUMMARY}?wait={wait}") } else { SUMMARY.to_owned() };
        let Some(reply) = shared.ask(&mut dice, &path, &tag).await else { continue };
        if reply.status != 304 {
            let body = reply.clone().ok();
            if body["degraded"] == true {
                continue;
            }
            let head = body["counters"]["mention"]["head"].as_i64().unwrap_or(0);
            let now = (body["epoch"].as_str().unwrap().to_owned(), body["revision"].as_i64().unwrap(), head);
            assert!(now.0 == shared.first || now.2 < LOST, "a number of the lost time in another epoch: {body}");
            // Until another epoch begins, nothing tells the nodes.
            assert!(now.0 == shared.first || now.0 != shown.0 || now.1 >= shown.1, "it went back: {shown:?} then {body}");
            assert!(now.0 != shared.first || shown.0.is_empty() || shown.0 == now.0, "the first epoch came again: {shown:?} then {body}");
            (tag, shown) = (reply.header("etag").to_owned(), now);
        }
        assert!(!shared.is_after(client) || shown.0 != shared.first, "of the lost time: {} {shown:?}", reply.status);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Reads the inbox from a cursor on.
async fn read_inbox(shared: Arc<Shared>, client: usize, (user, had): (i64, Stream)) {
    let (mut dice, mut cursor, mut epoch) = (Dice::new(client + 1), String::new(), None);
    while !shared.over.is_cancelled() {
        let path = format!("/v1/users/{user}/inbox?limit=20&wait={HELD_S}{cursor}");
        let Some(reply) = shared.ask(&mut dice, &path, "").await else { continue };
        if reply.status == 410 {
            reply.problem(410, "inbox_reset");
            had.begin_again();
            (cursor, epoch) = (String::new(), None);
            continue;
        }
        let body = reply.ok();
        let of = body["epoch"].as_str().unwrap().to_owned();
        assert!(epoch.get_or_insert_with(|| of.clone()) == &of, "another epoch without 410: {body}");
        assert!(!shared.is_after(client) || of != shared.first, "of the lost time: {body}");
        had.take(&body["items"], "seq");
        cursor = format!("&after={}&epoch={of}", body["next_after"]);
    }
}

/// Reads events from a number on.
async fn read_events(shared: Arc<Shared>, client: usize, had: Stream) {
    let (mut dice, mut cursor) = (Dice::new(client + 1), String::new());
    while !shared.over.is_cancelled() {
        let Some(reply) = shared.ask(&mut dice, &format!("/v1/events?wait=1{cursor}"), "").await else { continue };
        if reply.status == 410 {
            reply.problem(410, "gone");
            had.begin_again();
            cursor.clear();
            continue;
        }
        let body = reply.ok();
        shared.is_after(client);
        had.take(&body["items"], "id");
        cursor = format!("&after={}", body["next_after"]);
    }
}
