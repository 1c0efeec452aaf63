//! Notifications that an earlier version stored, when they were still called messages.

use serde_json::{Value, json};

use super::grouping::like;
use super::{mark, send, seqs};
use crate::both_tiers;
use crate::support::Hand;

/// The last migration before the rename.
const BEFORE: i64 = 12;

/// The last migration before entries.
const BEFORE_ENTRIES: i64 = 46;

const READ: &str = "1887436800000000001";
const UNREAD: &str = "1887436800000000002";
const DELETED: &str = "1887436800000000003";

/// What in the schema has "message" in its name: tables, indexes and columns.
async fn called_messages(hand: &mut Hand) -> Vec<String> {
    let rows: Vec<(String,)> = match hand {
        Hand::Sqlite(conn) => {
            let sql = "select name from sqlite_schema where name like '%message%'
                union all select c.name from sqlite_schema s join pragma_table_info(s.name) c where c.name like '%message%'
                order by name";
            sqlx::query_as(sql).fetch_all(conn).await.unwrap()
        }
        Hand::Postgres(conn) => {
            let sql = "select c.relname::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname like '%message%'
                union all select a.attname::text from pg_attribute a join pg_class c on c.oid = a.attrelid
                where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attname like '%message%'
                order by name";
            sqlx::query_as(sql).fetch_all(conn).await.unwrap()
        }
    };
    rows.into_iter().map(|(name,)| name).collect()
}

both_tiers! {
    async fn messages_of_an_earlier_version_become_notifications(world: World) {
        let mut hand = Hand::earlier(&world, BEFORE).await;
        let stored = r#"{"title":"Hello","content":"World"}"#;
        hand.run(&format!("insert into messages (message_id, type, content, created_at, recipients, withdrawn) values
            ({READ}, 'notice', '{stored}', 1800000000000, 2, 0),
            ({UNREAD}, 'notice', '{stored}', 1800000000000, 1, 0),
            ({DELETED}, 'mail', '{stored}', 1800000000000, 1, 0)")).await;
        hand.run(&format!("insert into message_receivers (user_id, seq, message_id, type, read_at, gone) values
            (1, 1, {READ}, 'notice', 1800000001500, 0),
            (1, 2, {UNREAD}, 'notice', 0, 0),
            (1, 3, {DELETED}, 'mail', 0, 1),
            (2, 1, {READ}, 'notice', 0, 0)")).await;
        hand.run("insert into message_types (user_id, type, unread) values (1, 'notice', 1), (1, 'mail', 0), (2, 'notice', 1)").await;
        hand.run("insert into users (user_id, revision, counters, message_seq) values (1, 7, 0, 3), (2, 1, 0, 1)").await;

        let node = world.node().await;
        let client = &node.client;
        let summary = client.summary(1).await;
        assert_eq!((&summary["notifications"], &summary["total"]), (&json!({"mail": {"unread": 0, "unseen": 0}, "notice": {"unread": 1, "unseen": 1}}), &json!(1)));
        assert_eq!((seqs(client, 1, "").await, seqs(client, 1, "&status=unread").await), (vec![2, 1], vec![2]));
        let shown = client.get(&format!("/v1/notifications/{READ}")).await.ok();
        let expected: [(&str, Value); 8] = [
            ("notification_id", json!(READ)),
            ("type", json!("notice")),
            ("title", json!("Hello")),
            ("content", json!("World")),
            ("created_at", json!("2027-01-15T08:00:00.000Z")),
            ("modified_at", json!("2027-01-15T08:00:00.000Z")),
            ("recipient_count", json!(2)),
            ("read_count", json!(1)),
        ];
        assert_eq!(shown, expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>());
        mark(client, 1, DELETED, "read").await.problem(410, "gone");
        assert_eq!(mark(client, 1, UNREAD, "read").await.ok()["unread"], 0);
        send(client, "notice", &[1, 2]).await;
        assert_eq!((seqs(client, 1, "").await, seqs(client, 2, "").await), (vec![4, 2, 1], vec![2, 1]), "numbers go on");
        client.delete(&format!("/v1/notifications/{READ}")).await;
        assert_eq!(client.summary(2).await["notifications"], json!({"notice": {"unread": 1, "unseen": 1}}));

        let left = called_messages(&mut hand).await;
        assert!(left.iter().all(|name| name.starts_with("group_message")) && left.contains(&"group_messages".to_owned()), "{left:?}");
        node.stop().await;
    }

    async fn notifications_of_an_earlier_version_become_entries(world: World) {
        let mut hand = Hand::earlier(&world, BEFORE_ENTRIES).await;
        let stored = r#"{"title":"Hello","content":"World"}"#;
        hand.run(&format!("insert into notifications (notification_id, type, content, created_at, recipients, withdrawn) values
            ({READ}, 'notice', '{stored}', 1800000000000, 2, 0),
            ({UNREAD}, 'notice', '{stored}', 1800000000000, 1, 0),
            ({DELETED}, 'mail', '{stored}', 1800000000000, 1, 1)")).await;
        hand.run(&format!("insert into notification_receivers (user_id, seq, notification_id, type, read_at, gone) values
            (1, 1, {READ}, 'notice', 1800000001500, 0),
            (1, 2, {UNREAD}, 'notice', 0, 0),
            (1, 3, {DELETED}, 'mail', 0, 1),
            (2, 1, {READ}, 'notice', 0, 0)")).await;
        hand.run("insert into notification_types (user_id, type, unread) values (1, 'notice', 1), (1, 'mail', 0), (2, 'notice', 1)").await;
        hand.run("insert into users (user_id, version, revision, notification_seq) values (1, 1, 7, 3), (2, 1, 1, 1)").await;

        let node = world.node().await;
        let client = &node.client;
        let numbers = json!({"mail": {"unread": 0, "unseen": 0}, "notice": {"unread": 1, "unseen": 1}});
        assert_eq!(client.summary(1).await["notifications"], numbers, "nobody has seen the list yet");
        let page = client.get("/v1/users/1/notifications").await.ok();
        let shown = page["items"].as_array().unwrap();
        assert_eq!(shown.iter().map(|item| (item["id"].as_str().unwrap(), item["seq"].as_i64().unwrap())).collect::<Vec<_>>(), [(UNREAD, 2), (READ, 1)]);
        for item in shown {
            assert_eq!((&item["notification_id"], &item["count"], &item["actors"]), (&item["id"], &json!(1), &json!([])));
            assert_eq!([&item["created_at"], &item["updated_at"]], ["2027-01-15T08:00:00.000Z"; 2]);
        }
        assert_eq!((&shown[1]["read_at"], &shown[0]["seen"], &shown[1]["seen"]), (&json!("2027-01-15T08:00:01.500Z"), &json!(false), &json!(true)));
        assert_eq!(client.post("/v1/users/1/notifications/seen", &json!({})).await.ok()["unseen"], 0);
        like(client, "post:1", Some(7), &[1, 2]).await;
        assert_eq!((seqs(client, 1, "").await, seqs(client, 1, "&status=unseen").await), (vec![4, 2, 1], vec![4]));
        assert_eq!(client.get(&format!("/v1/notifications/{READ}")).await.ok()["read_count"], 1);
        client.delete(&format!("/v1/notifications/{UNREAD}")).await;
        mark(client, 1, UNREAD, "read").await.problem(410, "gone");
        mark(client, 1, DELETED, "read").await.problem(410, "gone");
        assert_eq!(client.summary(1).await["total"], 1);
        node.stop().await;
    }
}
