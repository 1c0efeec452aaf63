//! Databases, and data at size in them: written straight into the tables, as a million users
//! through the front door would take long. What here knows the tables of headmark must follow its
//! migrations.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection};

use crate::Result;
use crate::pgbench::Pgbench;

/// The badges of every user, in the order of their names.
pub(crate) const BADGES: [&str; 4] = ["comment", "dm", "like", "mention"];
/// The revision of every user.
const REVISION: i64 = 918;
/// Users written in one transaction.
const CHUNK: u64 = 100_000;

/// The private Postgres of this run.
#[derive(Debug)]
pub(crate) struct Postgres {
    options: PgConnectOptions,
    /// Where headmark keeps its data.
    pub(crate) url: String,
    pub(crate) version: String,
    pub(crate) pgbench: Pgbench,
}

/// A plain design of the counters: a row for each, raised by an upsert.
const PLAIN_COUNTERS: &str = "
    create table plain_counters (
        user_id bigint not null,
        name text not null,
        head bigint not null,
        primary key (user_id, name)
    ) with (fillfactor = 80)";

/// A plain design of relations: both directions, and both users' counts.
const PLAIN_RELATIONS: &str = "
    create table plain_following (
        follower_id bigint not null,
        followee_id bigint not null,
        since bigint not null,
        primary key (follower_id, followee_id)
    );
    create table plain_followers (
        followee_id bigint not null,
        since bigint not null,
        follower_id bigint not null,
        primary key (followee_id, since, follower_id)
    );
    create table plain_counts (
        user_id bigint not null primary key,
        following bigint not null,
        followers bigint not null
    ) with (fillfactor = 80)";

