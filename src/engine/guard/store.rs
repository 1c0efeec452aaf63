//! The row of `cache_guard`, and the node lock. Everything here is Postgres: on SQLite there is one
//! node, which needs no agreement, and the texts for it only keep the statements whole.

use crate::db::{Column, Conn, DbResult, NODE_LOCK, Statement, Type};

/// In place of a Redis run: a node without Redis has the database for itself.
pub(super) const CLAIMED: &str = "alone";

/// In place of a Redis run: no node has served anything that the next one must wait for.
pub(super) const RELEASED: &str = "";

static VIEW: Statement = Statement::each(
    "select epoch, 0, 0, 0, run_id
    from {rows} r, cache_guard
    where id = 1 and node_id > 0",
    "with clock as (select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now)
    select g.epoch,
        greatest(coalesce((select max(b.bypass_until) from cache_bypasses b), 0) - c.now, 0),
        greatest(coalesce((select b.bypass_until from cache_bypasses b where b.node_id = r.node_id), 0) - c.now, 0),
        greatest(coalesce((select b.bypass_until from cache_bypasses b where b.node_id = 0), 0) - c.now, 0),
        g.run_id
    from {rows} r, clock c, cache_guard g
    where g.id = 1",
    &[("node_id", Type::Int)],
);

static EPOCH_SHARED: Statement =
    Statement::each("select epoch from cache_guard where id = 1", "select epoch from cache_guard where id = 1 for share", &[]);

/// One statement, so that anyone who sees the bypass sees the epoch, too. It also removes the rows
/// of nodes that died in a bypass of theirs.
static RAISE_AND_BYPASS: Statement = Statement::each(
    "update cache_guard set epoch = epoch + 1 where id = 1 and (select max(node_id) + max(bypass_ms) from {rows} r) >= 0",
    "with clock as (select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now),
    swept as (
        delete from cache_bypasses b
        using {rows} r, clock c
        where b.bypass_until < c.now and b.node_id <> r.node_id
    ),
    bypassed as (
        insert into cache_bypasses (node_id, bypass_until)
        select r.node_id, c.now + r.bypass_ms
        from {rows} r, clock c
        on conflict (node_id) do update
        set bypass_until = greatest(cache_bypasses.bypass_until, excluded.bypass_until)
    )
    update cache_guard
    set epoch = epoch + 1
    where id = 1",
    &[("node_id", Type::Int), ("bypass_ms", Type::Int)],
);

/// One statement, so that anyone who no longer sees the bypass is in the new epoch.
static RAISE_AND_END: Statement = Statement::each(
    "update cache_guard set epoch = epoch + 1 where id = 1 and (select max(node_id) from {rows} r) >= 0",
    "with ended as (
        delete from cache_bypasses
        where node_id in (select node_id from {rows} r)
    )
    update cache_guard
    set epoch = epoch + 1
    where id = 1",
    &[("node_id", Type::Int)],
);

static NEW_RUN: Statement = Statement::new(
    "update cache_guard
    set epoch = epoch + 1, run_id = r.run_id
    from {rows} r
    where id = 1 and cache_guard.run_id <> r.run_id",
    &[("run_id", Type::Text)],
);

/// One statement, so that anyone who sees the other run sees the bypass, too. It is nobody's own: the
/// row has the number 0.
static TAKE_OVER: Statement = Statement::each(
    "update cache_guard
    set epoch = epoch + 1, run_id = r.run_id
    from {rows} r
    where id = 1 and cache_guard.run_id = r.before and r.bypass_ms >= 0",
    "with clock as (select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) as now),
    taken as (
        update cache_guard
        set epoch = epoch + 1, run_id = r.run_id
        from {rows} r
        where id = 1 and cache_guard.run_id = r.before
        returning r.bypass_ms
    )
    insert into cache_bypasses (node_id, bypass_until)
    select 0, c.now + t.bypass_ms
    from taken t, clock c
    on conflict (node_id) do update
    set bypass_until = greatest(cache_bypasses.bypass_until, excluded.bypass_until)",
    &[("before", Type::Text), ("run_id", Type::Text), ("bypass_ms", Type::Int)],
);

static CLAIM: Statement = Statement::new(
    "update cache_guard
    set epoch = epoch + 1, run_id = r.run_id
    from {rows} r
    where id = 1",
    &[("run_id", Type::Text)],
);

static LOCK_ALONE: Statement = Statement::each(
    "select 1 from {rows} r where lock_id > 0",
    "select 1::bigint from {rows} r where pg_try_advisory_lock(lock_id)",
    &[("lock_id", Type::Int)],
);

