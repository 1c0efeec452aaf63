//! Grouped notifications, durable when answered, against a plain upsert for each receiver.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::Result;
use crate::contest::{Side, Work};
use crate::load::{Order, Requests};
use crate::report::{Goal, Report};
use crate::wire;

use super::Stage;

/// Receivers of one notification, and the connections that send such.
const RECEIVERS: u64 = 1000;
const SENDING: usize = 16;
/// Different requests, drawn from at random.
const REQUESTS: usize = 200;
/// Who acts.
const ACTORS: u64 = 100_000;

const GOALS: [Goal; 2] = [
    Goal { work: "grouped notifications to 1000 receivers each, durable, server tier", at_least: None, unit: "receivers" },
    Goal { work: "the same, embedded tier (SQLite)", at_least: None, unit: "receivers" },
];

/// A plain design of entries: a row for each user and key, with a number and the last actor.
const PLAIN_TABLES: &str = "
    create table plain_entries (
        user_id bigint not null,
        name text not null,
        acts bigint not null,
        last_actor bigint not null,
        updated_at bigint not null,
        is_read bigint not null,
        primary key (user_id, name)
    ) with (fillfactor = 80)";

const UPSERT: &str = "\
\\set user random(1, :users)
\\set actor random(1, :actors)
insert into plain_entries (user_id, name, acts, last_actor, updated_at, is_read) values (:user, 'post:1', 1, :actor, 1, 0) \
on conflict (user_id, name) do update set acts = plain_entries.acts + 1, last_actor = excluded.last_actor, updated_at = excluded.updated_at;
";

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("notifications");
    let mut rng = StdRng::seed_from_u64(26);
    let users = stage.scale.users;
    let all = (0..REQUESTS).map(|_| wire::with_body("POST", "/v1/notifications", &[], &like(&mut rng, users))).collect();
    let requests = Requests::new(stage.folder(), "notifications", Order::Random, all)?;
    let mut conn = stage.postgres.connect("plain").await?;
    sqlx::raw_sql(PLAIN_TABLES).execute(&mut conn).await?;
    let defines = [("users", users), ("actors", ACTORS)];
    let script = stage.script_for(report, stage.scale.brief, "The plain upserts of entries", "upsert-entry.sql", UPSERT, &defines)?;
    report.explain(&format!(
        "**Grouped notifications** are likes of one post, each to {RECEIVERS} users drawn from all of them in one request, over {SENDING} connections; a rate counts \
         receivers. Each joins the receiver's unread entry, with a row by which it can be withdrawn, and an answer means that it is on disk. pgbench raises a row for each user and \
         key. That design knows neither who acted before nor what a withdrawal leaves.",
    ));
    stage.postgres.checkpoint().await?;
    let side = |name: &str, process| Side {
        name: name.to_owned(),
        work: Work::Http { process, requests: &requests, connections: SENDING, counts_for: RECEIVERS },
    };
    let sides = [
        stage.plain("pgbench, one upsert a receiver", script),
        side("notifications, server", &stage.server),
        side("notifications, embedded", &stage.embedded),
    ];
    let series = stage.contest(&sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in GOALS.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    Ok(())
}

/// A like of the post, to receivers that follow each other at equal distances.
fn like(rng: &mut StdRng, users: u64) -> String {
    let (first, step) = (rng.random_range(0..users), rng.random_range(1..=(users / RECEIVERS).max(1)));
    let mut body = format!("{{\"type\":\"like\",\"group_key\":\"post:1\",\"actor_id\":{},\"recipients\":[", rng.random_range(1..=ACTORS));
    for number in 0..RECEIVERS {
        let comma = if number == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(body, "{comma}{}", 1 + (first + number * step) % users);
    }
    body.push_str("]}");
    body
}
