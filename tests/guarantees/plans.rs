//! Every statement keeps to the partitions of the rows that it asks for. The plans are those of
//! Postgres, of tables with rows in them, and of statements that are prepared as lanes prepare them.

use std::collections::{BTreeMap, BTreeSet};

use headmark::db::{Column, Conn, Statement, TABLES, Type};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::support::{Tier, World};

/// What visits all partitions, by a piece of its text, and why it must.
const EXCEPTIONS: &[(&str, &str)] = &[
    // The members of a group lie with their users, as polls read the groups of a user.
    ("m.ordinal, m.user_id, m.from_seq, m.to_seq, m.read_seq, m.extra, m.hidden\n    from memberships", "receipts are read by group"),
    ("select m.user_id, m.ordinal, m.joined_at\n    from memberships", "the list of a group's members"),
    ("select m.user_id, m.span\n    from memberships", "a group that is deleted loses its memberships"),
    ("where m.group_id = $1 and m.ordinal > $2 and m.to_seq < 0", "fan-out goes through a group's members"),
    ("where m.group_id = $1 and m.to_seq >= $2 and m.to_seq >= 0", "and through those who have left since"),
    ("and m.ordinal <= $3 and (m.to_seq < 0 or m.to_seq >= $4)", "and through both"),
    ("members <> members_counted", "the recount counts a group's members"),
    // The receivers of a notification lie with their users, as polls read the notifications of a user.
    ("(select count(*) from notification_receivers r where r.notification_id = n.notification_id", "who has read a notification"),
    ("select r.user_id\n    from notification_receivers r", "a notification is withdrawn from its receivers"),
    ("select n.notification_id, n.user_id\n", "a sweep removes a notification from its receivers"),
    ("where n.notification_id < $1", "a sweep of notifications"),
    ("where enrolled >= 0 and seen_day < $1", "a sweep of users who stay away"),
    ("where i.gone = 0 and (i.created_at, i.stream, i.item_id) > ($1, $2, $3)", "a sweep of view items"),
    ("where p.created_at < $1", "a sweep of posts"),
    ("where d.seen_at > 0 and d.seen_at < $1", "a sweep of devices"),
    ("join push_users p on p.user_id = m.user_id", "which groups have members with a push device"),
    ("cross join push_users p", "the members of a group with a push device"),
    ("from push_users p\n    where p.user_id > $1", "a job goes through all users with a push device"),
    ("from push_users p\n    where p.due_at > 0", "for whom something has ended, by time"),
    ("where m.until > 0 and m.until <= $1", "a sweep of mutes that have ended"),
    ("where (m.sent_at, m.group_id) > ($1, $2)", "a sweep of group messages"),
    ("where (follower_id, followee_id) > ($1, $2)", "the export of all follows"),
    ("from chat_groups g\n    where g.group_id > $1", "imports and recounts go through all groups"),
    ("from chat_groups g\n    where g.group_id >= $1", "an import looks for free ids of groups"),
    ("where f.followee_id = $1 and f.follower_id > $2\n        and (case", "the recount of one user reads all follows for lost ones"),
    ("where s.followee_id = $1 and s.follower_id > $2", "so it does all requests"),
    ("select due.user_id, due.group_id, due.group_seq, due.recall", "the recount of inboxes"),
    ("select b.user_id as other_id, cast(-1 as bigint) as since from blocks", "an erasure ends what others have of the user"),
    ("from feed_snapshots s\n    where s.user_id > $1", "an erasure goes through all snapshots"),
    ("where (d.user_id, d.peer_id) > ($1, $2)", "an erasure goes through all direct chats"),
    ("case when n.content like $3", "an erasure goes through all notifications"),
    ("where (i.stream, i.item_id) > ($1, $2)", "an erasure goes through all items of views"),
    ("from view_items i where i.stream > $1", "the recount goes through all views"),
    ("select user_id from users where user_id > $1", "the recount and the sweep of inboxes go through all users"),
];

/// So many owners have rows, and each of them rows with these further keys.
const OWNERS: i64 = 1000;
const KEYS: &str = "array[1, 2, 3, 7, 8]";

