//! Migrations of later versions, applied while nodes serve.

use std::time::Duration;

use serde_json::json;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, SqlSafeStr as _};

use crate::support::Hand;
use crate::support::{Node, Tier, World, eventually};

fn migrator(version: i64, sql: &'static str, no_tx: bool) -> Migrator {
    Migrator::with_migrations(vec![Migration::new(version, "later".into(), MigrationType::Simple, sql.into_sql_str(), no_tx)])
}

async fn increment(node: &Node) {
    node.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
}

async fn is_true(conn: &mut PgConnection, sql: &'static str) -> bool {
    let (answer,): (bool,) = sqlx::query_as(sql).fetch_one(conn).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_waits_for_a_lock_gives_way_to_others() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    increment(&node).await;
    // A long read: the migration cannot have the table.
    let (mut reader, mut other, mut hand) = (world.postgres().await, world.postgres().await, Hand::on(&world).await);
    reader.execute("begin; select count(*) from users").await.unwrap();
    let db = node.app.state().db.clone();
    let later = migrator(9001, "alter table users add column later bigint not null default 0", false);
    let migrating = tokio::spawn(async move { db.migrate_with(later).await });
    for _ in 0..2 {
        eventually("the migration waits", async || hand.waiting().await > 0).await;
        let read = tokio::time::timeout(Duration::from_secs(5), other.execute("select count(*) from users")).await;
        read.expect("held up behind the migration").unwrap();
        increment(&node).await;
    }
    assert!(!migrating.is_finished());
    reader.execute("rollback").await.unwrap();
    migrating.await.unwrap().unwrap();
    other.execute("select later from users").await.unwrap();
    increment(&node).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_made_beside_writes_once_and_again_after_a_failure() {
    let world = World::with_partitions(Tier::Server, 1).await;
    let nodes = [world.node().await, world.node().await];
    nodes[0].client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
    increment(&nodes[0]).await;
    let (mut other, mut hand) = (world.postgres().await, Hand::on(&world).await);
    // What a try leaves that did not come to its end.
    other.execute("create unique index concurrently later_revision on users (revision)").await.unwrap_err();
    let is_valid = "select indisvalid from pg_index where indexrelid = to_regclass('later_revision')";
    assert!(!is_true(&mut other, is_valid).await);
    // A transaction that writes: an index waits for it.
    hand.run("begin").await;
    hand.run("update users set revision = revision where user_id = 2").await;
    let migrating = nodes.each_ref().map(|node| {
        let db = node.app.state().db.clone();
        let later = migrator(9002, "create index concurrently if not exists later_revision on users (revision)", true);
        tokio::spawn(async move { db.migrate_with(later).await })
    });
    // Asked over a connection of its own: a transaction sees one state of `pg_stat_activity` to its
    // end.
    let mut watcher = Hand::on(&world).await;
    eventually("the index waits", async || watcher.waiting().await > 0).await;
    for node in &nodes {
        increment(node).await;
    }
    assert!(migrating.iter().all(|migrating| !migrating.is_finished()));
    hand.release().await;
    for migrating in migrating {
        migrating.await.unwrap().unwrap();
    }
    assert!(is_true(&mut other, is_valid).await);
    assert!(is_true(&mut other, "select count(*) = 1 from _sqlx_migrations where version = 9002").await);
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_of_a_table_in_partitions_gives_way_to_others() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    increment(&node).await;
    // A transaction that writes: the index is made on each partition, and cannot have the table.
    let (mut hand, mut watcher) = (Hand::on(&world).await, Hand::on(&world).await);
    hand.run("begin; lock table only users in row exclusive mode").await;
    let db = node.app.state().db.clone();
    let later = migrator(9004, "-- no-transaction\ncreate index concurrently if not exists later_revision on users (revision)", true);
    let migrating = tokio::spawn(async move { db.migrate_with(later).await });
    for _ in 0..2 {
        eventually("the index waits", async || watcher.waiting().await > 0).await;
        tokio::time::timeout(Duration::from_secs(5), increment(&node)).await.expect("held up behind the index");
    }
    assert!(!migrating.is_finished());
    hand.release().await;
    migrating.await.unwrap().unwrap();
    assert!(is_true(&mut world.postgres().await, "select indisvalid from pg_index where indexrelid = to_regclass('later_revision')").await);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_is_made_beside_writes_on_each_partition() {
    let world = World::with_partitions(Tier::Server, 4).await;
    let node = world.node().await;
    for user in 2..20 {
        node.client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok();
    }
    let (mut other, mut hand) = (world.postgres().await, Hand::on(&world).await);
    // What a try leaves that did not come to its end.
    other.execute("create unique index concurrently users_4_1_later_revision on users_4_1 (revision)").await.unwrap_err();
    // A transaction that writes: an index waits for it.
    hand.run("begin").await;
    hand.run("update users set revision = revision where user_id = 2").await;
    let db = node.app.state().db.clone();
    let later = migrator(9003, "-- no-transaction\ncreate index concurrently if not exists later_revision on users (revision)", true);
    let migrating = tokio::spawn(async move { db.migrate_with(later).await });
    let mut watcher = Hand::on(&world).await;
    eventually("the index waits", async || watcher.waiting().await > 0).await;
    increment(&node).await;
    assert!(!migrating.is_finished());
    hand.release().await;
    migrating.await.unwrap().unwrap();
    assert!(is_true(&mut other, "select indisvalid from pg_index where indexrelid = to_regclass('later_revision')").await);
    assert!(is_true(&mut other, "select count(*) = 4 from pg_inherits where inhparent = to_regclass('later_revision')").await);
    assert!(is_true(&mut other, "select count(*) = 1 from _sqlx_migrations where version = 9003").await);
    node.stop().await;
}

/// A name that stands in quotes in SQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_may_have_any_name() {
    let world = World::without_tables(Tier::Server).await;
    let (_, database) = world.database_url.rsplit_once('/').unwrap();
    let sql = format!("create schema \"Head.Mark\"; alter database {database} set search_path = \"Head.Mark\"");
    world.postgres().await.execute(AssertSqlSafe(sql)).await.unwrap();
    let node = world.node().await;
    increment(&node).await;
    let mut conn = world.postgres().await;
    assert!(is_true(&mut conn, "select count(*) > 30 from pg_tables where schemaname = 'Head.Mark'").await);
    // Its rows are on their way to another number of partitions.
    conn.execute("alter table posts rename to posts_old; create table posts_new (like posts_old)").await.unwrap();
    let refused = node.app.state().db.migrate_with(migrator(9005, "create table later (n bigint)", false)).await.unwrap_err();
    assert!(refused.to_string().contains("the rows of posts are on their way"), "{refused}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_in_a_migration_keeps_the_others_waiting_for_seconds() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let sql = "create table later_watched as select name, setting from pg_settings where name like 'tcp_%'";
    node.app.state().db.migrate_with(migrator(9004, sql, false)).await.unwrap();
    let settings: Vec<(String, String)> =
        sqlx::query_as("select name, setting from later_watched order by name").fetch_all(&mut world.postgres().await).await.unwrap();
    let settings: Vec<_> = settings.iter().map(|(name, setting)| (name.as_str(), setting.as_str())).collect();
    let watched =
        [("tcp_keepalives_count", "3"), ("tcp_keepalives_idle", "4"), ("tcp_keepalives_interval", "2"), ("tcp_user_timeout", "10000")];
    assert_eq!(settings, watched);
    node.stop().await;
}