impl Postgres {
    /// Looks at the Postgres that `scripts/engines.sh` started, and makes the databases in it.
    pub(crate) async fn open(url: &str, programs: &Path) -> Result<Self> {
        let base = url.rsplit_once('/').map(|(base, _)| base).ok_or("a Postgres URL without a database")?;
        let options = PgConnectOptions::from_str(url)?;
        let mut conn = options.connect().await?;
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value: String = sqlx::query_scalar("select current_setting($1)").bind(setting).fetch_one(&mut conn).await?;
            if value != "on" {
                return Err(format!("{setting} is {value} in this Postgres; start the bench with `make bench`").into());
            }
        }
        let version: String =
            sqlx::query_scalar("select split_part(current_setting('server_version'), ' ', 1)").fetch_one(&mut conn).await?;
        // A checkpoint makes the next write to each page log the whole page; it is not to come in
        // the middle of one side's turn.
        for setting in ["alter system set max_wal_size = '16GB'", "alter system set checkpoint_timeout = '1h'", "select pg_reload_conf()"] {
            conn.execute(setting).await?;
        }
        conn.execute("create database headmark").await?;
        conn.execute("create database plain").await?;
        let (account, host) = base.split_once('@').ok_or("a Postgres URL without a user")?;
        let (account, password) = match account.rsplit_once(':') {
            Some((account, password)) if !password.starts_with("//") => (account, password),
            _ => (account, ""),
        };
        let url = format!("{account}@{host}/plain");
        let pgbench = Pgbench { program: programs.join("pgbench"), url, password: password.to_owned() };
        if !pgbench.program.is_file() {
            return Err(format!("there is no pgbench in {}", programs.display()).into());
        }
        Ok(Self { options, url: format!("{base}/headmark"), version, pgbench })
    }

    pub(crate) async fn connect(&self, database: &str) -> Result<PgConnection> {
        Ok(self.options.clone().database(database).connect().await?)
    }

    /// Makes one more database; returns its URL.
    pub(crate) async fn create(&self, database: &'static str) -> Result<String> {
        let create = format!("create database {database}");
        self.connect("plain").await?.execute(sqlx::AssertSqlSafe(create)).await?;
        let base = self.url.rsplit_once('/').map(|(base, _)| base).ok_or("a Postgres URL without a database")?;
        Ok(format!("{base}/{database}"))
    }

    /// How many bytes of log this Postgres has ever written.
    pub(crate) async fn wal_bytes(&self) -> Result<f64> {
        let position = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
        Ok(sqlx::query_scalar(position).fetch_one(&mut self.connect("plain").await?).await?)
    }

    /// Whether it cleans up by itself: not while bytes are counted.
    pub(crate) async fn autovacuum(&self, on: bool) -> Result<()> {
        let mut conn = self.connect("plain").await?;
        conn.execute(if on { "alter system reset autovacuum" } else { "alter system set autovacuum = off" }).await?;
        conn.execute("select pg_reload_conf()").await?;
        Ok(())
    }

    /// Users with badges in headmark's own tables, and as many counters in the plain one.
    pub(crate) async fn fill_badges(&self, users: u64) -> Result<()> {
        let users = i64::try_from(users)?;
        let names: Vec<&str> = BADGES.to_vec();
        let mut conn = self.connect("headmark").await?;
        sqlx::query(
            "insert into users (user_id, revision, marks, enrolled, seen_day)
            select g, $2, $3, 0, cast(extract(epoch from now()) as bigint) / 86400 from generate_series(1, $1) g",
        )
        .bind(users)
        .bind(REVISION)
        .bind(marks())
        .execute(&mut conn)
        .await?;
        conn.execute("vacuum analyze").await?;
        let mut conn = self.connect("plain").await?;
        conn.execute(PLAIN_COUNTERS).await?;
        sqlx::query(
            "insert into plain_counters (user_id, name, head) select g, n, 120 from generate_series(1, $1) g, unnest($2::text[]) n",
        )
        .bind(users)
        .bind(&names)
        .execute(&mut conn)
        .await?;
        conn.execute("vacuum analyze").await?;
        // What was written above must not be flushed in the middle of a measurement.
        conn.execute("checkpoint").await?;
        Ok(())
    }

    /// The plain relations: one star with so many followers, and count rows for all who may follow.
    pub(crate) async fn fill_relations(&self, star: u64, followers: u64, users: u64) -> Result<()> {
        let (star, followers, users) = (i64::try_from(star)?, i64::try_from(followers)?, i64::try_from(users)?);
        let mut conn = self.connect("plain").await?;
        conn.execute(PLAIN_RELATIONS).await?;
        for insert in [
            "insert into plain_followers (followee_id, since, follower_id) select $1, g, g from generate_series(1, $2) g",
            "insert into plain_following (follower_id, followee_id, since) select g, $1, g from generate_series(1, $2) g",
        ] {
            sqlx::query(insert).bind(star).bind(followers).execute(&mut conn).await?;
        }
        sqlx::query("insert into plain_counts (user_id, following, followers) select g, 0, 0 from generate_series(1, $1) g")
            .bind(users)
            .execute(&mut conn)
            .await?;
        conn.execute("vacuum analyze").await?;
        conn.execute("checkpoint").await?;
        Ok(())
    }

    /// How many follows headmark has.
    pub(crate) async fn count_follows(&self) -> Result<u64> {
        let mut conn = self.connect("headmark").await?;
        let count: i64 = sqlx::query_scalar("select count(*) from following").fetch_one(&mut conn).await?;
        Ok(u64::try_from(count)?)
    }

    /// Flushes what earlier work left to flush.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        self.connect("plain").await?.execute("checkpoint").await?;
        Ok(())
    }
}

/// The counters of a user, as a row holds them: each with three unread.
pub(crate) fn marks() -> String {
    BADGES.map(|name| format!("c:{name} 120 3")).join(";")
}

