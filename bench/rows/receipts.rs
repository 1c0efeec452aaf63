//! Who has read a screenful of messages, against a bitmap for each message.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::Result;
use crate::process::Process;
use crate::report::{Goal, Report};
use crate::wire;

use super::{Stage, chats};

/// The group, its members, of whom the first one sends, and its messages.
const GROUP: u64 = 7_400_000_001;
pub(super) const FIRST: u64 = 7_400_000_001;
const MEMBERS: u64 = 500;
const MESSAGES: u64 = 300;
/// Different screenfuls of each size.
const SCREENFULS: usize = 100;

const GOALS: [(u64, Goal); 2] = [
    (20, Goal { work: "receipts of 20 messages, 500 members", at_least: Some(0.8), unit: "screenfuls" }),
    (100, Goal { work: "receipts of 100 messages, 500 members", at_least: Some(0.8), unit: "screenfuls" }),
];

/// The plain design: a bit for each member in a row for each message.
const PLAIN_TABLE: &str = "
    create table plain_receipts (
        group_id bigint not null,
        seq bigint not null,
        read_bits bytea not null,
        primary key (group_id, seq)
    ) with (fillfactor = 80)";

const COUNT_SQL: &str = "\
\\set first random(1, 301 - :messages)
\\set last :first + :messages - 1
select seq, bit_count(read_bits) from plain_receipts where group_id = 1 and seq between :first and :last order by seq;
";

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("receipts");
    make_group(stage, &stage.server, GROUP, MEMBERS, MESSAGES).await?;
    let mut rng = StdRng::seed_from_u64(500);
    // Each has read up to somewhere.
    let reads = (1..MEMBERS).map(|number| read(FIRST + number, GROUP, rng.random_range(1..=MESSAGES)));
    stage.fill(&stage.server, reads.collect()).await?;
    make_plain(stage, 1, MEMBERS, MESSAGES).await?;
    for (messages, goal) in GOALS {
        let paths = (0..SCREENFULS).map(|_| {
            let from = rng.random_range(1..=MESSAGES + 1 - messages);
            format!("/v1/groups/{GROUP}/receipts?from={from}&to={}", from + messages - 1)
        });
        let paths: Vec<String> = paths.collect();
        let answer = stage.ask(&stage.server, paths.first().ok_or("no screenfuls")?).await?;
        let there = answer.json()?.get("items").and_then(|items| Some(items.as_array()?.len()));
        if there != Some(usize::try_from(messages)?) {
            return Err(format!("a screenful of {messages} has {there:?} messages").into());
        }
        let requests = stage.gets("receipts", paths)?;
        let defines = [("messages", messages)];
        let script =
            stage.script_for(report, stage.scale.brief, "Plain receipts", &format!("receipts-{messages}.sql"), COUNT_SQL, &defines)?;
        let sides = [stage.plain("pgbench, bitmaps", script), stage.side(goal.work, &stage.server, &requests)];
        let series = stage.contest(&sides).await?;
        if let [theirs, ours] = series.as_slice() {
            report.compare(goal, ours, theirs);
        }
    }
    report.explain(&format!(
        "**Receipts** are `GET /v1/groups/{{group}}/receipts?from=…&to=…` of a group with {MEMBERS} members, each of whom has read up to somewhere in its {MESSAGES} messages. pgbench \
         counts the bits of as many rows of bitmaps, and makes no JSON of them.",
    ));
    Ok(())
}

/// A group with so many members, of whom the first one has sent so many messages.
pub(super) async fn make_group(stage: &Stage, process: &Process, group: u64, members: u64, messages: u64) -> Result<()> {
    stage.fill(process, vec![wire::request("PUT", &format!("/v1/groups/{group}"), &[])]).await?;
    let members: Vec<String> = (FIRST..FIRST + members).map(|member| member.to_string()).collect();
    let join = wire::json("POST", &format!("/v1/groups/{group}/members"), &json!({ "user_ids": members }));
    stage.fill(process, vec![join]).await?;
    stage.fill(process, (0..messages).map(|number| chats::send(group, FIRST, &format!("r{number}"))).collect()).await
}

/// A member has read a group up to this message.
pub(super) fn read(user: u64, group: u64, up_to: u64) -> Vec<u8> {
    wire::json("POST", &format!("/v1/users/{user}/groups/{group}/read"), &json!({ "up_to": up_to }))
}

/// As many messages in the plain design, all unread.
pub(super) async fn make_plain(stage: &Stage, group: i64, members: u64, messages: u64) -> Result<()> {
    let mut conn = stage.postgres.connect("plain").await?;
    sqlx::raw_sql("drop table if exists plain_receipts").execute(&mut conn).await?;
    sqlx::raw_sql(PLAIN_TABLE).execute(&mut conn).await?;
    sqlx::query(
        "insert into plain_receipts (group_id, seq, read_bits) select $1, g, decode(repeat('00', $2), 'hex') from generate_series(1, $3) g",
    )
    .bind(group)
    .bind(i32::try_from(members.div_ceil(8))?)
    .bind(i64::try_from(messages)?)
    .execute(&mut conn)
    .await?;
    sqlx::query("vacuum analyze plain_receipts").execute(&mut conn).await?;
    Ok(())
}
