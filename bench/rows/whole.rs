//! A poll of the whole unread summary: everything that there is to be unread, for users who have
//! some of each; and what such users take in Redis.

use serde_json::json;

use crate::Result;
use crate::data;
use crate::load;
use crate::peers::{self, Peer};
use crate::process::Process;
use crate::report::{Goal, Limit, Report};
use crate::stats::{float, grouped};
use crate::wire::{self, Answer};

use super::{Stage, memory};

/// Users who poll.
const POLLING: usize = 300;
/// Whom each follows, and in how many groups each is.
const CREATORS: u64 = 10;
const GROUPS: u64 = 10;
/// Ids of creators and groups, and of who sends; those of users are lower.
const FIRST: u64 = 7_000_000_001;
const SENDER: u64 = 7_000_000_999;
const CHANNELS: [&str; 3] = ["news", "system", "team"];
const DOTS: [&str; 2] = ["mall", "wallet"];
const TYPES: [&str; 2] = ["notice", "order"];
/// Every part of an unread summary.
const PARTS: [&str; 6] = ["counters", "broadcasts", "dots", "feed", "chats", "notifications"];

const GOALS: [Goal; 2] = [
    Goal { work: "poll of the whole summary, embedded tier", at_least: Some(0.8), unit: "polls" },
    Goal { work: "poll of the whole summary, server tier", at_least: Some(0.75), unit: "polls" },
];
const MOST_REDIS_BYTES: f64 = 120.0;

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("polls of the whole summary");
    let mut users = data::working_set(stage.scale.users, stage.scale.polling);
    users.sort_unstable();
    users.dedup();
    let others: Vec<u64> = users.iter().copied().skip(POLLING).take(POLLING).collect();
    users.truncate(POLLING);
    weigh_plain(stage, report, &others).await?;
    let mut answers = Vec::new();
    for process in [&stage.embedded, &stage.server] {
        fill(stage, process, &users).await?;
        answers.push(check(stage, process, &users).await?);
    }
    let [embedded, server] = answers.as_slice() else { return Err("no answers".into()) };
    let bare = peers::start(Peer::Bare, embedded, &stage.redis, stage.folder()).await?;
    weigh_whole(stage, report, &users).await?;

    let requests = stage.gets("whole", users.iter().map(|user| format!("/v1/users/{user}/badges")))?;
    let sides = [
        stage.side("a bare axum route", &bare, &requests),
        stage.side("the whole summary, embedded", &stage.embedded, &requests),
        stage.side("the whole summary, server", &stage.server, &requests),
    ];
    let series = stage.contest(&sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in GOALS.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    report.explain(&format!(
        "**Polls of the whole summary** are of {} users each of whom has {} counters, reads {} channels of broadcasts, has {} dots, follows {CREATORS} creators, is in \
         {GROUPS} groups, and has notifications of {} types and a direct message: something is unread in each. The bare route gives the {} bytes of the embedded tier's \
         answer (the server tier's has {}).",
        grouped(float(u64::try_from(users.len())?)),
        data::BADGES.len(),
        CHANNELS.len(),
        DOTS.len(),
        TYPES.len(),
        embedded.body.len(),
        server.body.len(),
    ));
    Ok(())
}

/// What those take who have counters alone.
async fn weigh_plain(stage: &Stage, report: &mut Report, users: &[u64]) -> Result<()> {
    poll_all(stage, &stage.server, users).await?;
    let weight = memory::of_entries(&stage.redis, users).await?;
    report.size("an active user's entry in Redis: 4 counters", weight.entry, Limit::AtMost(MOST_REDIS_BYTES));
    report.explain(&format!(
        "**An active user's entry in Redis** is weighed with `MEMORY USAGE`, which counts the key and what Redis needs to hold it; the mean of {} users \
         who have just polled. The first one has {}.",
        users.len(),
        weight.fields.join(", "),
    ));
    Ok(())
}

async fn weigh_whole(stage: &Stage, report: &mut Report, users: &[u64]) -> Result<()> {
    poll_all(stage, &stage.server, users).await?;
    let weight = memory::of_entries(&stage.redis, users).await?;
    report.size("for information: the same with some of everything, groups aside", weight.without_groups, Limit::None);
    report.size(&format!("for information: the same with {} groups", weight.groups), weight.entry, Limit::None);
    report.explain(&format!(
        "**With some of everything** the users are those who poll the whole summary; groups aside, the first one has {}.",
        weight.fields.join(", "),
    ));
    Ok(())
}

