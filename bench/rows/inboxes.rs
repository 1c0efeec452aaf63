//! Fan-out into the inboxes of a large group, and reading these.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::Result;
use crate::contest::Series;
use crate::pgbench::{Script, Until};
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire;

use super::{Stage, chats};

/// The group, and its first member.
const GROUP: u64 = 7_300_000_001;
const FIRST: u64 = 7_300_000_001;
/// Messages, and with that rows in each inbox.
const MESSAGES: u64 = 20;
/// Members that join at once.
const JOINS: u64 = 1000;
/// Members whose inboxes are read.
const READING: usize = 500;
/// How long fan-out may stand still.
const MAX_STILL: Duration = Duration::from_secs(20);

const FAN_OUT: Goal = Goal { work: "fan-out of a group's messages into inboxes", at_least: Some(1.0), unit: "rows" };
const READ: Goal = Goal { work: "reads of an inbox, 20 rows", at_least: None, unit: "reads" };

/// A plain design of inboxes: a number for each user, a row for each message.
const PLAIN_TABLES: &str = "
    create table plain_inbox_heads (user_id bigint not null primary key, seq bigint not null) with (fillfactor = 80);
    create table plain_inbox (
        user_id bigint not null,
        seq bigint not null,
        message_id bigint not null,
        put_at bigint not null,
        primary key (user_id, seq)
    );
    create table plain_inbox_messages (message_id bigserial primary key, sender_id bigint not null, content text not null, sent_at bigint not null)";

/// All members in one transaction, which locks all their rows.
const FAN_OUT_SQL: &str = "\
with message as (
    insert into plain_inbox_messages (sender_id, content, sent_at) values (1, 'Lunch at one?', 1) returning message_id
), heads as (
    update plain_inbox_heads set seq = seq + 1 returning user_id, seq
)
insert into plain_inbox (user_id, seq, message_id, put_at) select h.user_id, h.seq, m.message_id, 1 from heads h, message m;
";

const READ_SQL: &str = "\
\\set user random(1, :members)
select i.seq, i.message_id, i.put_at, m.sender_id, m.content, m.sent_at from plain_inbox i join plain_inbox_messages m on m.message_id = i.message_id \
where i.user_id = :user and i.seq > 0 order by i.seq limit 21;
";

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("inboxes");
    let members = stage.scale.members;
    let put = wire::json("PUT", &format!("/v1/groups/{GROUP}"), &json!({ "delivery": "write" }));
    stage.fill(&stage.server, vec![put]).await?;
    for first in (0..members).step_by(usize::try_from(JOINS)?) {
        let some: Vec<String> = (first..members.min(first + JOINS)).map(|number| (FIRST + number).to_string()).collect();
        let join = wire::json("POST", &format!("/v1/groups/{GROUP}/members"), &json!({ "user_ids": some }));
        stage.fill(&stage.server, vec![join]).await?;
    }
    let mut conn = stage.postgres.connect("plain").await?;
    sqlx::raw_sql(PLAIN_TABLES).execute(&mut conn).await?;
    sqlx::query("insert into plain_inbox_heads (user_id, seq) select g, 0 from generate_series(1, $1) g")
        .bind(i64::try_from(members)?)
        .execute(&mut conn)
        .await?;
    sqlx::query("vacuum analyze plain_inbox_heads").execute(&mut conn).await?;
    stage.postgres.checkpoint().await?;
    fan_out(stage, report).await?;
    sqlx::query("vacuum analyze plain_inbox").execute(&mut conn).await?;
    reads(stage, report).await
}

/// How many rows of inboxes the server has written so far.
async fn rows(stage: &Stage) -> Result<u64> {
    let text = String::from_utf8(stage.ask(&stage.server, "/metrics").await?.body)?;
    let rows: Option<f64> = text.lines().find_map(|line| line.strip_prefix("headmark_fan_out_rows_total ")?.trim().parse().ok());
    // Not there before the first row.
    let rows = rows.unwrap_or(0.0);
    Ok(format!("{rows:.0}").parse()?)
}

async fn fan_out(stage: &Stage, report: &mut Report) -> Result<()> {
    let members = stage.scale.members;
    let expected = members * MESSAGES;
    let before = rows(stage).await?;
    let (begun, before_s) = (Instant::now(), stage.server.cpu_s());
    stage.fill(&stage.server, (0..MESSAGES).map(|number| chats::send(GROUP, FIRST, &format!("w{number}"))).collect()).await?;
    let sent = begun.elapsed();
    let (mut written, mut moved) = (0, Instant::now());
    while written < expected {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = rows(stage).await? - before;
        if now > written {
            (written, moved) = (now, Instant::now());
        } else if moved.elapsed() > MAX_STILL {
            return Err(format!("fan-out stands still at {written} of {expected} rows").into());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_s = stage.server.cpu_s().zip(before_s).map(|(after_s, before_s)| after_s - before_s);
    let ours = Series::once("fan-out", expected, seconds, cpu_s);
    let file = stage.folder().join("fan-out.sql");
    std::fs::write(&file, FAN_OUT_SQL)?;
    report.command(
        "The plain fan-out",
        format!("pgbench -n -M prepared -c 1 -t {MESSAGES} -f fan-out.sql DATABASE\n\n{}", FAN_OUT_SQL.trim()),
    );
    let script = Script { file, clients: 1, defines: Vec::new() };
    let plain = stage.postgres.pgbench.run(&script, Until::Done(usize::try_from(MESSAGES)?)).await?;
    report.compare(FAN_OUT, &ours, &Series::once("pgbench, plain fan-out", expected, plain.seconds, None));
    report.explain(&format!(
        "**Fan-out** puts {MESSAGES} messages of a `write` group with {} members into their inboxes: from the first send to the last row, {seconds:.2} s, of which the sends took {:.2} s. CPU is \
         for each row. The plain design is one statement for each message, by one client, which numbers and writes the rows of all members, and keeps their rows locked until it \
         commits; ours goes in bounded steps beside the other writes.",
        grouped(float(members)),
        sent.as_secs_f64(),
    ));
    Ok(())
}

async fn reads(stage: &Stage, report: &mut Report) -> Result<()> {
    let members = stage.scale.members;
    let mut rng = StdRng::seed_from_u64(20);
    let paths: Vec<String> =
        (0..READING).map(|_| format!("/v1/users/{}/inbox?after=0&limit={MESSAGES}", FIRST + rng.random_range(0..members))).collect();
    let answer = stage.ask(&stage.server, paths.first().ok_or("nobody reads")?).await?;
    let there = answer.json()?.get("items").and_then(|items| Some(items.as_array()?.len()));
    if there != Some(usize::try_from(MESSAGES)?) {
        return Err(format!("an inbox has {there:?} rows").into());
    }
    // The first request of a user on each day is a write.
    stage.fill(&stage.server, paths.iter().map(|path| wire::request("GET", path, &[])).collect()).await?;
    let requests = stage.gets("inboxes", paths)?;
    let script = stage.script_for(report, stage.scale.brief, "A plain inbox", "inbox.sql", READ_SQL, &[("members", members)])?;
    let sides = [stage.plain("pgbench, plain inboxes", script), stage.side("inboxes", &stage.server, &requests)];
    let series = stage.contest(&sides).await?;
    if let [theirs, ours] = series.as_slice() {
        report.compare(READ, ours, theirs);
    }
    report.explain(&format!(
        "**Reads of an inbox** are `GET /v1/users/{{user}}/inbox?after=0&limit=20` for {READING} members of that group; pgbench joins 21 rows with their messages and makes no \
         JSON of them.",
    ));
    Ok(())
}
