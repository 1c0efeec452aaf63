//! What the database is, and whether its tables are where they must be.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use crate::db::DbResult;
use crate::db::large_tables::TABLES;
use crate::db::shards::Shards;

/// What answers at a Postgres address.
#[derive(Debug)]
pub(in crate::db) struct Engine {
    /// Where the rows are, if its tables are distributed.
    pub(in crate::db) shards: Option<Shards>,
}

/// Looks at the database, before anything is done with it.
///
/// # Errors
/// A sentence for the operator, also where it is one that this program must not use.
pub(in crate::db) async fn inspect(conn: &mut PgConnection) -> Result<Engine, String> {
    let failed = |error: sqlx::Error| format!("cannot look at the database: {error}");
    let (version,): (String,) = sqlx::query_as("select version()").fetch_one(&mut *conn).await.map_err(failed)?;
    refuse(&version)?;
    if !has_citus(conn).await.map_err(failed)? {
        return Ok(Engine { shards: None });
    }
    let (group,): (Option<i32>,) =
        sqlx::query_as("select (select groupid from pg_dist_local_group)").fetch_one(&mut *conn).await.map_err(failed)?;
    if group.unwrap_or(0) != 0 {
        return Err("DATABASE_URL is a worker of Citus: name the coordinator, which all nodes must use".to_owned());
    }
    let shards = Shards::read(conn, LEADER).await.map_err(failed)?;
    if shards.is_some() {
        let placed = Placed::read(conn).await.map_err(failed)?;
        placed.misplaced().map_or(Ok(()), Err)?;
    }
    Ok(Engine { shards })
}

/// Engines that speak Postgres' protocol and would accept what they do not keep.
fn refuse(version: &str) -> Result<(), String> {
    if version.contains("CockroachDB") {
        return Err("DATABASE_URL is a CockroachDB: its advisory locks may lock nothing, so nodes could not tell each other apart; \
            use Postgres or Citus"
            .to_owned());
    }
    Ok(())
}

pub(super) async fn has_citus(conn: &mut PgConnection) -> DbResult<bool> {
    let (found,): (bool,) = sqlx::query_as("select exists (select from pg_extension where extname = 'citus')").fetch_one(conn).await?;
    Ok(found)
}

/// The table that the others are placed beside.
pub(super) const LEADER: &str = "users";

/// The tables that stay on the coordinator. Those that are neither here nor in [`TABLES`] are of a newer version, which
/// knows where they lie.
const STAY: [&str; 19] = [
    "approval_ends",
    "cache_bypasses",
    "cache_guard",
    "delivery_jobs",
    "erased_users",
    "event_head",
    "events",
    "group_channels",
    "group_deliveries",
    "head_changes",
    "idempotency_keys",
    "inbox_epoch",
    "lanes",
    "notices",
    "operations",
    "removals",
    "replica_beats",
    "unread_jobs",
    "unread_progress",
];

/// Whether this version has a table of this name.
fn is_known(name: &str) -> bool {
    STAY.contains(&name) || TABLES.iter().any(|table| table.name == name)
}

/// A table that Citus knows: its distribution column, none for one that stays on the coordinator;
/// and the number of those that it lies together with.
type Place = (Option<String>, i64);

/// Where Citus has the tables.
#[derive(Debug)]
pub(super) struct Placed {
    known: BTreeMap<String, Place>,
    /// The tables of this version that Citus does not know.
    plain: Vec<String>,
}

impl Placed {
    pub(super) async fn read(conn: &mut PgConnection) -> DbResult<Self> {
        let known = "select c.relname::text, case p.partmethod when 'h' then column_to_column_name(p.logicalrelid, p.partkey) end, p.colocationid::bigint
            from pg_dist_partition p
            join pg_class c on c.oid = p.logicalrelid
            join pg_namespace s on s.oid = c.relnamespace
            where s.nspname = current_schema()";
        let known: Vec<(String, Option<String>, i64)> = sqlx::query_as(known).fetch_all(&mut *conn).await?;
        let plain = "select c.relname::text
            from pg_class c
            join pg_namespace s on s.oid = c.relnamespace
            where s.nspname = current_schema() and c.relkind = 'r' and not c.relispartition
                and c.relname <> '_sqlx_migrations' and not exists (select from pg_dist_partition p where p.logicalrelid = c.oid)
                and not exists (
                    select from pg_dist_shard s join pg_class l on l.oid = s.logicalrelid where c.relname = l.relname || '_' || s.shardid
                )
            order by 1";
        let plain: Vec<(String,)> = sqlx::query_as(plain).fetch_all(conn).await?;
        let known = known.into_iter().map(|(name, column, together)| (name, (column, together))).collect();
        Ok(Self { known, plain: plain.into_iter().map(|(name,)| name).filter(|name| is_known(name)).collect() })
    }

