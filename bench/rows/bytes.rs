//! What reading a group writes and stores, against a bitmap for each message.

use std::time::Duration;

use sqlx::PgConnection;

use crate::Result;
use crate::process::Process;
use crate::report::{Limit, Report};
use crate::stats::{float, grouped};
use crate::wire;
use crate::wire::Connection;

use super::{Stage, receipts};

/// Bytes written: members of the group, and how far each is behind.
const MEMBERS: u64 = 500;
const BEHIND: u64 = 300;
/// How often each comes back before the next checkpoint, which is every five minutes by default.
const VISITS: u64 = 3;
/// Bytes stored: members and messages.
const SMALL_MEMBERS: u64 = 200;
const MESSAGES: u64 = 1000;
const GROUP: u64 = 7_500_000_001;
/// For so long it is watched what is written when nobody reads.
const IDLE: Duration = Duration::from_secs(2);
const TIMES_FEWER: f64 = 60.0;

const DATABASE: &str = "reading";

/// A member has read all messages.
const READ_SQL: &str = "update plain_receipts set read_bits = set_bit(read_bits, $1, 1) where group_id = 1 and seq > $2 - $3 and seq <= $2";

const TABLES: &str = "select tablename::text from pg_tables where schemaname = 'public' order by 1";

/// Everything that headmark has stored.
const STORED: &str = "
    select sum(pg_total_relation_size(c.oid))::float8
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r'";

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    eprintln!("what reading a group writes");
    let stores = stage.one_more(DATABASE, "hm-reading:").await?;
    let process = Process::server(&stage.program, &stores).await?;
    stage.postgres.autovacuum(false).await?;
    let outcome = written(stage, report, &process).await;
    report.attempt("bytes that reading writes", outcome);
    let outcome = stored(stage, report, &process).await;
    report.attempt("bytes that receipts take", outcome);
    stage.postgres.autovacuum(true).await
}

async fn written(stage: &Stage, report: &mut Report, process: &Process) -> Result<()> {
    receipts::make_group(stage, process, GROUP, MEMBERS, VISITS * BEHIND).await?;
    receipts::make_plain(stage, 1, MEMBERS, VISITS * BEHIND).await?;
    // The first request of a user on each day is a write of its own.
    let members = receipts::FIRST + 1..receipts::FIRST + MEMBERS;
    stage.fill(process, members.clone().map(|member| wire::request("GET", &format!("/v1/users/{member}/badges"), &[])).collect()).await?;

    stage.postgres.checkpoint().await?;
    let before = stage.postgres.wal_bytes().await?;
    tokio::time::sleep(IDLE).await;
    let idle = (stage.postgres.wal_bytes().await? - before) / IDLE.as_secs_f64();

    stage.postgres.checkpoint().await?;
    let before = stage.postgres.wal_bytes().await?;
    let mut connection = Connection::open(process.address).await?;
    for visit in 1..=VISITS {
        for member in members.clone() {
            let status = connection.exchange(&receipts::read(member, GROUP, visit * BEHIND)).await?;
            if status != 200 {
                return Err(format!("a read is answered {status}").into());
            }
        }
    }
    let reads = float(VISITS * (MEMBERS - 1));
    let ours = (stage.postgres.wal_bytes().await? - before) / reads;

    let mut plain = stage.postgres.connect("plain").await?;
    stage.postgres.checkpoint().await?;
    let before = stage.postgres.wal_bytes().await?;
    let behind = i64::try_from(BEHIND)?;
    for visit in 1..=i64::try_from(VISITS)? {
        for ordinal in 1..i64::try_from(MEMBERS)? {
            sqlx::query(READ_SQL).bind(ordinal).bind(visit * behind).bind(behind).execute(&mut plain).await?;
        }
    }
    let theirs = (stage.postgres.wal_bytes().await? - before) / reads;

    let than = "a bitmap for each message";
    report.size("written to read 300 messages in a group of 500", ours, Limit::Fewer { times: TIMES_FEWER, than, bytes: theirs });
    report.explain(&format!(
        "**Written to read** is what Postgres's log grew by (full_page_writes on, from a checkpoint on, nothing subtracted) while {} members of a group of {MEMBERS}, one after the other, each {VISITS} times marked \
         {BEHIND} more messages as read; for each time. The plain design has a row with a bitmap of {} bytes for each message, and sets a member's bit in {BEHIND} of \
         them in one statement. While nobody reads, the log grows by {} bytes a second.",
        MEMBERS - 1,
        MEMBERS.div_ceil(8),
        grouped(idle),
    ));
    Ok(())
}

/// What all tables take, without what was written and is no longer needed.
async fn stored_bytes(conn: &mut PgConnection) -> Result<f64> {
    let tables: Vec<String> = sqlx::query_scalar(TABLES).fetch_all(&mut *conn).await?;
    for table in tables {
        sqlx::query(sqlx::AssertSqlSafe(format!("vacuum full {table}"))).execute(&mut *conn).await?;
    }
    Ok(sqlx::query_scalar(STORED).fetch_one(conn).await?)
}

async fn stored(stage: &Stage, report: &mut Report, process: &Process) -> Result<()> {
    let group = GROUP + 1;
    receipts::make_group(stage, process, group, SMALL_MEMBERS, MESSAGES).await?;
    let members = receipts::FIRST + 1..receipts::FIRST + SMALL_MEMBERS;
    stage.fill(process, members.clone().map(|member| wire::request("GET", &format!("/v1/users/{member}/badges"), &[])).collect()).await?;
    let mut conn = stage.postgres.connect(DATABASE).await?;
    let unread = stored_bytes(&mut conn).await?;
    stage.fill(process, members.map(|member| receipts::read(member, group, MESSAGES)).collect()).await?;
    let receipts = stage.ask(process, &format!("/v1/groups/{group}/messages/1/receipts")).await?.json()?;
    if receipts.get("read_count").and_then(serde_json::Value::as_u64) != Some(SMALL_MEMBERS - 1) {
        return Err(format!("not all have read: {receipts}").into());
    }
    let read = stored_bytes(&mut conn).await?;

    receipts::make_plain(stage, 1, SMALL_MEMBERS, MESSAGES).await?;
    let mut plain = stage.postgres.connect("plain").await?;
    sqlx::query("vacuum full plain_receipts").execute(&mut plain).await?;
    let bitmaps: f64 = sqlx::query_scalar("select pg_total_relation_size('plain_receipts')::float8").fetch_one(&mut plain).await?;
    let messages = float(MESSAGES);
    let limit = Limit::Fewer { times: TIMES_FEWER, than: "a bitmap for each message", bytes: bitmaps / messages };
    report.size("stored for the receipts of a message, 200 members", ((read - unread) / messages).max(0.0), limit);
    report.explain(&format!(
        "**Stored for receipts** is by how much all tables and indexes together grew (after `vacuum full`, from {} to {} bytes) when all {} members read {} messages, divided \
         by these. The plain design is a table of bitmaps of {} bytes, with its key.",
        grouped(unread),
        grouped(read),
        SMALL_MEMBERS,
        grouped(messages),
        SMALL_MEMBERS.div_ceil(8),
    ));
    Ok(())
}
