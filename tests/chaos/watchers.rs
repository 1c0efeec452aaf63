//! The readers: what they see must never be older than what was acknowledged, nor go back.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::Run;
use super::ledger::{self, BADGES, CHANNELS, DOTS, STEADY_GROUPS};
use crate::support::{Client, Dice, Reply};

/// After so long, every node shows what users share.
pub const FRESHNESS: Duration = Duration::from_millis(2000);

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(20);

/// What a client remembers of a user.
#[derive(Debug, Default, Clone)]
struct Seen {
    etag: String,
    revision: i64,
    shared_revision: i64,
    /// Heads of channels and dots.
    shared: BTreeMap<String, i64>,
}

/// What was acknowledged when a poll began.
struct Floor {
    revision: i64,
    counters: [i64; 3],
    shared: BTreeMap<String, i64>,
    groups: BTreeMap<i64, i64>,
}

/// One client that polls, by turns, every user's summary and list of groups, on any node.
pub async fn poll(run: Run, seed: usize) {
    let mut dice = Dice::new(seed + 7);
    let mut seen = BTreeMap::<i64, Seen>::new();
    let users: Vec<i64> = ledger::users().collect();
    while !run.over.is_cancelled() {
        run.pace.turn().await;
        let user = dice.pick(&users);
        let client = run.nodes.any(&mut dice).await;
        if dice.roll(5) == 0 {
            groups(&run, &client, user).await;
        } else {
            let wait = if dice.roll(10) == 0 { "?wait=1" } else { "" };
            summary(&run, &client, user, seen.entry(user).or_default(), wait).await;
        }
    }
}

fn floor(run: &Run, user: i64) -> Floor {
    let Some(moment) = Instant::now().checked_sub(FRESHNESS) else { panic!("the clock just began") };
    run.ledger.note(|noted| Floor {
        revision: noted.revisions.get(&user).copied().unwrap_or_default(),
        counters: BADGES.map(|badge| noted.counters.get(&(user, badge)).map_or(0, |tally| tally.head)),
        shared: noted.shared.iter().map(|(name, heads)| (name.clone(), heads.before(moment))).collect(),
        groups: noted.group_heads.iter().map(|(group, heads)| (*group, heads.before(moment))).collect(),
    })
}

async fn get(client: &Client, path: &str, etag: &str) -> Option<Reply> {
    let mut request = client.request(Method::GET, path).timeout(REQUEST);
    if !etag.is_empty() {
        request = request.header("if-none-match", etag);
    }
    Client::try_send(request).await.ok()
}

async fn summary(run: &Run, client: &Client, user: i64, seen: &mut Seen, wait: &str) {
    let floor = floor(run, user);
    let wait = if seen.etag.is_empty() { "" } else { wait };
    let began = Instant::now();
    let Some(reply) = get(client, &format!("/v1/users/{user}/badges{wait}"), &seen.etag).await else { return };
    let took = began.elapsed();
    if wait.is_empty() {
        run.latencies.poll(&client.base, took);
    }
    let asked = format!("{}{wait}, {} ms", client.base, took.as_millis());
    run.ledger.polls.fetch_add(1, Ordering::Relaxed);
    let findings = &run.findings;
    match reply.status {
        StatusCode::NOT_MODIFIED => {
            let is_new = seen.revision >= floor.revision;
            findings.check(is_new, || format!("user {user}: 304 for {seen:?}, but revision {} was acknowledged", floor.revision));
            for (name, head) in &floor.shared {
                let shown = seen.shared.get(name).copied().unwrap_or_default();
                findings.check(shown >= *head, || format!("user {user}: 304 shows {name} at {shown}, {head} was acknowledged"));
            }
        }
        StatusCode::OK if reply.body["degraded"] == true => {
            run.ledger.degraded.fetch_add(1, Ordering::Relaxed);
            findings.check(reply.header("etag").is_empty(), || format!("user {user}: a degraded answer has a tag"));
        }
        StatusCode::OK => fresh(run, user, (&reply, &asked), &floor, seen),
        StatusCode::SERVICE_UNAVAILABLE => {}
        status => findings.add(&format!("poll of {user}: {status} {}", reply.text)),
    }
}

