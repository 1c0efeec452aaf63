//! A broadcast, and the first poll after it, with few users and with very many.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::Result;
use crate::contest::{ALONE, Side, Work};
use crate::load::{Order, Requests};
use crate::process::Process;
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire;

use super::Stage;

const FEW: u64 = 1000;
/// Users who poll, on either side.
const POLLING: usize = 500;
/// Connections that send broadcasts.
const SENDERS: usize = 8;
/// The same cost, but for what the machine does meanwhile.
const SAME: f64 = 0.9;

const SEND: Goal = Goal { work: "broadcasts, with 10^7 users", at_least: Some(SAME), unit: "broadcasts" };
const POLL: Goal = Goal { work: "broadcast and first poll after it, by turns, with 10^7 users", at_least: Some(SAME), unit: "requests" };

/// Users who were seen today. Anyone who was not would be enrolled by the first poll.
const USERS: &str = "
    insert into users (user_id, revision, enrolled, seen_day)
    select g, 1, 0, (extract(epoch from now()) / 86400)::bigint
    from generate_series(1, $1) g";

/// One side: a server whose database has so many users.
struct Crowd {
    process: Process,
    polls: Vec<Vec<u8>>,
    by_turns: Requests,
}

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    let many = stage.scale.crowd;
    eprintln!("broadcasts: {FEW} and {} users", grouped(float(many)));
    let few = crowd(stage, "few", "hm-few:", FEW).await?;
    let many_side = crowd(stage, "many", "hm-many:", many).await?;
    stage.postgres.checkpoint().await?;
    for crowd in [&few, &many_side] {
        stage.fill(&crowd.process, vec![send()]).await?;
        stage.fill(&crowd.process, crowd.polls.clone()).await?;
    }
    let sends = Requests::new(stage.folder(), "broadcasts", Order::Random, vec![send()])?;
    let side = |name: &str, process, requests, connections| Side {
        name: name.to_owned(),
        work: Work::Http { process, requests, connections, counts_for: 1 },
    };
    let sides = [
        side("the same with 10^3", &few.process, &sends, SENDERS),
        side("broadcasts, very many users", &many_side.process, &sends, SENDERS),
        side("the same with 10^3", &few.process, &few.by_turns, ALONE),
        side("by turns with polls, very many users", &many_side.process, &many_side.by_turns, ALONE),
    ];
    let series = stage.contest(&sides).await?;
    if let [few_sends, many_sends, few_polls, many_polls] = series.as_slice() {
        report.compare(SEND, many_sends, few_sends);
        report.compare(POLL, many_polls, few_polls);
    }
    report.explain(&format!(
        "**Broadcasts** are `POST /v1/broadcasts/{{channel}}` over {SENDERS} connections, to servers of the server tier that differ in their databases alone: one has {} users, all \
         seen today, the other {}. **By turns with polls** one connection sends a broadcast, then one of {POLLING} users (drawn from all) polls, for whom it is the first poll \
         after that broadcast; each of them was polled once before.",
        grouped(float(many)),
        grouped(float(FEW)),
    ));
    Ok(())
}

fn send() -> Vec<u8> {
    wire::json("POST", "/v1/broadcasts/system", &json!({ "title": "Maintenance tonight" }))
}

async fn crowd(stage: &Stage, database: &'static str, prefix: &'static str, users: u64) -> Result<Crowd> {
    let stores = stage.one_more(database, prefix).await?;
    let mut conn = stage.postgres.connect(database).await?;
    sqlx::query(USERS).bind(i64::try_from(users)?).execute(&mut conn).await?;
    sqlx::query("vacuum analyze users").execute(&mut conn).await?;
    let process = Process::server(&stage.program, &stores).await?;
    let mut rng = StdRng::seed_from_u64(10_000_000);
    let poll = |user: u64| wire::request("GET", &format!("/v1/users/{user}/badges"), &[]);
    let polls: Vec<Vec<u8>> = (0..POLLING).map(|_| poll(rng.random_range(1..=users))).collect();
    let by_turns = polls.iter().flat_map(|poll| [send(), poll.clone()]).collect();
    let by_turns = Requests::new(stage.folder(), database, Order::Each, by_turns)?;
    Ok(Crowd { process, polls, by_turns })
}
