//! The list of a user's chats, and messages that mention many.

use serde_json::json;

use crate::Result;
use crate::load::{Order, Requests};
use crate::peers::{self, Peer};
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire;

use super::{Stage, chats};

/// Groups, and the users who are in all of them: those who poll, and those who are only mentioned.
const GROUPS: u64 = 200;
const FIRST: u64 = 7_400_000_001;
const POLLING: u64 = 20;
const MENTIONED: u64 = 50;
/// Who sends into the groups.
const SENDER: u64 = FIRST + MENTIONED;
/// Users with whom each of those who poll has a direct chat.
const PEERS: u64 = 100;
const FIRST_PEER: u64 = FIRST + 1000;
/// Most messages a second that there are requests for.
const MAX_SENDS_PER_SECOND: usize = 12_000;

/// What is polled, and where.
const POLLS: [(Goal, &str); 2] = [
    (Goal { work: "first page of a user's 300 chats, 20 of them", at_least: Some(0.3), unit: "pages" }, "chats"),
    (Goal { work: "first page of a user's 300 chats, 100 of them", at_least: None, unit: "pages" }, "chats?limit=100"),
];
/// Two thirds: a send that mentions 50 may cost one and a half times as much.
const SEND: Goal = Goal { work: "messages with 50 mentions, durable", at_least: Some(0.67), unit: "messages" };

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("chat lists");
    let groups = FIRST..FIRST + GROUPS;
    stage.fill(&stage.server, groups.clone().map(|group| wire::request("PUT", &format!("/v1/groups/{group}"), &[])).collect()).await?;
    let members: Vec<String> = (FIRST..=SENDER).map(|member| member.to_string()).collect();
    let members = json!({ "user_ids": members });
    stage.fill(&stage.server, groups.map(|group| wire::json("POST", &format!("/v1/groups/{group}/members"), &members)).collect()).await?;
    let outcome = polls(stage, report).await;
    report.attempt("lists of 300 chats", outcome);
    sends(stage, report).await
}

/// By turns into groups and direct chats, so that the list has both on each page.
async fn fill(stage: &Stage) -> Result<()> {
    for half in 0..2 {
        let groups = (FIRST + half * GROUPS / 2..FIRST + (half + 1) * GROUPS / 2).map(|group| chats::send(group, SENDER, "first"));
        stage.fill(&stage.server, groups.collect()).await?;
        let peers = FIRST_PEER + half * PEERS / 2..FIRST_PEER + (half + 1) * PEERS / 2;
        let directs = peers.flat_map(|peer| (FIRST..FIRST + POLLING).map(move |user| direct(user, peer)));
        stage.fill(&stage.server, directs.collect()).await?;
    }
    Ok(())
}

fn direct(user: u64, peer: u64) -> Vec<u8> {
    let body = json!({ "sender_id": peer.to_string(), "client_id": "first", "content": "Lunch at one?" });
    wire::json("POST", &format!("/v1/users/{user}/inbox"), &body)
}

async fn polls(stage: &Stage, report: &mut Report) -> Result<()> {
    fill(stage).await?;
    for (goal, path) in POLLS {
        let paths: Vec<String> = (FIRST..FIRST + POLLING).map(|user| format!("/v1/users/{user}/{path}")).collect();
        let answer = stage.ask(&stage.server, paths.first().ok_or("nobody polls")?).await?;
        let bare = peers::start(Peer::Bare, &answer, &stage.redis, stage.folder()).await?;
        let requests = stage.gets("chats", paths)?;
        let sides = [stage.side("a bare axum route", &bare, &requests), stage.side(goal.work, &stage.server, &requests)];
        let series = stage.contest(&sides).await?;
        if let [theirs, ours] = series.as_slice() {
            report.compare(goal, ours, theirs);
        }
        report.explain(&format!(
            "**The {}** is `GET /v1/users/{{user}}/{path}` on the server tier, for {POLLING} users who are in {GROUPS} groups and have {PEERS} direct chats, all unread; \
             nothing changes meanwhile, so that pages which were shown before are shown again; the bare route gives the same {} bytes.",
            goal.work,
            grouped(float(u64::try_from(answer.body.len())?)),
        ));
    }
    Ok(())
}

async fn sends(stage: &Stage, report: &mut Report) -> Result<()> {
    let brief = stage.scale.brief;
    let count = usize::try_from(brief.each.as_secs())? * MAX_SENDS_PER_SECOND * (brief.count + 1);
    let mentions: Vec<String> = (FIRST..FIRST + MENTIONED).map(|user| user.to_string()).collect();
    let all = |prefix: &'static str, mentions: &[String]| -> Result<Requests> {
        let request = |number: u64| {
            let body = json!({
                "sender_id": SENDER.to_string(), "client_id": format!("{prefix}{number}"), "content": "Lunch at one?", "mentions": mentions,
            });
            wire::json("POST", &format!("/v1/groups/{}/messages", FIRST + number % GROUPS), &body)
        };
        Requests::new(stage.folder(), prefix, Order::Each, (0..u64::try_from(count)?).map(request).collect())
    };
    let (plain, mentioning) = (all("plain-", &[])?, all("mentions-", &mentions)?);
    stage.postgres.checkpoint().await?;
    let sides = [stage.side("the same without mentions", &stage.server, &plain), stage.side(SEND.work, &stage.server, &mentioning)];
    let series = stage.contest(&sides).await?;
    if let [theirs, ours] = series.as_slice() {
        report.compare(SEND, ours, theirs);
    }
    report.explain(&format!(
        "**Messages with {MENTIONED} mentions** go to {GROUPS} groups with {} members, in turn, from one of them, and name all others; an answer means that the message is on disk, \
         and that it counts for each of them as a mention.",
        MENTIONED + 1,
    ));
    Ok(())
}