    /// The tables that Citus does not know yet, which it must.
    pub(super) fn plain(&self) -> &[String] {
        &self.plain
    }

    /// What is wrong with those that it knows, in a sentence for the operator.
    pub(super) fn misplaced(&self) -> Option<String> {
        let beside = self.known.get(LEADER).map(|(_, together)| *together);
        for table in TABLES {
            let wrong = match self.known.get(table.name) {
                None => continue,
                Some((Some(column), _)) if column != table.owner => format!("is distributed by {column}, not by {}", table.owner),
                Some((None, _)) => format!("is not distributed by {}", table.owner),
                Some((_, together)) if table.has_number() && Some(*together) != beside => format!("does not lie together with {LEADER}"),
                Some(_) => continue,
            };
            return Some(format!(
                "the table {} of this Citus {wrong}: undistribute it, then run `headmark migrate --distribute`",
                table.name
            ));
        }
        let spread = STAY.iter().find(|name| self.known.get(**name).is_some_and(|(column, _)| column.is_some()));
        spread.map(|name| format!("the table {name} of this Citus is distributed, but must stay on the coordinator: undistribute it"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placed(change: impl Fn(&mut BTreeMap<String, Place>)) -> Option<String> {
        let place =
            |table: crate::db::Table| (table.name.to_owned(), (Some(table.owner.to_owned()), if table.has_number() { 1 } else { 2 }));
        let mut known: BTreeMap<_, _> = TABLES.into_iter().map(place).chain([("lanes".to_owned(), (None, 0))]).collect();
        change(&mut known);
        Placed { known, plain: Vec::new() }.misplaced()
    }

    #[test]
    fn tables_that_lie_wrong_are_found() {
        let set =
            |name: &'static str, place: Place| move |known: &mut BTreeMap<String, Place>| _ = known.insert(name.to_owned(), place.clone());
        assert_eq!(placed(|_| {}), None);
        assert!(placed(set("inbox", (Some("seq".to_owned()), 1))).unwrap().contains("inbox of this Citus is distributed by seq"));
        assert!(placed(set("inbox", (Some("user_id".to_owned()), 3))).unwrap().contains("together with users"));
        assert!(placed(set("inbox", (None, 0))).unwrap().contains("not distributed by user_id"));
        assert!(placed(set("lanes", (Some("lane_id".to_owned()), 1))).unwrap().contains("must stay on the coordinator"));
    }

    #[test]
    fn a_table_of_a_newer_version_may_lie_anywhere() {
        let newer = |place: Place| placed(|known| _ = known.insert("of_a_newer_version".to_owned(), place.clone()));
        assert_eq!([newer((Some("user_id".to_owned()), 1)), newer((Some("name".to_owned()), 9)), newer((None, 0))], [None, None, None]);
    }

    #[test]
    fn every_table_is_spread_or_stays() {
        let page = include_str!("../../../docs/operations/growth.md");
        let (_, page) = page.split_once("| table | a row for each | goes |").unwrap();
        let rows = page.lines().skip(2).take_while(|line| line.starts_with('|'));
        let named: BTreeSet<_> = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect();
        let known: BTreeSet<_> = STAY.into_iter().chain(TABLES.map(|table| table.name)).collect();
        assert_eq!((named, known.len()), (known.clone(), STAY.len() + TABLES.len()));
    }

    #[test]
    fn an_engine_whose_locks_may_mean_nothing_is_refused() {
        assert!(refuse("CockroachDB CCL v25.1.0 (x86_64-pc-linux-gnu)").unwrap_err().contains("CockroachDB"));
        assert_eq!(refuse("PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu"), Ok(()));
    }
}
