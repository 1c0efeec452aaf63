//! Many in one request: the unread summaries of five hundred users.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::Result;
use crate::contest::{Side, Work};
use crate::data;
use crate::load::{Order, Requests};
use crate::peers::{self, Peer};
use crate::report::{Goal, Report};
use crate::wire;

use super::Stage;

/// Users of one query of unread summaries, and different queries.
const SHEETS: usize = 500;
const QUERIES: usize = 20;
/// Connections that send queries.
const QUERY_CONNECTIONS: usize = 8;

const QUERY: [Goal; 2] = [
    Goal { work: "summaries of 500 users in one query, embedded tier", at_least: None, unit: "summaries" },
    Goal { work: "summaries of 500 users in one query, server tier", at_least: None, unit: "summaries" },
];

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("queries of summaries");
    let mut users = data::working_set(stage.scale.users, stage.scale.polling);
    users.sort_unstable();
    users.dedup();
    let count = users.len().min(SHEETS);
    let mut rng = StdRng::seed_from_u64(500);
    let queries: Vec<Vec<u8>> = (0..QUERIES)
        .map(|_| {
            let from = rng.random_range(0..users.len().max(1));
            let ids: Vec<String> = users.iter().cycle().skip(from).take(count).map(ToString::to_string).collect();
            wire::json("POST", "/v1/badges/query", &json!({ "user_ids": ids }))
        })
        .collect();
    let first = queries.first().ok_or("no queries")?;
    let answer = wire::ask_once(stage.embedded.address, first).await?;
    if answer.status != 200 {
        return Err(format!("a query is answered {}", answer.status).into());
    }
    let bare = peers::start(Peer::Bare, &answer, &stage.redis, stage.folder()).await?;
    let requests = Requests::new(stage.folder(), "queries", Order::Random, queries)?;
    let counts_for = u64::try_from(count)?;
    let side = |name: &str, process| Side {
        name: name.to_owned(),
        work: Work::Http { process, requests: &requests, connections: QUERY_CONNECTIONS, counts_for },
    };
    let sides: [Side<'_>; 3] =
        [side("a bare axum route", &bare), side("500 summaries, embedded", &stage.embedded), side("500 summaries, server", &stage.server)];
    let series = stage.contest(&sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in QUERY.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    report.explain(&format!(
        "**Queries of summaries** are `POST /v1/badges/query` for {count} users, over {QUERY_CONNECTIONS} connections; rates and CPU are for each summary. The bare route gives the same {} bytes.",
        answer.body.len(),
    ));
    Ok(())
}
