//! Increments, durable when answered, against one-row upserts on the same Postgres.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::Result;
use crate::contest;
use crate::contest::{Side, Work};
use crate::load::{Order, Requests};
use crate::report::{Goal, Report};
use crate::wire;

use super::Stage;

/// Increments in one batch, and the connections that send such: as many as keep all lanes at work.
const BATCH: u64 = 1000;
const BATCH_CONNECTIONS: usize = 16;
/// Different requests, drawn from at random.
const SINGLES: usize = 100_000;
const BATCHES: usize = 200;

const UPSERT: &str = "\
\\set user random(1, :users)
insert into plain_counters (user_id, name, head) values (:user, 'mention', 1) \
on conflict (user_id, name) do update set head = plain_counters.head + 1;
";

const GOALS: [Goal; 4] = [
    Goal { work: "increments, one a request, durable, server tier", at_least: Some(2.0), unit: "increments" },
    Goal { work: "increments in batches of 1000, durable, server tier", at_least: Some(5.0), unit: "increments" },
    Goal { work: "for information: one a request, embedded tier (SQLite)", at_least: None, unit: "increments" },
    Goal { work: "for information: batches of 1000, embedded tier (SQLite)", at_least: None, unit: "increments" },
];

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(7);
    let users = stage.scale.users;
    let singles = (0..SINGLES)
        .map(|_| {
            let user = rng.random_range(1..=users);
            wire::with_body("POST", &format!("/v1/users/{user}/badges/mention/increment"), &[], "{\"by\":1}")
        })
        .collect();
    let singles = Requests::new(stage.folder(), "increments", Order::Random, singles)?;
    let batches = (0..BATCHES).map(|_| wire::with_body("POST", "/v1/badges/increment", &[], &batch(&mut rng, users))).collect();
    let batches = Requests::new(stage.folder(), "increment-batches", Order::Random, batches)?;
    let script = stage.script(report, "The plain upserts", "upsert.sql", UPSERT, &[("users", users)])?;
    report.explain(&format!(
        "**Increments** go to users drawn from all of them, {} connections on either side, each sending again when it is answered; an answer means that \
         the increment is on disk. pgbench raises a row of a table of the same size (user, name, head; as many rows) in the same Postgres. Batches \
         are sent over {BATCH_CONNECTIONS} connections, 1000 users each, all or nothing; they are compared with the same one-row upserts.",
        stage.scale.connections
    ));

    eprintln!("increments");
    stage.postgres.checkpoint().await?;
    let side = |name: &str, process, requests, connections, counts_for| Side {
        name: name.to_owned(),
        work: Work::Http { process, requests, connections, counts_for },
    };
    let connections = stage.scale.connections;
    let upserts = Side { name: "pgbench, one-row upserts".to_owned(), work: Work::Pgbench { pgbench: &stage.postgres.pgbench, script } };
    let sides = [
        upserts,
        side("increments, server", &stage.server, &singles, connections, 1),
        side("batches, server", &stage.server, &batches, BATCH_CONNECTIONS, BATCH),
        side("increments, embedded", &stage.embedded, &singles, connections, 1),
        side("batches, embedded", &stage.embedded, &batches, BATCH_CONNECTIONS, BATCH),
    ];
    let series = contest::run(&stage.client, stage.scale.rounds, &sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in GOALS.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    Ok(())
}

fn batch(rng: &mut StdRng, users: u64) -> String {
    let mut body = String::from("{\"items\":[");
    for number in 0..BATCH {
        let comma = if number == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(body, "{comma}{{\"user_id\":{},\"badge\":\"mention\"}}", rng.random_range(1..=users));
    }
    body.push_str("]}");
    body
}