fn fresh(run: &Run, user: i64, (reply, asked): (&Reply, &str), floor: &Floor, seen: &mut Seen) {
    let (body, findings) = (&reply.body, &run.findings);
    let revision = body["revision"].as_i64().unwrap_or(-1);
    let shared_revision = body["shared_revision"].as_i64().unwrap_or_default();
    let (told, known) = (format!("{} ({asked})", reply.text), seen.clone());
    findings.check(revision >= floor.revision, || format!("user {user}: {} was acknowledged, a poll shows {told}", floor.revision));
    let goes_back = (revision, shared_revision) < (known.revision, if revision == known.revision { known.shared_revision } else { 0 });
    findings.check(!goes_back, || format!("user {user} went back from {known:?} to {told}"));
    for (badge, head) in BADGES.into_iter().zip(floor.counters) {
        let shown = body["counters"][badge]["head"].as_i64().unwrap_or_default();
        findings.check(shown >= head, || format!("user {user}: {badge} is at {head}, a poll shows {told}"));
    }
    let names = CHANNELS.map(|name| ("broadcasts", "c", name)).into_iter().chain(DOTS.map(|name| ("dots", "d", name)));
    for (kind, letter, name) in names {
        let key = format!("{letter}:{name}");
        let shown = body[kind][name]["head"].as_i64().unwrap_or_default();
        let acknowledged = floor.shared.get(&key).copied().unwrap_or_default();
        findings
            .check(shown >= acknowledged, || format!("user {user}: {key} was at {acknowledged} {FRESHNESS:?} ago, a poll shows {told}"));
        let before = known.shared.get(&key).copied().unwrap_or_default();
        findings.check(shown >= before, || format!("user {user}: {key} went back from {before}, a poll with {} shows {told}", known.etag));
        seen.shared.insert(key, shown);
    }
    findings.check(adds_up(body), || format!("user {user}: the total is not the sum: {told}"));
    seen.revision = revision;
    seen.shared_revision = shared_revision;
    seen.etag = reply.header("etag").to_owned();
}

/// Whether the total is that of its four kinds.
fn adds_up(body: &Value) -> bool {
    let unread =
        |kind: &str| -> i64 { body[kind].as_object().map_or(0, |parts| parts.values().filter_map(|part| part["unread"].as_i64()).sum()) };
    let parts = unread("counters") + unread("broadcasts") + unread("notifications") + body["chats"]["unread"].as_i64().unwrap_or_default();
    body["total"].as_i64() == Some(parts)
}

async fn groups(run: &Run, client: &Client, user: i64) {
    let floor = floor(run, user);
    let Some(reply) = get(client, &format!("/v1/users/{user}/groups"), "").await else { return };
    let findings = &run.findings;
    if reply.status == StatusCode::SERVICE_UNAVAILABLE || reply.header("etag").is_empty() {
        return;
    }
    let empty = Vec::new();
    let items = reply.body["items"].as_array().unwrap_or(&empty);
    for item in items {
        let number = |name: &str| item[name].as_i64().unwrap_or_default();
        findings.check(number("head") >= number("read_seq"), || format!("user {user}: read beyond the head: {item}"));
    }
    for group in STEADY_GROUPS {
        let id = group.to_string();
        let item = items.iter().find(|item| item["group_id"].as_str() == Some(&id));
        let head = item.and_then(|item| item["head"].as_i64()).unwrap_or(-1);
        let acknowledged = floor.groups.get(&group).copied().unwrap_or_default();
        findings.check(head >= acknowledged, || format!("user {user}: group {group} was at {acknowledged}, the list shows {item:?}"));
        if head > 0 {
            receipts(run, client, group, head).await;
        }
    }
}

