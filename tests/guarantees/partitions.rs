//! The number of partitions: of a new database, and of a filled one whose rows are moved.

use std::collections::BTreeMap;

use headmark::base::clock::Clock;
use headmark::db::TABLES;
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::plans::fill;
use crate::support::{Tier, World, run};

/// How many partitions each table has.
async fn partitions(conn: &mut PgConnection) -> BTreeMap<String, i64> {
    let sql = "select c.relname::text, (select count(*) from pg_inherits i where i.inhparent = c.oid)
        from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition";
    let all: BTreeMap<String, i64> = sqlx::query_as(sql).fetch_all(conn).await.unwrap().into_iter().collect();
    let of_table = |name: &str| {
        TABLES.iter().any(|table| [table.name, &format!("{}_old", table.name), &format!("{}_new", table.name)].contains(&name))
    };
    all.into_iter().filter(|(name, _)| of_table(name)).collect()
}

fn each(number: i64) -> BTreeMap<String, i64> {
    TABLES.iter().map(|table| (table.name.to_owned(), number)).collect()
}

/// The rows of each table: how many, and a sum over what is in them.
async fn rows(conn: &mut PgConnection) -> BTreeMap<String, (i64, String)> {
    let mut all = BTreeMap::new();
    for table in TABLES {
        let sql = format!("select count(*), coalesce(sum(hashtextextended(t::text, 0)), 0)::text from {} t", table.name);
        all.insert(table.name.to_owned(), sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut *conn).await.unwrap());
    }
    all
}

/// The indexes of the tables themselves, and how rows are stored, as Postgres says them.
async fn schema(conn: &mut PgConnection) -> Vec<(String,)> {
    let sql = "select i.indexdef || ' | ' || c.relname || coalesce(array_to_string(c.reloptions, ','), '')
        from pg_indexes i
        join pg_class c on c.relname = i.tablename and not c.relispartition
        where i.schemaname = 'public'
        order by i.indexname";
    sqlx::query_as(sql).fetch_all(conn).await.unwrap()
}

