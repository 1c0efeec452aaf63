//! What is read does not grow with what is kept beside it: a sweep that finds nothing old reads
//! nothing, who came back to a group a hundred times is one row of it, and what was recalled is
//! passed over.

use headmark::db::{Column, Statement};
use serde_json::Value;
use sqlx::Executor as _;

use super::plans::inputs;
use super::sqlite_rows::{migrated, plan, searches};
use crate::support::{Hand, Tier, World};

/// Pieces of statements: the sweep of keys, a user's entry, and the latest membership.
const SWEEP: &str = "delete from idempotency_keys\n    where (caller, key) in (\n        select k.caller";
const ENTRY: &str = "s.to_seq < 0";
const LATEST: &str = "m.span = (\n        select max(n.span)";

/// A page of direct chats, and how many messages were recalled after a row.
const CHATS: &str = "(n.last_seq, n.peer_id) < ($2, $3)";
const RECALLED: &str = "i.seq > r.up_to and i.own = 0";

/// The statement with this in its text.
fn with(piece: &str) -> &'static Statement {
    headmark::app::statements().into_iter().find(|statement| statement.postgres().contains(piece)).unwrap()
}

/// Rows that an executed plan has looked at, also those that it passed over.
fn rows(plan: &Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let passed = number("Rows Removed by Filter") + number("Rows Removed by Join Filter");
    let found = if plan["Relation Name"].is_null() { 0.0 } else { number("Actual Rows") };
    let below: f64 = inputs(plan).map(rows).sum();
    (found + passed) * number("Actual Loops") + below
}

