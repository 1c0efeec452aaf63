//! Every statement of the row sets and of all others runs on both engines, every table has one, and
//! bytes come back as they went.

use std::collections::BTreeSet;

use headmark::db::{Column, Statement, TABLES, Type};

use crate::both_tiers;
use crate::support::{Tier, World};

/// The tables that a statement writes, from its text.
fn written(statement: &str) -> impl Iterator<Item = &str> {
    let after = |verb: &str| statement.split(verb).skip(1).collect::<Vec<_>>();
    let rest = ["insert into ", "update ", "delete from ", "Insert(\""].into_iter().flat_map(after);
    rest.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next())
}

/// What may read a table of the coordinator though it is executed by owner, by a piece of its text, and why.
const MAY_READ_THE_COORDINATOR: [(&str, &str); 2] = [
    ("(select 1 from operations where status = 0)", "that part of the union reads no table of a worker"),
    ("not exists (select 1 from delivery_jobs t where t.group_id = due.group_id", "what it is compared with was read before"),
];

/// Citus executes it on the workers, where tables of the coordinator are not.
#[test]
fn what_is_executed_by_owner_names_no_table_of_the_coordinator() {
    let page = include_str!("../../docs/operations/growth.md");
    let is_spread = |name: &str| TABLES.iter().any(|table| table.name == name);
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for statement in headmark::app::statements() {
        let text = format!("{statement:?}");
        if !text.contains("owner: Some(") || MAY_READ_THE_COORDINATOR.iter().any(|(piece, _)| text.contains(piece)) {
            continue;
        }
        looked_at += 1;
        let read = ["from ", "join "].into_iter().flat_map(|word| text.split(word).skip(1));
        let read = read.filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next());
        wrong.extend(read.chain(written(&text)).filter(|name| page.contains(&format!("`{name}`")) && !is_spread(name)).map(str::to_owned));
    }
    assert!(looked_at > 20 && wrong.is_empty(), "{looked_at}, {wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_runs_on_plain_tables() {
    run_every_statement(&World::with_partitions(Tier::Server, 1).await).await;
}

async fn run_every_statement(world: &World) {
    let node = world.node().await;
    for statement in headmark::app::statements() {
        let columns: Vec<Column> = statement
            .columns()
            .iter()
            .map(|(name, kind)| match kind {
                Type::Text if *name == "seqs" => Column::Text(vec!["7".to_owned(), "8 9".to_owned()]),
                Type::Int => Column::Int(vec![7, 8]),
                Type::Text | Type::Content => Column::Text(vec!["seven".to_owned(), "eight ' \" \\ é".to_owned()]),
                Type::Bytes => Column::Bytes(vec![vec![0, 0xff, b'\''], Vec::new()]),
            })
            .collect();
        let mut conn = node.app.state().db.connect().await.unwrap();
        conn.begin().await.unwrap();
        conn.run(statement, &columns).await.unwrap_or_else(|error| panic!("{error}: {statement:?}"));
        conn.rollback().await.unwrap();
    }
    node.stop().await;
}

both_tiers! {
    async fn bytes_come_back_as_they_went(world: World) {
        static MANY: Statement = Statement::new("select n, data from {rows} r order by n", &[("n", Type::Int), ("data", Type::Bytes)]);
        static ONE: Statement = Statement::one("select s.data from feed_snapshots s where s.data = $1 or s.user_id = $2", &[("data", Type::Bytes), ("n", Type::Int)]);
        let node = world.node().await;
        let all: Vec<Vec<u8>> = vec![Vec::new(), (0..=255).collect(), vec![0; 70_000], b"'\"\\x00".to_vec()];
        let numbers = Column::Int((0..).take(all.len()).collect());
        let mut conn = node.app.state().db.connect().await.unwrap();
        conn.begin().await.unwrap();
        // With what waits, and alone.
        for _ in 0..2 {
            let back: Vec<(i64, Vec<u8>)> = conn.fetch(&MANY, &[numbers.clone(), Column::Bytes(all.clone())]).await.unwrap();
            assert_eq!(back.into_iter().map(|(_, data)| data).collect::<Vec<_>>(), all);
        }
        let user: headmark::base::ids::UserId = 7.try_into().unwrap();
        headmark::features::feed::store::save_snapshots(&mut conn, &[(user, all[1].clone().into())]).await.unwrap();
        for _ in 0..2 {
            let one: Vec<(Vec<u8>,)> = conn.fetch(&ONE, &[Column::Bytes(vec![all[1].clone()]), Column::Int(vec![0])]).await.unwrap();
            assert_eq!(one, [(all[1].clone(),)]);
        }
        conn.rollback().await.unwrap();
        node.stop().await;
    }

    async fn any_number_of_rows_comes_back(world: World) {
        static MANY: Statement = Statement::new("select n, name from {rows} r order by n", &[("n", Type::Int), ("name", Type::Text)]);
        let node = world.node().await;
        let mut conn = node.app.state().db.connect().await.unwrap();
        for rows in [0, 1, 2, 8, 9, 33, 129, 513, 2048, 2049, 5000] {
            let numbers: Vec<i64> = (0..rows).collect();
            let names: Vec<String> = numbers.iter().map(|n| format!("é {n} \" ' \\")).collect();
            let back: Vec<(i64, String)> = conn.fetch(&MANY, &[Column::Int(numbers.clone()), Column::Text(names.clone())]).await.unwrap();
            assert_eq!(back, numbers.into_iter().zip(names).collect::<Vec<_>>(), "{rows} rows");
        }
        node.stop().await;
    }

    async fn every_statement_runs(world: World) {
        run_every_statement(&world).await;
    }

    async fn every_table_is_written_by_a_statement(world: World) {
        let node = world.node().await;
        static SCHEMA: Statement = Statement::each(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite%'",
            "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition",
            &[],
        );
        let tables: Vec<(String,)> = node.app.state().db.fetch(&SCHEMA, &[]).await.unwrap();
        let mut tables: BTreeSet<String> = tables.into_iter().map(|(table,)| table).collect();
        assert!(tables.remove("_sqlx_migrations") && tables.len() > 30, "{tables:?}");
        let page = include_str!("../../docs/operations/growth.md");
        for table in &tables {
            assert!(page.contains(&format!("`{table}`")), "{table} is not on the page of what grows");
        }
        for statement in headmark::app::statements() {
            for table in written(&format!("{statement:?}")) {
                tables.remove(table);
            }
        }
        assert_eq!(tables, BTreeSet::new(), "no statement writes them: which row set has them?");
        node.stop().await;
    }
}
