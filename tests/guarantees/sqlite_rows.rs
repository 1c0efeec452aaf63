//! On SQLite a statement gets its rows as bound values. It must do with them what it does with the
//! same rows as JSON, which is a plain table function: find the same, write the same, and find it
//! by the same indexes.

use std::fmt::Write as _;

use headmark::db::{Conn, Statement, Type};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _, TypeInfo as _, ValueRef as _};

use crate::support::{Tier, World};

/// The values of a row: some meet rows that [`seed`] has made, others do not.
const NUMBERS: std::ops::Range<i64> = 0..4;

fn text(number: i64) -> String {
    format!("{number} é \" ' \\")
}

fn bytes(number: i64) -> Vec<u8> {
    if number == 0 { Vec::new() } else { vec![0, 0xff, u8::try_from(number).unwrap()] }
}

fn shown(row: &SqliteRow) -> String {
    let mut text = String::new();
    for at in 0..row.len() {
        let kind = row.try_get_raw(at).unwrap().type_info().name().to_owned();
        let null = row.try_get_raw(at).unwrap().is_null();
        let value = match kind.as_str() {
            _ if null => "null".to_owned(),
            "TEXT" => format!("{:?}", row.get_unchecked::<String, _>(at)),
            "BLOB" => format!("{:?}", row.get_unchecked::<Vec<u8>, _>(at)),
            _ => row.get_unchecked::<i64, _>(at).to_string(),
        };
        let _ = write!(text, "{kind} {value}|");
    }
    text
}

async fn rows(conn: &mut SqliteConnection, text: &str, arguments: SqliteArguments) -> Result<Vec<String>, String> {
    let rows = sqlx::query_with(AssertSqlSafe(text), arguments).fetch_all(conn).await;
    rows.map(|rows| rows.iter().map(shown).collect()).map_err(|error| error.to_string())
}

pub(super) async fn names(conn: &mut SqliteConnection, text: &str) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(conn).await.unwrap()
}