/// The same users in the SQLite file of a data folder that `headmark migrate` has made.
pub(crate) async fn fill_sqlite(folder: &Path, users: u64) -> Result<()> {
    let options = SqliteConnectOptions::new().filename(folder.join("headmark.sqlite")).synchronous(SqliteSynchronous::Off);
    let mut conn = options.connect().await?;
    let numbers = "with recursive numbers (n) as (select $1 union all select n + 1 from numbers where n < $2)";
    // They were seen today, so that their polls write nothing.
    let insert = format!(
        "{numbers} insert into users (user_id, revision, marks, enrolled, seen_day)
        select n, {REVISION}, '{}', 0, unixepoch() / 86400 from numbers",
        marks()
    );
    let mut first = 1;
    while first <= users {
        let last = users.min(first + CHUNK - 1);
        let mut transaction = conn.begin().await?;
        sqlx::query(sqlx::AssertSqlSafe(insert.as_str()))
            .bind(i64::try_from(first)?)
            .bind(i64::try_from(last)?)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        first = last + 1;
    }
    conn.close().await?;
    Ok(())
}

/// A made graph: everybody follows as many, grouped by follower, as lists are published; followees
/// by a power law, so that a few have many followers; and one star whom the first so many users
/// follow. The same seed gives the same graph. Returns how many follows it has.
pub(crate) fn write_graph(file: &Path, users: u64, edges: u64, star: u64, followers: u64) -> Result<u64> {
    use std::io::Write as _;
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "follower,followee,timestamp")?;
    let mut rng = StdRng::seed_from_u64(1998);
    let mut line = String::new();
    let (each, mut written) = (edges.div_ceil(users), 0);
    for follower in 1..=users.max(followers) {
        line.clear();
        let at = 1_600_000_000 + follower;
        if follower <= followers {
            writeln!(line, "{follower},{star},{at}")?;
            written += 1;
        }
        let mut others: Vec<u64> =
            (0..each).map(|_| power_law(rng.random_range(0.0..1.0), users)).filter(|other| *other != follower).collect();
        others.sort_unstable();
        others.dedup();
        for other in others {
            writeln!(line, "{follower},{other},{at}")?;
            written += 1;
        }
        out.write_all(line.as_bytes())?;
    }
    out.flush()?;
    Ok(written)
}

/// 1 to `users`, the low ones far more often: the cube of an even draw.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of users")]
fn power_law(even: f64, users: u64) -> u64 {
    1 + ((even * even * even * crate::stats::float(users)) as u64).min(users - 1)
}

/// Users to poll: drawn from all, but with ids of as many digits, so that all unread summaries are
/// of one size.
pub(crate) fn working_set(users: u64, size: usize) -> Vec<u64> {
    let mut low = 1;
    while low * 10 <= users {
        low *= 10;
    }
    // The block with most ids of as many digits: 100,000 to 999,999 of a million users.
    let (low, high) = if users - low + 1 >= low - low / 10 { (low, users) } else { (low / 10, low - 1) };
    let mut rng = StdRng::seed_from_u64(42);
    (0..size).map(|_| rng.random_range(low.max(1)..=high)).collect()
}

/// What one small durable write costs here: the median time of 200, in microseconds.
pub(crate) fn fsync_us(folder: &Path) -> Result<f64> {
    use std::io::Write as _;
    let path: PathBuf = folder.join("fsync");
    let mut file = std::fs::File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = std::time::Instant::now();
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&path)?;
    Ok(crate::stats::median(&times))
}

/// The time that a database is given to settle after it was filled.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_to_poll_have_ids_of_one_length() {
        for users in [1000, 50_000, 999_999, 1_000_000, 1_500_000] {
            let set = working_set(users, 100);
            let digits = set[0].to_string().len();
            assert!(set.iter().all(|user| user.to_string().len() == digits && (1..=users).contains(user)), "{users}: {set:?}");
        }
        assert_eq!(working_set(1_000_000, 10)[0].to_string().len(), 6);
    }

    #[test]
    fn a_few_have_many_followers() {
        let low = (0..1000).filter(|n| power_law(f64::from(*n) / 1000.0, 1_000_000) <= 10_000).count();
        assert!((150..300).contains(&low), "{low}");
        assert_eq!(power_law(0.0, 10), 1);
        assert_eq!(power_law(0.999_999, 10), 10);
    }
}