async fn receipts(run: &Run, client: &Client, group: i64, seq: i64) {
    let Some(reply) = get(client, &format!("/v1/groups/{group}/messages/{seq}/receipts"), "").await else { return };
    let number = |name: &str| reply.body[name].as_i64().unwrap_or(-1);
    let is_whole = number("read_count") + number("unread_count") == number("recipients");
    // The members of the steady groups are all users, one of whom sent the message.
    let everybody = i64::try_from(ledger::users().count()).unwrap() - 1;
    let holds = reply.status == 503 || (is_whole && number("recipients") == everybody);
    run.findings.check(holds, || format!("receipts of {group}/{seq}: {} {}", reply.status, reply.text));
}

/// A device that reads its user's inbox to the end: without gaps, in order.
pub async fn read_inbox(run: Run, user: i64) {
    let mut dice = Dice::new(usize::try_from(user).unwrap() + 50);
    let mut after = 0;
    while !run.over.is_cancelled() {
        let client = run.nodes.any(&mut dice).await;
        let Some(reply) = get(&client, &format!("/v1/users/{user}/inbox?after={after}&limit=50&wait=1"), "").await else { continue };
        if reply.status == StatusCode::SERVICE_UNAVAILABLE {
            continue;
        }
        run.findings.check(reply.status == StatusCode::OK, || format!("inbox of {user} after {after}: {} {}", reply.status, reply.text));
        for item in reply.body["items"].as_array().unwrap_or(&Vec::new()) {
            let seq = item["seq"].as_i64().unwrap_or_default();
            run.findings.check(seq == after + 1, || format!("inbox of {user}: {seq} follows {after}"));
            run.ledger.rows.fetch_add(1, Ordering::Relaxed);
            after = seq.max(after);
        }
    }
}

/// A service that reads all events: in order, none before one already read.
pub async fn read_events(run: Run) {
    let mut dice = Dice::new(99);
    let mut after = 0;
    while !run.over.is_cancelled() {
        let client = run.nodes.any(&mut dice).await;
        let Some(reply) = get(&client, &format!("/v1/events?after={after}&limit=100&wait=1"), "").await else { continue };
        if reply.status == StatusCode::SERVICE_UNAVAILABLE {
            continue;
        }
        run.findings.check(reply.status == StatusCode::OK, || format!("events after {after}: {} {}", reply.status, reply.text));
        after = note_events(&run, &reply.body, after);
    }
    // Everything acknowledged must come; what is late has ten seconds.
    let give_up = Instant::now() + Duration::from_secs(10);
    while Instant::now() < give_up && !run.ledger.note(|noted| noted.events.is_subset(&noted.events_seen)) {
        let client = run.nodes.any(&mut dice).await;
        if let Some(reply) = get(&client, &format!("/v1/events?after={after}&limit=100&wait=1"), "").await {
            after = note_events(&run, &reply.body, after);
        }
    }
    let missing: Vec<String> = run.ledger.note(|noted| noted.events.difference(&noted.events_seen).cloned().collect());
    run.findings.check(missing.is_empty(), || format!("events that never came: {missing:?}"));
}

fn note_events(run: &Run, body: &Value, mut after: i64) -> i64 {
    for item in body["items"].as_array().unwrap_or(&Vec::new()) {
        let id = item["id"].as_i64().unwrap_or_default();
        run.findings.check(id > after, || format!("event {id} comes after {after}"));
        after = id.max(after);
        run.ledger.rows.fetch_add(1, Ordering::Relaxed);
        if item["type"] == "broadcast" {
            let data = &item["data"];
            let name = format!("broadcast {} {}", data["channel"].as_str().unwrap_or_default(), data["seq"]);
            run.ledger.note(|noted| noted.events_seen.insert(name));
        }
    }
    after
}