/// The value of a column of a filled table, in terms of its owner `o` and its further key `k`.
fn value(table: &str, column: &str, kind: &str, is_owner: bool, is_key: bool) -> String {
    match (table, column, kind) {
        ("heads", "kind", _) => "k + 3",
        ("heads", "name", _) => "''",
        ("marks", "kind", _) => "4",
        ("users", "marks", _) => "'c:mention 7'",
        ("users", "enrolled", _) => "0",
        ("memberships", "ordinal", _) => "o",
        ("memberships", "to_seq", _) => "-1",
        ("push_users", "due_at", _) => "7",
        (_, "gone" | "withdrawn" | "read_at" | "secret" | "muted" | "level" | "recalled", _) => "k % 2",
        (_, _, "text") if is_owner => "'v' || o",
        (_, _, "text") if is_key => "'t' || k",
        (_, _, "text") => "'t7'",
        (_, _, "bytea") => "'\\x00'",
        _ if is_owner => "o",
        _ if is_key || column.ends_with("_id") || ["seq", "since"].contains(&column) => "k",
        _ => "7",
    }
    .to_owned()
}

/// Rows in every table that is partitioned.
pub(super) async fn fill(conn: &mut PgConnection) {
    let columns = "select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnum = any(i.indkey)
        from pg_attribute a
        join pg_index i on i.indrelid = a.attrelid and i.indisprimary
        where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped";
    for table in TABLES {
        let columns: Vec<(String, String, bool)> = sqlx::query_as(columns).bind(table.name).fetch_all(&mut *conn).await.unwrap();
        let names: Vec<_> = columns.iter().map(|(name, ..)| name.as_str()).collect();
        let value = |(name, kind, is_key): &(String, String, bool)| value(table.name, name, kind, name == table.owner, *is_key);
        let values: Vec<_> = columns.iter().map(value).collect();
        let keys = if columns.iter().filter(|(.., is_key)| *is_key).count() > 1 { KEYS } else { "array[7]" };
        let insert = format!(
            "insert into {} ({}) select {} from generate_series(1, {OWNERS}) o, unnest({keys}) k on conflict do nothing",
            table.name,
            names.join(", "),
            values.join(", ")
        );
        conn.execute(AssertSqlSafe(insert)).await.unwrap();
    }
    // As autovacuum does: the partitions, and not the table as a whole.
    let leaves: Vec<(String,)> =
        sqlx::query_as("select relname::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace")
            .fetch_all(&mut *conn)
            .await
            .unwrap();
    for (leaf,) in leaves {
        conn.execute(AssertSqlSafe(format!("analyze {leaf}"))).await.unwrap();
    }
}

/// One row of parameters that names rows that are there.
fn parameters(statement: &Statement) -> Vec<Column> {
    let value = |(name, kind): &(&str, Type)| match (kind, *name) {
        (Type::Int, "kind") => Column::Int(vec![4]),
        (Type::Int, "after" | "ordinal" | "high" | "above") => Column::Int(vec![0]),
        (Type::Int, _) => Column::Int(vec![7]),
        (Type::Text, "stream") => Column::Text(vec!["v7".to_owned()]),
        (Type::Text, "seqs") => Column::Text(vec!["7 8".to_owned()]),
        (Type::Text | Type::Content, _) => Column::Text(vec!["t7".to_owned()]),
        (Type::Bytes, _) => Column::Bytes(vec![vec![0]]),
    };
    statement.columns().iter().map(value).collect()
}

/// The partitions that a part of a plan scans: the table and the number of each.
fn scanned(plan: &Value) -> BTreeSet<(String, u32)> {
    let here = plan["Relation Name"].as_str().and_then(|name| {
        let (table, number) = name.rsplit_once('_')?;
        Some((table.rsplit_once('_')?.0.to_owned(), number.parse().ok()?))
    });
    here.into_iter().chain(inputs(plan).flat_map(scanned)).collect()
}

pub(super) fn inputs(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["Plans"].as_array().into_iter().flatten()
}