async fn rows_read(world: &World, statement: &'static Statement, columns: &[Column]) -> f64 {
    let node = world.node().await;
    let mut conn = node.app.state().db.connect().await.unwrap();
    conn.begin().await.unwrap();
    let plan = conn.explain(statement, columns, true).await.unwrap();
    conn.rollback().await.unwrap();
    drop(conn);
    node.stop().await;
    rows(&serde_json::from_str::<Value>(&plan.unwrap()).unwrap()[0]["Plan"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_of_keys_reads_the_old_ones_alone() {
    let world = World::new(Tier::Server).await;
    world.node().await.stop().await;
    let mut conn = world.postgres().await;
    let keys = "insert into idempotency_keys (caller, key, digest, status, body, created_at)
        select 'open', 'key-' || o, '', 200, '', 4102444800000 + o from generate_series(1, 5000) o";
    conn.execute(keys).await.unwrap();
    conn.execute("analyze idempotency_keys").await.unwrap();
    let sweep = with(SWEEP);
    // Not what nodes sweep by themselves.
    let columns = |oldest: i64| [4_102_444_800_000 + oldest, 1000].map(|value| Column::Int(vec![value]));
    assert!(rows_read(&world, sweep, &columns(0)).await < 1.0);
    // Each is found, looked up by its key and removed.
    let some = rows_read(&world, sweep, &columns(10)).await;
    assert!((10.0..50.0).contains(&some), "{some}");
}

/// Somebody who has left and joined so often, and is a member now.
const SPANS: i64 = 300;

/// The memberships of that one.
async fn come_and_go(world: &World) {
    let node = world.node().await;
    node.client.put("/v1/groups/7", &serde_json::json!({})).await.ok();
    node.client.put("/v1/groups/7/members/42", &serde_json::json!({})).await.ok();
    node.stop().await;
    let mut hand = Hand::on(world).await;
    hand.run(&format!("update memberships set span = {SPANS} where user_id = 42")).await;
    let columns = "group_id, ordinal, user_id, from_seq, read_seq, extra, level, joined_at, at";
    for span in 1..SPANS {
        let row = format!("insert into memberships (span, to_seq, {columns}) select {span}, 0, {columns} from memberships");
        hand.run(&format!("{row} where user_id = 42 and span = {SPANS}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_memberships_are_not_read_on_postgres() {
    let world = World::new(Tier::Server).await;
    come_and_go(&world).await;
    let mut conn = world.postgres().await;
    conn.execute("analyze").await.unwrap();
    let latest = rows_read(&world, with(LATEST), &[7, 42].map(|value| Column::Int(vec![value]))).await;
    assert!(latest < 10.0, "{latest} for the latest membership");
    let entry = rows_read(&world, with(ENTRY), &[Column::Int(vec![42])]).await;
    assert!(entry < 20.0, "{entry} for a user's entry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recalled_messages_are_not_read_on_the_way_to_the_first_unread_one() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    node.client.post("/v1/users/2/inbox", &serde_json::json!({"sender_id": 1, "client_id": "a", "content": "x"})).await.ok();
    node.stop().await;
    let mut hand = Hand::on(&world).await;
    // A thousand messages after the first one, each with a row that tells of its recall, and one more.
    let columns = "user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at, other_seq, recalled";
    hand.run(&format!(
        "insert into inbox ({columns})
        select 2, o, 1, 1, o / 2 + 1, 0, 0, 0, o % 2, 'c-' || o, '', 1, 1, o, case when o < 2002 then 1 - o % 2 else 0 end
        from generate_series(2, 2002) o"
    ))
    .await;
    hand.run("update directs set head = 1002, mark = 1, read_seq = 1, recalled = 1000, last_seq = 2002 where user_id = 2").await;
    world.postgres().await.execute("analyze").await.unwrap();
    let columns = [2, i64::MAX, i64::MAX, 20].map(|value| Column::Int(vec![value]));
    let read = rows_read(&world, with(CHATS), &columns).await;
    assert!(read < 10.0, "{read} for a page of one chat");
}

/// SQLite plans by its schema, and by the numbers that a migration gives it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_finds_the_same_by_an_index() {
    let world = World::new(Tier::Embedded).await;
    let mut conn = migrated(&world).await;
    for (piece, found) in [
        (SWEEP, "idempotency_keys_created_at (created_at<?)"),
        (ENTRY, "memberships_now (user_id=? AND to_seq<?)"),
        (CHATS, "inbox_received (user_id=? AND peer_id=? AND recalled=? AND seq>?)"),
        (RECALLED, "inbox_received (user_id=? AND peer_id=? AND recalled=? AND seq>?)"),
        (LATEST, "m USING PRIMARY KEY (user_id=? AND group_id=? AND span=?)"),
    ] {
        let plan = searches(&mut conn, with(piece).sqlite_texts(1).0).await;
        assert!(plan.iter().any(|line| line.contains(found)), "{found}: {plan:?}");
    }
}

/// What SQLite keeps an index for, it finds by that index. One that no statement is planned with costs
/// each write and helps nobody: then the statistics in the migrations do not say how much it narrows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_uses_every_index() {
    let world = World::new(Tier::Embedded).await;
    let mut conn = migrated(&world).await;
    let indexes: Vec<String> =
        sqlx::query_scalar("select name from sqlite_master where type = 'index' and sql is not null").fetch_all(&mut *conn).await.unwrap();
    assert!(indexes.len() > 30, "only {} indexes", indexes.len());
    let mut plans = Vec::new();
    for statement in headmark::app::statements() {
        plans.extend(plan(&mut conn, statement.sqlite_texts(1).0).await);
    }
    let uses = |index: &str| plans.iter().any(|line| line.split([' ', '(']).any(|word| word == index));
    let idle: Vec<_> = indexes.iter().filter(|index| !uses(index)).collect();
    assert!(idle.is_empty(), "no statement uses {idle:?}");
}

/// A chat is found by who it is with, and not by going through all that its user has received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_reads_a_chat_and_not_the_whole_inbox() {
    let world = World::new(Tier::Embedded).await;
    let mut conn = migrated(&world).await;
    let mut found = 0;
    for statement in headmark::app::statements() {
        let (text, _) = statement.sqlite_texts(1);
        if !text.contains(" i.peer_id > 0") && !text.contains("inbox.peer_id > 0") {
            continue;
        }
        let plan = searches(&mut conn, text).await;
        let of_inbox = |line: &&String| line.starts_with("SEARCH i ") || line.starts_with("SEARCH inbox ");
        let of_inbox: Vec<_> = plan.iter().filter(of_inbox).collect();
        let narrow = |line: &&String| line.contains("peer_id=?") || line.contains("seq=?");
        assert!(!of_inbox.is_empty() && of_inbox.iter().all(narrow), "{text}: {plan:?}");
        found += 1;
    }
    assert!(found > 5, "only {found} statements read a chat");
}
