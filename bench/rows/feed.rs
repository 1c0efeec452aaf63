//! Polls of the feed, against one MGET of as many keys as the user follows creators; and what such
//! lists take.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::Result;
use crate::peers::{self, Peer};
use crate::process::Process;
use crate::report::{Goal, Limit, Report};
use crate::stats::float;
use crate::wire;

use super::{Stage, memory};

/// Users who poll, of each number of followees.
const POLLING: u64 = 4;
/// Their ids: these and the next ones, and as many further on for the other number.
const FIRST: u64 = 7_100_000_001;
const FOLLOWEES: [u32; 2] = [300, 3000];
const MOST_BYTES: f64 = 12.0;

const GOALS: [[Goal; 2]; 2] = [
    [
        Goal { work: "poll of the feed, 300 followees, server tier", at_least: Some(3.0), unit: "polls" },
        Goal { work: "for information: the same without Redis, embedded tier", at_least: None, unit: "polls" },
    ],
    [
        Goal { work: "poll of the feed, 3000 followees, server tier", at_least: Some(3.0), unit: "polls" },
        Goal { work: "for information: the same without Redis, embedded tier", at_least: None, unit: "polls" },
    ],
];

/// Those who follow so many.
fn polling(place: u64) -> Vec<u64> {
    (0..POLLING).map(|number| FIRST + place * POLLING + number).collect()
}

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("the feed");
    let most = FOLLOWEES.into_iter().max().unwrap_or(0);
    let mut rng = StdRng::seed_from_u64(300);
    let creators: Vec<u64> = (0..most).map(|_| rng.random_range(1 << 61..1 << 62)).collect();
    for process in [&stage.embedded, &stage.server] {
        fill(stage, process, &creators).await?;
    }
    peers::fill_values(&stage.redis, most).await?;
    for ((place, followees), goals) in (0..).zip(FOLLOWEES).zip(GOALS) {
        one(stage, report, (place, followees), goals).await?;
    }
    report.explain(
        "**Polls of the feed** are `GET /v1/users/{user}/badges?include=feed` of users who follow 300 or 3000 creators, each of whom has posted since. The server tier reads \
         the user's entry from Redis and counts in memory, the embedded tier counts alone. The route that they are compared with sends one MGET of as many keys (short \
         ones, made into a command ahead) over a connection that all requests share, does not look into the values, and gives the same bytes.",
    );
    report.explain(
        "**A followee in a list** is weighed with creators whose ids are drawn from 2^61 to 2^62, the longest that there are; the stored one is the row of the user's last \
         look at the feed, the one in Redis is `MEMORY USAGE` of the list that nodes share.",
    );
    Ok(())
}

/// Follows, two posts each, a look, one more post each.
async fn fill(stage: &Stage, process: &Process, creators: &[u64]) -> Result<()> {
    let mut follows = Vec::new();
    for (place, followees) in (0..).zip(FOLLOWEES) {
        for creator in creators.iter().take(usize::try_from(followees)?) {
            follows.extend(polling(place).iter().map(|user| wire::request("PUT", &format!("/v1/users/{user}/following/{creator}"), &[])));
        }
    }
    stage.fill(process, follows).await?;
    let posts =
        |post: &str| creators.iter().map(|creator| wire::request("PUT", &format!("/v1/users/{creator}/posts/{post}"), &[])).collect();
    stage.fill(process, posts("a")).await?;
    stage.fill(process, posts("b")).await?;
    let users = [polling(0), polling(1)].concat();
    stage.fill(process, users.iter().map(|user| wire::request("POST", &format!("/v1/users/{user}/feed/reset"), &[])).collect()).await?;
    stage.fill(process, posts("c")).await
}

async fn one(stage: &Stage, report: &mut Report, (place, followees): (u64, u32), goals: [Goal; 2]) -> Result<()> {
    let users = polling(place);
    let paths: Vec<String> = users.iter().map(|user| format!("/v1/users/{user}/badges?include=feed")).collect();
    let mut answer = None;
    for process in [&stage.embedded, &stage.server] {
        for path in &paths {
            let told = stage.ask(process, path).await?;
            let unread = told.json()?.pointer("/feed/unread").and_then(serde_json::Value::as_u64);
            if unread != Some(u64::from(followees)) {
                return Err(format!("of {followees} posts {unread:?} are unread").into());
            }
            answer = Some(told);
        }
    }
    let answer = answer.ok_or("nobody polls")?;
    weigh(stage, report, &users, followees).await?;
    let mget = peers::start_reading(Peer::Mget, followees, &answer, &stage.redis, stage.folder()).await?;
    let requests = stage.gets(&format!("feed-{followees}"), paths)?;
    let sides = [
        stage.side(&format!("one MGET of {followees} keys"), &mget, &requests),
        stage.side(&format!("feed, {followees} followees, server"), &stage.server, &requests),
        stage.side(&format!("feed, {followees} followees, embedded"), &stage.embedded, &requests),
    ];
    let series = stage.contest(&sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in goals.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    Ok(())
}

/// What a followee takes in the lists of those who have just polled.
async fn weigh(stage: &Stage, report: &mut Report, users: &[u64], followees: u32) -> Result<()> {
    let users: Vec<i64> = users.iter().map(|user| i64::try_from(*user)).collect::<std::result::Result<_, _>>()?;
    let mut conn = stage.postgres.connect("headmark").await?;
    let stored: Option<f64> = sqlx::query_scalar("select avg(length(data))::float8 from feed_snapshots where user_id = any($1)")
        .bind(&users)
        .fetch_one(&mut conn)
        .await?;
    let stored = stored.ok_or("nobody has looked at the feed")?;
    let users: Vec<u64> = users.iter().map(|user| u64::try_from(*user)).collect::<std::result::Result<_, _>>()?;
    let in_redis = memory::of_feeds(&stage.redis, &users).await?;
    let count = float(u64::from(followees));
    report.size(&format!("a followee in a snapshot, of {followees}"), stored / count, Limit::AtMost(MOST_BYTES));
    report.size(&format!("a followee in a list in Redis, of {followees}"), in_redis / count, Limit::AtMost(MOST_BYTES));
    Ok(())
}