/// Whether each scan below finds its rows by the owner.
fn by_owner(plan: &Value, owner: &str) -> bool {
    let found = plan["Relation Name"].is_null() || plan["Index Cond"].as_str().is_some_and(|by| by.contains(&format!("({owner} = ")));
    found && inputs(plan).all(|input| by_owner(input, owner))
}

/// The tables of which a plan visits several partitions for one row that asks.
fn unpruned(plan: &Value, found: &mut BTreeSet<String>) {
    if matches!(plan["Node Type"].as_str(), Some("Append" | "Merge Append")) {
        // How often each partition was visited, of every table.
        let mut visits: BTreeMap<String, BTreeMap<u32, u64>> = BTreeMap::new();
        for input in inputs(plan) {
            let mut scanned = scanned(input).into_iter();
            if let (Some((table, number)), None) = (scanned.next(), scanned.next()) {
                let loops = visits.entry(table).or_default().entry(number).or_default();
                *loops = (*loops).max(input["Actual Loops"].as_u64().unwrap_or(0));
            }
        }
        let asked = plan["Actual Loops"].as_u64().unwrap_or(0);
        for (table, visits) in visits {
            let owner = TABLES.iter().find(|partitioned| partitioned.name == table).map_or("", |table| table.owner);
            let is_pruned = if asked > 0 { visits.values().sum::<u64>() <= asked } else { visits.len() == 1 || by_owner(plan, owner) };
            if !is_pruned {
                found.insert(table);
            }
        }
    }
    inputs(plan).for_each(|input| unpruned(input, found));
}

/// The tables of which this statement visits several partitions for one row that asks.
async fn visits_too_much(conn: &mut Conn, statement: &'static Statement) -> BTreeSet<String> {
    let parameters = parameters(statement);
    conn.begin().await.unwrap();
    let executed = conn.explain(statement, &parameters, true).await;
    conn.rollback().await.unwrap();
    let plan = match executed {
        Ok(plan) => plan,
        // A row that is there already.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => conn.explain(statement, &parameters, false).await.unwrap(),
        Err(error) => panic!("{error}: {}", statement.postgres()),
    };
    let plan: Value = serde_json::from_str(&plan.unwrap()).unwrap();
    let mut found = BTreeSet::new();
    unpruned(&plan[0]["Plan"], &mut found);
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_keep_to_the_partitions_of_their_rows() {
    static BY_NO_OWNER: Statement = Statement::one("select user_id from users where revision = $1", &[("revision", Type::Int)]);
    static BY_OWNER: Statement = Statement::one("select revision from users where user_id = $1", &[("user_id", Type::Int)]);
    static ALL_AT_ONCE: Statement = Statement::new(
        "select user_id from inbox where user_id in (select user_id from {rows} r) or sender_id = 0",
        &[("user_id", Type::Int)],
    );
    let world = World::with_partitions(Tier::Server, 4).await;
    let node = world.node().await;
    fill(&mut world.postgres().await).await;
    let mut conn = node.app.state().db.connect().await.unwrap();
    assert_eq!(visits_too_much(&mut conn, &BY_NO_OWNER).await, BTreeSet::from(["users".to_owned()]));
    assert_eq!(visits_too_much(&mut conn, &ALL_AT_ONCE).await, BTreeSet::from(["inbox".to_owned()]));
    assert_eq!(visits_too_much(&mut conn, &BY_OWNER).await, BTreeSet::new());
    let mut found = Vec::new();
    let mut unused: BTreeSet<&str> = EXCEPTIONS.iter().map(|(text, _)| *text).collect();
    for statement in headmark::app::statements() {
        let tables = visits_too_much(&mut conn, statement).await;
        let text = statement.postgres();
        let exception = EXCEPTIONS.iter().find(|(piece, _)| text.contains(piece));
        match exception {
            Some((piece, _)) if !tables.is_empty() => _ = unused.remove(piece),
            _ if tables.is_empty() => {}
            _ => found.push(format!("{tables:?}: {text}")),
        }
    }
    assert!(found.is_empty(), "these visit all partitions; say by which owner, or why not:\n{}", found.join("\n\n"));
    assert_eq!(unused, BTreeSet::new(), "exceptions that no statement needs");
    node.stop().await;
}
