//! What people write to each other stays out of the database's log.

use serde_json::json;
use sqlx::Executor as _;

use crate::support::{PostgresServer, Tier, World};

/// What is written, in each text of each route.
const MARKER: &str = "hush-'\\\"é";

/// Makes every insert into a table fail.
fn refuse(table: &str) -> String {
    format!("create trigger refuse before insert on {table} for each row execute function refuse()")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_contents_do_not_reach_the_log_of_postgres() {
    let mut world = World::new(Tier::Server).await;
    let cluster = PostgresServer::start(&world.dir);
    world.database_url = cluster.url();
    let node = world.node().await;
    let client = &node.client;
    let mut hand = world.postgres().await;
    let function = "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by hand'; end $$";
    hand.execute(function).await.unwrap();
    for (group, delivery) in [(7, "read"), (8, "write")] {
        client.put(&format!("/v1/groups/{group}"), &json!({"delivery": delivery})).await.ok();
        client.post(&format!("/v1/groups/{group}/members"), &json!({"user_ids": ["1", "2"]})).await.ok();
    }
    let text = json!({"sender_id": "1", "client_id": "c", "content": MARKER});
    let notice = json!({"title": MARKER, "body": MARKER, "data": {MARKER: MARKER}});
    let notification =
        json!({"type": "notice", "title": MARKER, "content": MARKER, "data": {MARKER: MARKER}, "recipients": ["1", "2"], "group_key": "k"});
    let writes = [
        ("group_messages", "/v1/groups/7/messages", &text),
        ("group_messages", "/v1/groups/8/messages", &text),
        ("inbox", "/v1/users/2/inbox", &text),
        ("notifications", "/v1/notifications", &notification),
        ("grouped_notifications", "/v1/notifications", &notification),
        ("notices", "/v1/broadcasts/system", &notice),
        ("idempotency_keys", "/v1/notifications", &notification),
        ("idempotency_keys", "/v1/broadcasts/system", &notice),
    ];
    for (table, path, body) in writes {
        hand.execute(sqlx::AssertSqlSafe(refuse(table))).await.unwrap();
        let before = cluster.log().matches("refused by hand").count();
        let reply = client.post_once(path, &format!("{table}{path}"), body).await;
        assert!(reply.status.is_server_error(), "{path}: {}", reply.text);
        assert!(cluster.log().matches("refused by hand").count() > before, "{path} fails at {table}");
        hand.execute(sqlx::AssertSqlSafe(format!("drop trigger refuse on {table}"))).await.unwrap();
        assert!(client.post_once(path, &format!("{table}{path}"), body).await.status.is_success(), "it is written after all");
    }
    let id = client.get("/v1/users/2/notifications").await.ok()["items"][0]["notification_id"].as_str().unwrap().to_owned();
    hand.execute("create trigger refuse before update on notifications for each row execute function refuse()").await.unwrap();
    let edit = json!({"content": format!("{MARKER} edited"), "data": {MARKER: MARKER}});
    assert!(client.put(&format!("/v1/notifications/{id}"), &edit).await.status.is_server_error());
    hand.execute("drop trigger refuse on notifications").await.unwrap();
    client.put(&format!("/v1/notifications/{id}"), &edit).await.ok();
    let log = cluster.log();
    assert!(log.contains("STATEMENT:"), "the log has the statements that failed");
    let shown = log.lines().find(|line| line.contains("hush"));
    assert_eq!(shown, None);
    // What was written is what was sent.
    let sent = client.get("/v1/users/2/inbox").await.ok();
    assert!(sent["items"].as_array().unwrap().iter().all(|row| row["content"] == MARKER), "{sent}");
    assert_eq!(client.get("/v1/groups/7/messages").await.ok()["items"][0]["content"], MARKER);
    assert_eq!(client.get("/v1/broadcasts/system").await.ok()["items"][0]["data"], json!({MARKER: MARKER}));
    let entry = client.get("/v1/users/2/notifications").await.ok()["items"][0].clone();
    assert_eq!((&entry["title"], &entry["content"], &entry["data"]), (&json!(MARKER), &edit["content"], &json!({MARKER: MARKER})));
    node.stop().await;
}