/// Rows in every table, with the numbers 1 and 2 in every column, and others beside them.
async fn seed(conn: &mut SqliteConnection, tables: &[String]) {
    for table in tables {
        let columns: Vec<(String, String)> =
            sqlx::query_as(AssertSqlSafe(format!("select name, lower(type) from pragma_table_info('{table}')")))
                .fetch_all(&mut *conn)
                .await
                .unwrap();
        for number in 1..=2 {
            let values = columns.iter().map(|(_, kind)| match kind.as_str() {
                "text" => format!("'{}'", text(number).replace('\'', "''")),
                "blob" => format!("x'00ff0{number}'"),
                _ => number.to_string(),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            sqlx::query(AssertSqlSafe(format!("insert or ignore into {table} values ({values})"))).execute(&mut *conn).await.unwrap();
        }
    }
}

/// Every row of every table.
async fn dump(conn: &mut SqliteConnection, tables: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for table in tables {
        let mut found = rows(conn, &format!("select * from {table}"), SqliteArguments::default()).await.unwrap();
        found.sort();
        all.extend(found.into_iter().map(|row| format!("{table}: {row}")));
    }
    all
}

fn as_json(statement: &Statement, numbers: &[i64]) -> SqliteArguments {
    let hex = |number| bytes(number).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let value = |name: &str, kind: Type, number: i64| match kind {
        Type::Int => serde_json::Value::from(number),
        Type::Text if name == "seqs" => number.to_string().into(),
        Type::Text | Type::Content => text(number).into(),
        Type::Bytes => hex(number).into(),
    };
    let row = |number: i64| statement.columns().iter().map(|(name, kind)| value(name, *kind, number)).collect::<Vec<_>>();
    let mut arguments = SqliteArguments::default();
    arguments.add(serde_json::json!(numbers.iter().map(|number| row(*number)).collect::<Vec<_>>()).to_string()).unwrap();
    arguments
}

fn as_values(statement: &Statement, numbers: &[i64]) -> SqliteArguments {
    let mut arguments = SqliteArguments::default();
    for number in numbers {
        for (name, kind) in statement.columns() {
            match kind {
                Type::Int => arguments.add(*number).unwrap(),
                Type::Text if *name == "seqs" => arguments.add(number.to_string()).unwrap(),
                Type::Text | Type::Content => arguments.add(text(*number)).unwrap(),
                Type::Bytes => arguments.add(bytes(*number)).unwrap(),
            }
        }
    }
    arguments
}

/// How a statement finds its rows in tables: the lines of its plan that are not about `{rows}`.
pub(super) async fn searches(conn: &mut SqliteConnection, text: &str) -> Vec<String> {
    let is_of_table = |line: &String| {
        let mut words = line.split(' ');
        matches!(words.next(), Some("SEARCH" | "SCAN"))
            && words
                .next()
                .is_some_and(|name| !["CONSTANT", "json_each", "r"].contains(&name) && !name.ends_with("-ROW") && !name.starts_with('('))
    };
    plan(conn, text).await.into_iter().filter(is_of_table).collect()
}

/// All lines of a plan.
pub(super) async fn plan(conn: &mut SqliteConnection, text: &str) -> Vec<String> {
    let plan = sqlx::query(AssertSqlSafe(format!("explain query plan {text}"))).fetch_all(conn).await.unwrap();
    plan.iter().map(|row| row.get("detail")).collect()
}

/// The fewer tables a plan scans the better, then the more columns of an index its rows are found
/// by.
fn narrowed(plan: &[String]) -> (usize, usize) {
    let scans = plan.iter().filter(|line| line.starts_with("SCAN")).count();
    (usize::MAX - scans, plan.iter().map(|line| line.matches("=?").count()).sum())
}

/// A connection to the database of a node that was there.
pub(super) async fn migrated(world: &World) -> Box<SqliteConnection> {
    let node = world.node().await;
    let db = node.app.state().db.clone();
    node.stop().await;
    let Conn::Sqlite(conn) = db.connect().await.unwrap() else { panic!("not SQLite") };
    conn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bound_rows_do_what_rows_as_json_do() {
    let world = World::new(Tier::Embedded).await;
    let mut conn = migrated(&world).await;
    let tables = names(&mut conn, "select name from sqlite_master where type = 'table' and name not like 'sqlite%'").await;
    seed(&mut conn, &tables).await;
    let before = dump(&mut conn, &tables).await;
    let (mut compared, mut found, mut wrote, mut replanned) = (0, 0, 0, Vec::new());
    for statement in headmark::app::statements() {
        for numbers in [vec![], vec![2], NUMBERS.collect(), (0..40).rev().collect()] {
            let (json, Some(bound)) = statement.sqlite_texts(numbers.len()) else { continue };
            let mut outcomes = Vec::new();
            for (text, arguments) in [(json, as_json(statement, &numbers)), (bound, as_values(statement, &numbers))] {
                sqlx::query("begin immediate").execute(conn.as_mut()).await.unwrap();
                let outcome = rows(&mut conn, text, arguments).await;
                let changes = names(&mut conn, "select cast(changes() as text)").await;
                let writes = ["insert ", "update ", "delete "].iter().any(|verb| text.contains(verb));
                outcomes.push((outcome, changes, if writes { dump(&mut conn, &tables).await } else { before.clone() }));
                sqlx::query("rollback").execute(conn.as_mut()).await.unwrap();
            }
            assert_eq!(outcomes[0], outcomes[1], "{numbers:?} in {bound}");
            compared += 1;
            found += usize::from(outcomes[0].0.as_ref().is_ok_and(|rows| !rows.is_empty()));
            wrote += usize::from(outcomes[0].2 != before);
        }
        for size in [1, 2, 2048] {
            if let (json, Some(bound)) = statement.sqlite_texts(size) {
                let (expected, plan) = (searches(&mut conn, json).await, searches(&mut conn, bound).await);
                // Another plan will do if it narrows down more.
                if plan != expected && narrowed(&plan) <= narrowed(&expected) {
                    replanned.push(format!("{size} rows: {plan:?} and not {expected:?} in {json}"));
                }
            }
        }
    }
    assert!(replanned.is_empty(), "{}", replanned.join("\n"));
    assert!(compared > 400 && found > 50 && wrote > 100, "{compared} compared, of which {found} found rows and {wrote} wrote");
}
