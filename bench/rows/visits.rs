//! First polls of a visit: of users whose entries have ended, so that they are read from SQL.

use crate::Result;
use crate::load::{Order, Requests};
use crate::process::Process;
use crate::report::{Goal, Report};
use crate::wire;

use super::Stage;

/// How many users come, at most: enough for all turns, so that none comes twice.
const VISITORS: u64 = 400_000;

const GOALS: [Goal; 2] = [
    Goal { work: "for information: first poll of a visit, embedded tier", at_least: None, unit: "polls" },
    Goal { work: "for information: first poll of a visit, server tier", at_least: None, unit: "polls" },
];

/// Against the bare route that answers all polls.
pub(super) async fn run(stage: &Stage, report: &mut Report, bare: &Process) -> Result<()> {
    eprintln!("first polls");
    let polls = (1..=VISITORS.min(stage.scale.users)).map(|user| wire::request("GET", &format!("/v1/users/{user}/badges"), &[])).collect();
    let polls = Requests::new(stage.folder(), "visits", Order::Each, polls)?;
    let sides = [
        stage.side("a bare axum route", bare, &polls),
        stage.side("first poll, embedded", &stage.embedded, &polls),
        stage.side("first poll, server", &stage.server, &polls),
    ];
    let series = stage.contest(&sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in GOALS.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    report.explain(
        "**First polls of a visit** are of users whom no cache has, each once. On the server tier such a poll asks Redis three times, reads seven tables and \
         fills the cache; the CPU is the node's alone.",
    );
    Ok(())
}
