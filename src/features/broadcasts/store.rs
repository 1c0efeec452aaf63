//! The rows of `notices`.

use std::sync::Arc;

use super::{Notice, NoticeKey};
use crate::base::clock::UnixMs;
use crate::base::ids::Name;
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};

static LOAD: Statement = Statement::new(
    "select n.channel, n.seq, n.position, n.content, n.created_at, n.expires_at, n.withdrawn, n.changed
    from {rows} r
    join notices n on n.channel = r.channel and n.seq = r.seq",
    &[("channel", Type::Text), ("seq", Type::Int)],
);

static SAVE: Statement = Statement::new(
    "insert into notices (channel, seq, position, content, created_at, expires_at, withdrawn, changed)
    select channel, seq, position, content, created_at, expires_at, withdrawn, changed
    from {rows} r
    where true
    on conflict (channel, seq) do update set
        withdrawn = excluded.withdrawn,
        changed = excluded.changed",
    &[
        ("channel", Type::Text),
        ("seq", Type::Int),
        ("position", Type::Int),
        ("content", Type::Content),
        ("created_at", Type::Int),
        ("expires_at", Type::Int),
        ("withdrawn", Type::Int),
        ("changed", Type::Int),
    ],
);

/// Those that are there now, newest first; what was deleted together with the channel is not.
static PAGE: Statement = Statement::one(
    "select n.channel, n.seq, n.position, n.content, n.created_at, n.expires_at, n.withdrawn, n.changed
    from notices n
    where n.channel = $1 and n.seq < $2
        and n.seq > coalesce((select h.floor from heads h where h.owner_id = 0 and h.kind = 2 and h.name = $1), 0) and n.withdrawn = 0 and (n.expires_at = 0 or n.expires_at > $3)
    order by n.seq desc
    limit $4",
    &[("channel", Type::Text), ("seq", Type::Int), ("now", Type::Int), ("max_rows", Type::Int)],
);

static LAST_EXPIRED: Statement = Statement::one(
    "select n.expires_at
    from notices n
    where n.expires_at > 0 and n.expires_at > $1 and n.expires_at <= $2 and n.withdrawn = 0
    order by n.expires_at desc
    limit 1",
    &[("after", Type::Int), ("up_to", Type::Int)],
);

/// Some rows of what was deleted together with a channel.
static DELETED: Statement = Statement::one(
    "select n.channel, n.seq
    from heads h
    join notices n on n.channel = h.name and n.seq <= h.floor
    where h.owner_id = 0 and h.kind = 2 and h.floor > 0
    limit $1",
    &[("max_rows", Type::Int)],
);

static REMOVE: Statement = Statement::new(
    "delete from notices
    where (channel, seq) in (select channel, seq from {rows} r)",
    &[("channel", Type::Text), ("seq", Type::Int)],
);

/// How many rows one sweep removes.
const SWEEP_ROWS: i64 = 1000;

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 6] {
    [&LOAD, &SAVE, &PAGE, &LAST_EXPIRED, &DELETED, &REMOVE]
}

/// Removes some rows of what was deleted together with a channel; returns how many. Call again while
/// it returns any. No position up to a deletion is ever used again, so no lock is needed.
pub async fn sweep(db: &Db) -> DbResult<u64> {
    let rows: Vec<(String, i64)> = db.fetch(&DELETED, &[Column::Int(vec![SWEEP_ROWS])]).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let (channels, seqs) = rows.into_iter().unzip();
    db.run(&REMOVE, &[Column::Text(channels), Column::Int(seqs)]).await
}

/// When the last broadcast expired after one time and up to another; None where none did.
pub async fn last_expired(db: &Db, after: UnixMs, up_to: UnixMs) -> DbResult<Option<UnixMs>> {
    let rows: Vec<(i64,)> = db.fetch(&LAST_EXPIRED, &[after.0, up_to.0].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.first().map(|(at,)| UnixMs(*at)))
}

/// A row of `notices` as the statements return it.
type Row = (String, i64, i64, String, i64, i64, i64, i64);

fn notice_of_row((channel, seq, position, content, created_at, expires_at, withdrawn, changed): Row) -> (NoticeKey, Notice) {
    let key = NoticeKey { channel: channel.into(), seq };
    let (created_at, expires_at, content) = (UnixMs(created_at), UnixMs(expires_at), Arc::from(content));
    (key, Notice { position, content, created_at, expires_at, withdrawn: withdrawn == 1, changed })
}

/// Loads these notices; the missing ones are left out.
pub async fn load(pipeline: &Pipeline, keys: &[NoticeKey]) -> DbResult<Vec<(NoticeKey, Option<Notice>)>> {
    let columns =
        [Column::Text(keys.iter().map(|key| (*key.channel).to_owned()).collect()), Column::Int(keys.iter().map(|key| key.seq).collect())];
    let rows: Vec<Row> = pipeline.fetch(&LOAD, columns).await?;
    Ok(rows.into_iter().map(notice_of_row).map(|(key, notice)| (key, Some(notice))).collect())
}

/// Writes these notices.
pub async fn save(conn: &mut Conn, notices: &[(&NoticeKey, &Notice)]) -> DbResult<()> {
    let column = |value: fn(&Notice) -> i64| Column::Int(notices.iter().map(|(_, notice)| value(notice)).collect());
    let columns = [
        Column::Text(notices.iter().map(|(key, _)| (*key.channel).to_owned()).collect()),
        Column::Int(notices.iter().map(|(key, _)| key.seq).collect()),
        column(|notice| notice.position),
        Column::Text(notices.iter().map(|(_, notice)| (*notice.content).to_owned()).collect()),
        column(|notice| notice.created_at.0),
        column(|notice| notice.expires_at.0),
        column(|notice| i64::from(notice.withdrawn)),
        column(|notice| notice.changed),
    ];
    conn.later(&SAVE, &columns).await
}

/// Up to `limit` notices of a channel that are there now and stand below this seq, newest first.
pub async fn page(db: &Db, channel: &Name, below: i64, now: UnixMs, limit: i64) -> DbResult<Vec<(i64, Notice)>> {
    let columns =
        [Column::Text(vec![channel.as_str().to_owned()]), Column::Int(vec![below]), Column::Int(vec![now.0]), Column::Int(vec![limit])];
    let rows: Vec<Row> = db.fetch(&PAGE, &columns).await?;
    Ok(rows.into_iter().map(notice_of_row).map(|(key, notice)| (key.seq, notice)).collect())
}