async fn poll_all(stage: &Stage, process: &Process, users: &[u64]) -> Result<()> {
    let polls = users.iter().map(|user| wire::request("GET", &format!("/v1/users/{user}/badges"), &[])).collect();
    load::send_all(process.address, polls, stage.scale.connections).await.map(|_| ())
}

/// Something of everything: some is read, some is not.
async fn fill(stage: &Stage, process: &Process, users: &[u64]) -> Result<()> {
    poll_all(stage, process, users).await?;
    let mut joins = Vec::new();
    for number in 0..CREATORS {
        joins.extend(users.iter().map(|user| wire::request("PUT", &format!("/v1/users/{user}/following/{}", FIRST + number), &[])));
    }
    stage.fill(process, joins).await?;
    let groups = FIRST..FIRST + GROUPS;
    stage.fill(process, groups.clone().map(|group| wire::request("PUT", &format!("/v1/groups/{group}"), &[])).collect()).await?;
    let members: Vec<String> = users.iter().chain([&SENDER]).map(ToString::to_string).collect();
    let members = json!({ "user_ids": members });
    stage.fill(process, groups.map(|group| wire::json("POST", &format!("/v1/groups/{group}/members"), &members)).collect()).await?;
    stage.fill(process, news(users, 1)).await?;
    stage.fill(process, users.iter().flat_map(|user| reads(*user)).collect()).await?;
    stage.fill(process, news(users, 2)).await
}

/// One more of everything.
fn news(users: &[u64], round: u32) -> Vec<Vec<u8>> {
    let recipients: Vec<String> = users.iter().map(ToString::to_string).collect();
    let mut all = Vec::new();
    let post = |path: String, body: serde_json::Value| wire::json("POST", &path, &body);
    for number in 0..CREATORS.max(GROUPS) {
        let id = FIRST + number;
        all.push(wire::request("PUT", &format!("/v1/users/{id}/posts/p{round}"), &[]));
        let message = json!({ "sender_id": SENDER.to_string(), "client_id": format!("c{round}"), "content": "Lunch at one?" });
        all.push(post(format!("/v1/groups/{id}/messages"), message));
    }
    all.extend(CHANNELS.map(|channel| post(format!("/v1/broadcasts/{channel}"), json!({ "title": "Maintenance tonight" }))));
    all.extend(DOTS.map(|dot| wire::request("POST", &format!("/v1/dots/{dot}/light"), &[])));
    all.extend(TYPES.map(|kind| {
        post(
            "/v1/notifications".to_owned(),
            json!({ "type": kind, "title": "News", "content": "Your order is on its way.", "recipients": recipients }),
        )
    }));
    all.extend(users.iter().map(|user| {
        let message = json!({ "sender_id": SENDER.to_string(), "client_id": format!("d{round}-{user}"), "content": "Are you there?" });
        post(format!("/v1/users/{user}/inbox"), message)
    }));
    all
}

/// What a user reads of the first round.
fn reads(user: u64) -> Vec<Vec<u8>> {
    let mut paths: Vec<String> = CHANNELS.iter().map(|channel| format!("broadcasts/{channel}/read")).collect();
    paths.extend(DOTS.iter().map(|dot| format!("dots/{dot}/clear")));
    paths.extend((FIRST..FIRST + GROUPS).map(|group| format!("groups/{group}/read")));
    paths.push("feed/reset".to_owned());
    paths.into_iter().map(|path| wire::request("POST", &format!("/v1/users/{user}/{path}"), &[])).collect()
}

/// Whether there is something unread of every kind.
async fn check(stage: &Stage, process: &Process, users: &[u64]) -> Result<Answer> {
    let user = users.first().ok_or("no users to poll")?;
    let answer = stage.ask(process, &format!("/v1/users/{user}/badges")).await?;
    let summary = answer.json()?;
    let is_whole = PARTS.iter().all(|part| summary.get(part).and_then(|part| part.as_object()).is_some_and(|part| !part.is_empty()));
    let unread = |part: &str| summary.pointer(&format!("/{part}/unread")).and_then(serde_json::Value::as_i64).unwrap_or(0);
    if !is_whole || unread("chats") == 0 || unread("feed") == 0 {
        return Err(format!("the summary is not whole: {summary}").into());
    }
    Ok(answer)
}
