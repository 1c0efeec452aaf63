//! Exports follows and open requests as CSV that an import takes, batch after batch in the order of
//! the keys, so in bounded memory and without a long transaction. A request that is accepted
//! meanwhile may be in it as a request and as a follow; an import makes it a follow.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::distributed;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// How many follows are read at once.
const BATCH: i64 = 10_000;

const PAGE: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int), ("max_rows", Type::Int)];

static ALL: Statement = Statement::one(
    "select follower_id, followee_id, since, secret, special
    from following
    where (follower_id, followee_id) > ($1, $2)
    order by follower_id, followee_id
    limit $3",
    PAGE,
);

static OF_FOLLOWER: Statement = Statement::one(
    "select follower_id, followee_id, since, secret, special
    from following
    where follower_id = $1 and followee_id > $2
    order by followee_id
    limit $3",
    PAGE,
);

static OF_FOLLOWEE: Statement = Statement::one(
    "select u.follower_id, u.followee_id, u.since, u.secret,
        coalesce((select f.special from following f where f.follower_id = u.follower_id and f.followee_id = u.followee_id), 0)
    from (
        select a.follower_id, a.followee_id, a.since, a.secret from (
            select f.follower_id, f.followee_id, f.since, cast(0 as bigint) as secret
            from followers f
            where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
            order by f.since, f.follower_id
            limit $4
        ) a
        union all
        select s.follower_id, s.followee_id, s.since, s.secret from (
            select f.follower_id, f.followee_id, f.since, cast(1 as bigint) as secret
            from secret_followers f
            where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
            order by f.since, f.follower_id
            limit $4
        ) s
    ) u
    order by u.since, u.follower_id
    limit $4",
    &[("followee_id", Type::Int), ("since", Type::Int), ("follower_id", Type::Int), ("max_rows", Type::Int)],
)
.distributed(distributed::OF_FOLLOWEE);

static ALL_REQUESTS: Statement = Statement::one(
    "select follower_id, followee_id, since, secret, special
    from sent_requests
    where (follower_id, followee_id) > ($1, $2)
    order by follower_id, followee_id
    limit $3",
    PAGE,
);

static REQUESTS_OF_FOLLOWER: Statement = Statement::one(
    "select follower_id, followee_id, since, secret, special
    from sent_requests
    where follower_id = $1 and followee_id > $2
    order by followee_id
    limit $3",
    PAGE,
);

static REQUESTS_OF_FOLLOWEE: Statement = Statement::one(
    "select u.follower_id, u.followee_id, u.since,
        coalesce((select s.secret from sent_requests s where s.follower_id = u.follower_id and s.followee_id = u.followee_id), 0),
        coalesce((select s.special from sent_requests s where s.follower_id = u.follower_id and s.followee_id = u.followee_id), 0)
    from follow_requests u
    where u.followee_id = $1 and (u.since, u.follower_id) > ($2, $3)
    order by u.since, u.follower_id
    limit $4",
    &[("followee_id", Type::Int), ("since", Type::Int), ("follower_id", Type::Int), ("max_rows", Type::Int)],
)
.distributed(distributed::REQUESTS_OF_FOLLOWEE);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 6] {
    [&ALL, &OF_FOLLOWER, &OF_FOLLOWEE, &ALL_REQUESTS, &REQUESTS_OF_FOLLOWER, &REQUESTS_OF_FOLLOWEE]
}

/// Why an export ended early.
#[derive(Debug)]
pub enum ExportError {
    Read(sqlx::Error),
    /// Where it is written to; a reader that went away among others.
    Write(io::Error),
}

impl From<sqlx::Error> for ExportError {
    fn from(error: sqlx::Error) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// A follow: who, whom, since when, whether it is secret, and whether special.
type Row = (i64, i64, i64, i64, i64);

/// Writes all follows and requests; with a user, those of this user in both directions.
///
/// # Errors
/// When the database cannot be read, or nothing more be written.
pub async fn run(db: &Db, user: Option<UserId>, out: &mut impl Write) -> Result<(), ExportError> {
    let mut conn = db.connect_patient().await?;
    out.write_all(b"follower,followee,timestamp,visibility,special,requested\n")?;
    // Requests first: one that is accepted meanwhile is then at least in one of the two.
    for (requested, all, of_follower, of_followee) in
        [(true, &ALL_REQUESTS, &REQUESTS_OF_FOLLOWER, &REQUESTS_OF_FOLLOWEE), (false, &ALL, &OF_FOLLOWER, &OF_FOLLOWEE)]
    {
        let Some(user) = user.map(UserId::get) else {
            let key = |after: Option<Row>| after.map_or(vec![0, 0], |(follower, followee, ..)| vec![follower, followee]);
            walk(&mut conn, out, all, requested, key).await?;
            continue;
        };
        walk(&mut conn, out, of_follower, requested, |after| vec![user, after.map_or(0, |(_, followee, ..)| followee)]).await?;
        walk(&mut conn, out, of_followee, requested, |after| {
            let (follower, _, since, ..) = after.unwrap_or((0, 0, i64::MIN, 0, 0));
            vec![user, since, follower]
        })
        .await?;
    }
    Ok(())
}

/// Writes what a statement gives, whose parameters say after which row.
async fn walk(
    conn: &mut Conn,
    out: &mut impl Write,
    statement: &'static Statement,
    requested: bool,
    after: impl Fn(Option<Row>) -> Vec<i64>,
) -> Result<(), ExportError> {
    let mut last = None;
    let mut text = String::new();
    loop {
        let rows = read(conn, statement, after(last)).await?;
        text.clear();
        for (follower, followee, since, secret, special) in &rows {
            let visibility = if *secret == 1 { "secret" } else { "public" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{follower},{followee},{},{visibility},{},{requested}", UnixMs(*since), *special == 1);
        }
        out.write_all(text.as_bytes())?;
        last = rows.last().copied();
        if last.is_none() {
            return Ok(());
        }
    }
}

async fn read(conn: &mut Conn, statement: &'static Statement, mut parameters: Vec<i64>) -> DbResult<Vec<Row>> {
    parameters.push(BATCH);
    conn.fetch(statement, &parameters.into_iter().map(|value| Column::Int(vec![value])).collect::<Vec<_>>()).await
}