static LOCK_SHARED: Statement = Statement::each(
    "select 1 from {rows} r where lock_id > 0",
    "select 1::bigint from {rows} r where pg_try_advisory_lock_shared(lock_id)",
    &[("lock_id", Type::Int)],
);

/// When those that hold the lock last began or ended a statement, in milliseconds; 0 where that is
/// hidden, as it is from another account.
static LOCK_HELD: Statement = Statement::each(
    "select 0 from {rows} r where lock_id > 0",
    "select cast(coalesce(max(extract(epoch from a.state_change)) * 1000, 0) as bigint)
    from {rows} r
    join pg_locks l on l.objsubid = 1 and cast(l.classid as bigint) << 32 | cast(l.objid as bigint) = r.lock_id
    join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())",
    &[("lock_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 10] {
    [&VIEW, &EPOCH_SHARED, &RAISE_AND_BYPASS, &RAISE_AND_END, &NEW_RUN, &TAKE_OVER, &CLAIM, &LOCK_ALONE, &LOCK_SHARED, &LOCK_HELD]
}

/// What the row says.
pub(super) struct View {
    pub(super) epoch: i64,
    /// How long the bypass of any node lasts from now on, by the database's clock.
    pub(super) bypass_left_ms: i64,
    /// How long that of this node lasts.
    pub(super) own_left_ms: i64,
    /// How long that lasts with which another run was taken over.
    pub(super) takeover_left_ms: i64,
    pub(super) run_id: String,
}

pub(super) async fn view(conn: &mut Conn, node: i64) -> DbResult<View> {
    let rows: Vec<(i64, i64, i64, i64, String)> = conn.fetch(&VIEW, &[Column::Int(vec![node])]).await?;
    let (epoch, bypass_left_ms, own_left_ms, takeover_left_ms, run_id) = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    Ok(View { epoch, bypass_left_ms, own_left_ms, takeover_left_ms, run_id })
}

/// The epoch, which stays what it is until this transaction ends.
pub(super) async fn epoch_shared(conn: &mut Conn) -> DbResult<Option<i64>> {
    let rows: Vec<(i64,)> = conn.fetch(&EPOCH_SHARED, &[]).await?;
    Ok(rows.first().map(|(epoch,)| *epoch))
}

/// Raises the epoch and makes this node's bypass last for so long from now on.
pub(super) async fn raise(conn: &mut Conn, node: i64, bypass_ms: i64) -> DbResult<()> {
    let raised = conn.run(&RAISE_AND_BYPASS, &[Column::Int(vec![node]), Column::Int(vec![bypass_ms])]).await?;
    if raised == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Raises the epoch and ends this node's bypass.
pub(super) async fn end(conn: &mut Conn, node: i64) -> DbResult<()> {
    let raised = conn.run(&RAISE_AND_END, &[Column::Int(vec![node])]).await?;
    if raised == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Raises the epoch if the entries were made in another run of Redis; whether it did.
pub(super) async fn new_run(conn: &mut Conn, run_id: &str) -> DbResult<bool> {
    Ok(conn.run(&NEW_RUN, &[Column::Text(vec![run_id.to_owned()])]).await? > 0)
}

/// The same where the entries were made in the run before, with a bypass for so long from now on.
pub(super) async fn take_over(conn: &mut Conn, before: &str, run_id: &str, bypass_ms: i64) -> DbResult<bool> {
    let columns = [Column::Text(vec![before.to_owned()]), Column::Text(vec![run_id.to_owned()]), Column::Int(vec![bypass_ms])];
    Ok(conn.run(&TAKE_OVER, &columns).await? > 0)
}

/// Raises the epoch and notes whose the database is: [`CLAIMED`] or [`RELEASED`].
pub(super) async fn claim(conn: &mut Conn, by: &str) -> DbResult<()> {
    let claimed = conn.run(&CLAIM, &[Column::Text(vec![by.to_owned()])]).await?;
    if claimed == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Takes the node lock for as long as this connection lives, without waiting; whether it was free.
pub(super) async fn try_lock(conn: &mut Conn, shared: bool) -> DbResult<bool> {
    let statement = if shared { &LOCK_SHARED } else { &LOCK_ALONE };
    let got: Vec<(i64,)> = conn.fetch(statement, &[Column::Int(vec![NODE_LOCK])]).await?;
    Ok(!got.is_empty())
}

/// When those that hold the node lock last did something there.
pub(super) async fn lock_seen(conn: &mut Conn) -> DbResult<Option<i64>> {
    let seen: Vec<(i64,)> = conn.fetch(&LOCK_HELD, &[Column::Int(vec![NODE_LOCK])]).await?;
    Ok(seen.first().map(|(at,)| *at).filter(|at| *at > 0))
}
