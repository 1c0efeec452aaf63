//! What the catalog says of the tables, and the statements that rebuild them with another number of
//! partitions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::db::DbResult;
use crate::db::large_tables::{TABLES, Table};

/// How many partitions each table has; a plain table has one.
#[derive(Debug)]
pub(super) struct Schema(BTreeMap<String, u32>);

/// What a table is called while its rows are moved: then nothing has the name of the table itself,
/// so that nobody reads or writes a part of it.
#[derive(Debug)]
pub(super) struct Names {
    /// The table with all rows.
    pub(super) old: String,
    /// The table that they go to.
    pub(super) new: String,
}

impl Names {
    pub(super) fn of(table: &str) -> Self {
        Self { old: format!("{table}_old"), new: format!("{table}_new") }
    }
}

impl Schema {
    pub(super) async fn read(conn: &mut PgConnection) -> DbResult<Self> {
        let sql =
            "select c.relname::text, case c.relkind when 'p' then (select count(*) from pg_inherits i where i.inhparent = c.oid) else 1 end
            from pg_class c
            join pg_namespace n on n.oid = c.relnamespace
            where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition";
        let tables: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(conn).await?;
        Ok(Self(tables.into_iter().map(|(name, number)| (name, u32::try_from(number).unwrap_or(u32::MAX))).collect()))
    }

    /// None: there is no such table.
    pub(super) fn of(&self, table: &str) -> Option<u32> {
        self.0.get(table).copied()
    }

    /// Whether each table is there with this number of partitions.
    pub(super) fn all_have(&self, number: u32) -> bool {
        TABLES.iter().all(|table| self.of(table.name) == Some(number))
    }

    /// A table of somebody else, which has the name that one of ours gets while its rows are moved: a table that is
    /// being moved has neither its own name nor rows under it.
    pub(super) fn in_the_way(&self) -> Option<String> {
        let whole = TABLES.iter().filter(|table| self.of(table.name).is_some());
        whole.map(|table| Names::of(table.name)).flat_map(|Names { old, new }| [old, new]).find(|name| self.of(name).is_some())
    }

    /// The number to which rows are being moved: that of the table which is being filled, else of the
    /// first one, which is moved first.
    pub(super) fn target(&self) -> u32 {
        let filled = TABLES.iter().find_map(|table| self.of(&Names::of(table.name).new));
        filled.or_else(|| TABLES.first().and_then(|table| self.of(table.name))).unwrap_or(1)
    }

    /// The number of the database.
    pub(super) fn stored(&self) -> u32 {
        TABLES.last().and_then(|table| self.of(table.name)).unwrap_or(1)
    }
}

/// The unique key of a plain table that lacks the owner, and what it is in a partitioned one. The
/// lock of the group keeps ordinals unique.
const WIDENED: (&str, &str, &str) =
    ("memberships_of_group", "USING btree (group_id, ordinal, span)", "USING btree (group_id, ordinal, span, user_id)");

/// An index of a table: its name, whether it is the primary key, whether it is unique, and how
/// Postgres says what it is of.
type Index = (String, bool, bool, String);

async fn indexes(conn: &mut PgConnection, table: &str) -> DbResult<Vec<Index>> {
    let sql = "select c.relname::text, i.indisprimary, i.indisunique, pg_get_indexdef(i.indexrelid)
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where i.indrelid = to_regclass($1)
        order by i.indisprimary desc, c.relname";
    let found: Vec<Index> = sqlx::query_as(sql).bind(table).fetch_all(conn).await?;
    let after = |definition: &str| definition.find(" USING ").and_then(|at| definition.get(at + 1..)).unwrap_or_default().to_owned();
    Ok(found.into_iter().map(|(name, primary, unique, definition)| (name, primary, unique, after(&definition))).collect())
}

/// All columns, quoted where they must be.
pub(super) async fn columns(conn: &mut PgConnection, table: &str) -> DbResult<Vec<String>> {
    let sql = "select quote_ident(a.attname)
        from pg_attribute a
        where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped
        order by a.attnum";
    let columns: Vec<(String,)> = sqlx::query_as(sql).bind(table).fetch_all(conn).await?;
    Ok(columns.into_iter().map(|(column,)| column).collect())
}

/// The columns of the primary key.
pub(super) async fn key(conn: &mut PgConnection, table: &str) -> DbResult<Vec<String>> {
    let sql = "select a.attname::text
        from pg_index i, unnest(i.indkey) with ordinality k (attnum, at)
        join pg_attribute a on a.attnum = k.attnum
        where i.indrelid = to_regclass($1) and i.indisprimary and a.attrelid = i.indrelid
        order by k.at";
    let columns: Vec<(String,)> = sqlx::query_as(sql).bind(table).fetch_all(conn).await?;
    Ok(columns.into_iter().map(|(column,)| column).collect())
}