/// Runs the command; returns what it says, and whether it came to its end.
async fn repartition(world: &World, failpoints: &str) -> (bool, String) {
    let args: Vec<String> = ["migrate", "--repartition", &world.partitions.to_string(), "--rows-per-step", "700"]
        .map(String::from)
        .into_iter()
        .chain(world.store_args())
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = run(&args, &[("FAILPOINTS", failpoints)]).await;
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_takes_the_number_that_is_asked_for_and_a_filled_one_keeps_its_own() {
    let mut world = World::with_partitions(Tier::Server, 1).await;
    let mut conn = world.postgres().await;
    assert_eq!(partitions(&mut conn).await, each(0));
    let plain = schema(&mut conn).await;
    for number in [3, 2] {
        world.partitions = number;
        world.node().await.stop().await;
        assert_eq!(partitions(&mut conn).await, each(number.into()));
    }
    let node = world.node().await;
    world.partitions = 5;
    let second = world.node().await;
    assert_eq!(partitions(&mut conn).await, each(2), "a node uses it");
    second.stop().await;
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    node.stop().await;
    let node = world.node().await;
    assert_eq!(partitions(&mut conn).await, each(2), "it has a row");
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    node.stop().await;
    world.partitions = 1;
    let (done, said) = repartition(&world, "").await;
    assert!(done, "{said}");
    assert_eq!(schema(&mut conn).await, plain, "the way back leaves nothing behind");
    let node = world.node().await;
    assert_eq!(node.client.summary(1).await["counters"]["mention"]["unread"], 2);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_visits_the_partitions_of_its_lane_alone() {
    for (lanes, partitions_of_lane) in [(2, 2), (4, 1)] {
        let world = World::with_partitions(Tier::Server, 4).await;
        let node = world.node_with(&["--lanes", &lanes.to_string()]).await;
        let increment = |user: u32| {
            let client = node.client.clone();
            tokio::spawn(async move { client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok() })
        };
        let increments: Vec<_> = (1..=400).map(increment).collect();
        for increment in increments {
            increment.await.unwrap();
        }
        // The transaction that made a user's row, and its partition: `users_4_2`.
        let sql = "select xmin::text, right(tableoid::regclass::text, 1)::int from users";
        let made: Vec<(String, i32)> = sqlx::query_as(sql).fetch_all(&mut world.postgres().await).await.unwrap();
        let mut batches = BTreeMap::<_, Vec<_>>::new();
        made.into_iter().for_each(|(batch, partition)| batches.entry(batch).or_default().push(partition));
        assert!(batches.values().any(|rows| rows.len() > 10), "no batch had several users");
        for mut visited in batches.into_values() {
            visited.sort_unstable();
            visited.dedup();
            let first = visited.first().unwrap() % lanes;
            assert!(visited.len() <= partitions_of_lane && visited.iter().all(|partition| partition % lanes == first), "{visited:?}");
        }
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_not_moved_while_a_node_runs() {
    let mut world = World::with_partitions(Tier::Server, 4).await;
    let node = world.node().await;
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    world.partitions = 2;
    let (done, said) = repartition(&world, "").await;
    assert!(!done && said.contains("stop all of them"), "{said}");
    assert_eq!(partitions(&mut world.postgres().await).await, each(4));
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_somebody_else_is_not_taken_for_one_that_is_being_moved() {
    let mut world = World::with_partitions(Tier::Server, 4).await;
    let node = world.node().await;
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    node.stop().await;
    world.partitions = 2;
    let mut conn = world.postgres().await;
    for name in ["inbox_old", "posts_new"] {
        conn.execute(AssertSqlSafe(format!("create table {name} as select 1 as one"))).await.unwrap();
        let (done, said) = repartition(&world, "").await;
        assert!(!done && said.contains(&format!("there is a table {name},")), "{said}");
        conn.execute(AssertSqlSafe(format!("drop table {name}"))).await.unwrap();
    }
    assert_eq!(partitions(&mut conn).await, each(4));
    let (done, said) = repartition(&world, "").await;
    assert!(done, "{said}");
    assert_eq!(partitions(&mut conn).await, each(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_rows_are_moved_whatever_stops_the_command() {
    let mut world = World::with_partitions(Tier::Server, 1).await;
    let mut conn = world.postgres().await;
    fill(&mut conn).await;
    let (before, plain) = (rows(&mut conn).await, schema(&mut conn).await);
    let (mut deaths, mut refusals) = (0, 0);
    // Dies at each of these in turn, and gets on between two deaths.
    let steps =
        ["before_copy=return", "after_step=4*off->return", "after_swap=return", "before_swap=2*off->return", "after_step=9*off->return"];
    // In the middle of the first move another number is asked for.
    for (number, runs) in [(3, 12), (4, 100), (1, 100)] {
        world.partitions = number;
        for step in steps.iter().cycle().take(runs) {
            let (done, said) = repartition(&world, &format!("partitions::{step}")).await;
            if done {
                break;
            }
            assert!(!said.contains("cannot"), "{said}");
            deaths += 1;
            if deaths % 5 == 1 {
                // Until it came to its end, nobody may use what is there.
                let refused = world.try_node(&[], Clock::System).await;
                refusals += u32::from(refused.is_err_and(|why| why.contains("run `headmark migrate --repartition ")));
            }
        }
        if number == 3 {
            assert_ne!(partitions(&mut conn).await, each(3), "it was not at its end");
            continue;
        }
        assert_eq!(partitions(&mut conn).await, each(if number == 1 { 0 } else { number.into() }));
        assert_eq!(rows(&mut conn).await, before);
    }
    assert!(deaths > 30 && refusals > 5, "{deaths} deaths, {refusals} refusals");
    assert_eq!(schema(&mut conn).await, plain);
}

/// What begins to move rows and is stopped cannot be finished by a version with further migrations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_a_newer_version_leaves_the_move_of_an_older_one_alone() {
    let mut world = World::with_partitions(Tier::Server, 1).await;
    let mut conn = world.postgres().await;
    fill(&mut conn).await;
    let before = rows(&mut conn).await;
    world.partitions = 3;
    let (done, _) = repartition(&world, "partitions::after_step=return").await;
    assert!(!done);
    // To the command the last migration is a new one.
    sqlx::raw_sql(
        "create table put_aside as select * from _sqlx_migrations order by version desc limit 1;
        delete from _sqlx_migrations where version = (select version from put_aside)",
    )
    .execute(&mut conn)
    .await
    .unwrap();
    let (done, said) = repartition(&world, "").await;
    assert!(!done && said.contains("with the version that began it, run `headmark migrate --repartition`"), "{said}");
    sqlx::raw_sql("insert into _sqlx_migrations select * from put_aside; drop table put_aside").execute(&mut conn).await.unwrap();
    let (done, said) = repartition(&world, "").await;
    assert!(done, "{said}");
    assert_eq!((partitions(&mut conn).await, rows(&mut conn).await), (each(3), before));
}