/// How the rows are stored, which only tables with rows of their own say.
async fn options(conn: &mut PgConnection, table: &str) -> DbResult<String> {
    let sql = "select array_to_string(c.reloptions, ', ')
        from pg_class c
        where c.oid = coalesce((select min(i.inhrelid) from pg_inherits i where i.inhparent = to_regclass($1)), to_regclass($1))";
    let found: Option<(Option<String>,)> = sqlx::query_as(sql).bind(table).fetch_optional(conn).await?;
    Ok(found.and_then(|(options,)| options).map_or(String::new(), |options| format!(" with ({options})")))
}

/// Who else may do what with a table.
async fn grants(conn: &mut PgConnection, names: &Names) -> DbResult<Vec<String>> {
    let sql = "select format('grant %s on %I to %s', a.privilege_type, $2,
            case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end)
            || case when a.is_grantable then ' with grant option' else '' end
        from pg_class c, aclexplode(c.relacl) a
        where c.oid = to_regclass($1) and a.grantee <> c.relowner";
    let grants: Vec<(String,)> = sqlx::query_as(sql).bind(&names.old).bind(&names.new).fetch_all(conn).await?;
    Ok(grants.into_iter().map(|(grant,)| grant).collect())
}

/// Makes the new table beside the old one, in a transaction of the caller.
pub(super) async fn make(conn: &mut PgConnection, table: Table, number: u32) -> DbResult<()> {
    let names @ Names { old, new } = &Names::of(table.name);
    let (options, key) = (options(conn, old).await?, key(conn, old).await?.join(", "));
    let mut sql = format!("create table {new} (like {old} including all excluding indexes)");
    if number > 1 {
        // Writing to a String cannot fail.
        let _ = write!(sql, " partition by hash ({})", table.owner);
        for at in 0..number {
            let _ = write!(
                sql,
                "; create table {}_{number}_{at} partition of {new} for values with (modulus {number}, remainder {at}){options}",
                table.name
            );
        }
    } else {
        sql.push_str(&options);
    }
    for (name, primary, unique, of) in indexes(conn, old).await? {
        let of = match WIDENED {
            (index, plain, wide) if index == name => if number > 1 { wide } else { plain }.to_owned(),
            _ => of,
        };
        let _ = match (primary, unique) {
            (true, _) => write!(sql, "; alter table {new} add constraint new_{name} primary key ({key})"),
            (false, true) => write!(sql, "; create unique index new_{name} on {new} {of}"),
            (false, false) => write!(sql, "; create index new_{name} on {new} {of}"),
        };
    }
    for grant in grants(conn, names).await? {
        let _ = write!(sql, "; {grant}");
    }
    conn.execute(AssertSqlSafe(sql)).await.map(|_| ())
}

/// Gives the new table the name of the old one, which goes, in a transaction of the caller.
pub(super) async fn swap(conn: &mut PgConnection, table: Table) -> DbResult<()> {
    let Names { old, new } = Names::of(table.name);
    let mut sql = format!("drop table {old}; alter table {new} rename to {}", table.name);
    for (index, ..) in indexes(conn, &new).await? {
        let _ = write!(sql, "; alter index {index} rename to {}", index.strip_prefix("new_").unwrap_or(&index));
    }
    conn.execute(AssertSqlSafe(sql)).await.map(|_| ())
}

/// Rebuilds a table without rows. The lock comes before the check, so that a row that another node adds
/// meanwhile is an error here, and not lost.
pub(super) async fn partition_empty(conn: &mut PgConnection, table: Table, number: u32) -> DbResult<()> {
    let name = table.name;
    let mut transaction = conn.begin().await?;
    let lock =
        format!("set local lock_timeout = '1s'; lock table {name} in access exclusive mode; alter table {name} rename to {name}_old");
    transaction.execute(AssertSqlSafe(lock)).await?;
    if !is_empty(&mut transaction, &Names::of(name).old).await? {
        return Err(sqlx::Error::Protocol(format!("{name} has rows by now")));
    }
    make(&mut transaction, table, number).await?;
    swap(&mut transaction, table).await?;
    transaction.commit().await
}

pub(super) async fn is_empty(conn: &mut PgConnection, table: &str) -> DbResult<bool> {
    let (empty,): (bool,) = sqlx::query_as(AssertSqlSafe(format!("select not exists (select 1 from {table})"))).fetch_one(conn).await?;
    Ok(empty)
}
