//! The export of a user: everything that is kept, and nothing that others keep secret from the user.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use headmark::base::clock::Clock;
use headmark::maintenance::user_export::{LEFT_OUT, NOT_EXPORTED, ROWS_LEFT_OUT, parts};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Executor as _, Row as _};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, Tier, World, eventually};

/// The lines of an export without the last one, which says how many there are.
async fn export(service: &Client, user: i64) -> Vec<Value> {
    let reply = service.get(&format!("/v1/users/{user}/export")).await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("content-type"), reply.header("cache-control")),
        (200, "application/x-ndjson", "no-store")
    );
    let mut lines: Vec<Value> = reply.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(reply.text.ends_with('\n'));
    assert_eq!(lines.pop().unwrap(), json!({"kind": "end", "lines": lines.len()}));
    lines
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

async fn patch(service: &Client, path: &str, body: Value) {
    Client::send(service.request(Method::PATCH, path).json(&body)).await.ok();
}

/// The columns of every table of a database.
async fn columns(world: &World) -> BTreeSet<(String, String)> {
    let rows: Vec<(String, String)> = match Hand::on(world).await {
        Hand::Sqlite(mut conn) => {
            let sql = "select m.name, c.name from sqlite_master m join pragma_table_info(m.name) c
                where m.type = 'table' and m.name not like 'sqlite%'";
            conn.fetch_all(sql).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
        }
        Hand::Postgres(mut conn) => {
            let sql = "select c.relname::text, a.attname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
                where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
                    and a.attnum > 0 and not a.attisdropped";
            conn.fetch_all(sql).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
        }
    };
    rows.into_iter().filter(|(table, _)| !table.starts_with("_sqlx")).collect()
}

/// Whether a statement names a column, as in `u.revision`.
fn names(text: &str, column: &str) -> bool {
    text.split(&format!(".{column}")).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// A user with something of every kind, and others who keep something from the user.
async fn fill(service: &Client, user: &Client) {
    let secret = json!({"visibility": "secret"});
    patch(service, "/v1/users/6/settings", json!({"approve_follows": true})).await;
    patch(service, "/v1/users/1/settings", json!({"approve_follows": true, "lists": "followers", "not_in_total": ["counters.like"]})).await;
    service.post("/v1/users/1/badges/mention/increment", &json!({"by": 3})).await.ok();
    service.post("/v1/users/1/badges/mention/reset", &json!({"up_to": 2})).await.ok();
    service.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok();
    service.post("/v1/users/1/broadcasts/system/read", &json!({})).await.ok();
    service.post("/v1/dots/mall/light", &json!({})).await.ok();
    service.post("/v1/users/1/dots/mall/clear", &json!({})).await.ok();
    service.put("/v1/views/home/1/items/i1", &json!({})).await.ok();
    service.post("/v1/users/1/views/home/1/access", &json!({})).await.ok();
    service.put("/v1/users/1/posts/p1", &json!({})).await.ok();
    service.put("/v1/users/1/posts/p2", &json!({})).await.ok();
    service.delete("/v1/users/1/posts/p2").await;
    // Those of whom the user may know, and those of whom not.
    service.put("/v1/users/2/posts/q1", &json!({})).await.ok();
    service.follow(1, 2).await;
    service.put("/v1/users/1/following/3", &secret).await.ok();
    service.put("/v1/users/1/following/6", &json!({})).await.ok();
    service.post("/v1/users/1/feed/reset", &json!({})).await.ok();
    patch(service, "/v1/users/1/settings", json!({"approve_follows": false})).await;
    service.follow(4, 1).await;
    service.put("/v1/users/5/following/1", &secret).await.ok();
    patch(service, "/v1/users/1/settings", json!({"approve_follows": true})).await;
    service.put("/v1/users/7/following/1", &json!({})).await.ok();
    service.put("/v1/users/1/blocks/8", &json!({})).await.ok();
    service.put("/v1/users/1/mutes/9", &json!({})).await.ok();
    service.put("/v1/users/777/blocks/1", &json!({})).await.ok();
    service.put("/v1/users/778/mutes/1", &json!({})).await.ok();
    let blocks = Client::send(service.request(Method::PUT, "/v1/users/779/blocks/1").header("prefer", "respond-async")).await;
    assert_eq!(blocks.status, 202);
    let notification = json!({"type": "like", "title": "n1", "recipients": [1], "group_key": "g", "actor_id": 2});
    service.post("/v1/notifications", &notification).await.ok();
    service.post("/v1/notifications", &json!({"type": "notice", "title": "n2", "recipients": [1]})).await.ok();
    let gone = service.post("/v1/notifications", &json!({"type": "notice", "title": "hush", "recipients": [1]})).await.ok();
    service.delete(&format!("/v1/notifications/{}", gone["notification_id"].as_str().unwrap())).await;
    service.put("/v1/groups/9", &json!({"delivery": "write"})).await.ok();
    service.post("/v1/groups/9/members", &json!({"user_ids": [1, 2]})).await.ok();
    for (sender, id) in [(1, "c1"), (1, "c2"), (2, "c3")] {
        service.post("/v1/groups/9/messages", &json!({"sender_id": sender, "client_id": id, "content": format!("says {id}")})).await.ok();
    }
    service.delete("/v1/groups/9/messages/2").await;
    service.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "d1", "content": "hello"})).await.ok();
    service.post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "d2", "content": "hi"})).await.ok();
    service.put("/v1/users/1/devices/phone", &json!({"push": true})).await.ok();
    service.put("/v1/users/1/devices/phone/cursor", &json!({"seq": 2})).await.ok();
    let accepted = Client::send(user.request(Method::PUT, "/v1/users/1/following/10").header("prefer", "respond-async")).await;
    assert_eq!(accepted.status, 202);
}

both_tiers! {
    /// A table or a column that somebody adds is exported, or named with a reason.
    async fn every_column_is_exported_or_named(world: World) {
        let node = world.node().await;
        let columns = columns(&world).await;
        let tables: BTreeSet<_> = columns.iter().map(|(table, _)| table.as_str()).collect();
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for part in parts() {
            for table in part.tables {
                texts.entry(table).or_default().push_str(part.statement.postgres());
            }
        }
        let not_exported: BTreeSet<_> = NOT_EXPORTED.iter().map(|(table, _)| *table).collect();
        assert_eq!(not_exported.len(), NOT_EXPORTED.len(), "a table has one reason");
        let covered: BTreeSet<_> = texts.keys().copied().collect();
        assert_eq!(covered.intersection(&not_exported).next(), None, "both exported and not");
        assert_eq!(covered.union(&not_exported).copied().collect::<BTreeSet<_>>(), tables, "exported or named, and there");
        let mut left_out: BTreeSet<_> = LEFT_OUT.iter().map(|(column, _)| (*column).to_owned()).collect();
        assert!(LEFT_OUT.iter().chain(NOT_EXPORTED).chain(ROWS_LEFT_OUT).all(|(_, why)| !why.is_empty()));
        assert!(ROWS_LEFT_OUT.iter().all(|(table, _)| covered.contains(table)), "of the rest of the table there are lines");
        let mut missing = Vec::new();
        for (table, column) in columns.iter().filter(|(table, _)| texts.contains_key(table.as_str())) {
            let name = format!("{table}.{column}");
            if !names(&texts[table.as_str()], column) && !left_out.remove(&name) {
                missing.push(name);
            }
        }
        assert_eq!(missing, Vec::<String>::new(), "a line has them, or LEFT_OUT names them");
        assert_eq!(left_out, BTreeSet::new(), "named, and exported or not there");
        node.stop().await;
    }

    async fn it_has_everything_of_the_user_and_no_secret_of_others(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (service, user) = (node.service(), node.user(1));
        assert_eq!(export(&service, 1).await, Vec::<Value>::new(), "a user never seen");
        fill(&service, &user).await;
        let key = json!({"type": "notice", "title": "x", "recipients": [1]});
        service.post_once("/v1/notifications", "key-of-a-service", &key).await.ok();
        user.post_once("/v1/groups/9/messages", "key-1", &json!({"sender_id": "me", "client_id": "c4", "content": "says c4"})).await;
        eventually("what was accepted is done", async || of_kind(&export(&service, 1).await, "operation").iter().all(|line| line["status"] == 1)).await;
        let lines = export(&service, 1).await;
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        for secret in ["\"777\"", "\"778\"", "\"779\"", "key-of-a-service", "hush", "says c2", "says c3"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        // Every kind that the documents can say of a user, in their order.
        let mut kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        kinds.dedup();
        let mut all: Vec<_> = parts().iter().map(|part| part.kind).collect();
        all.dedup();
        all.retain(|kind| !["approval_end", "imported_member", "idempotency_key"].contains(kind));
        kinds.retain(|kind| *kind != "idempotency_key");
        assert_eq!(kinds, all, "{text}");
        let one = |kind: &str| -> Value {
            let mut line = (*of_kind(&lines, kind).first().unwrap_or_else(|| panic!("{kind}: {text}"))).clone();
            line.as_object_mut().unwrap().remove("kind");
            line
        };
        let users = |kind: &str| of_kind(&lines, kind).iter().map(|line| line["user_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        let own = one("user");
        assert_eq!(own["settings"], json!({"not_in_total": ["counters.like"], "share_receipts": true, "approve_follows": true, "lists": "followers", "push": true}));
        assert_eq!(own["counters"][0], json!({"badge": "mention", "head": 3, "read_up_to": 2, "unread": 1}));
        assert_eq!((&own["broadcasts"], &own["dots"]), (&json!([{"channel": "system", "read_up_to": 1}]), &json!([{"dot": "mall", "cleared_up_to": 1}])));
        assert_eq!(one("view")["view"], "home:1");
        assert_eq!(of_kind(&lines, "post").iter().map(|post| (post["post_id"].as_str(), post["deleted"] == true)).collect::<Vec<_>>(), [(Some("p1"), false), (Some("p2"), true)]);
        assert_eq!(one("feed"), json!({"seen": [{"user_id": "2", "posts": 1}]}));
        assert_eq!((users("following"), users("sent_request"), users("follow_request")), (vec!["2".into(), "3".into(), "10".into()], vec!["6".into()], vec!["7".into()]));
        assert_eq!(of_kind(&lines, "following")[1]["secret"], true);
        let followers: BTreeSet<_> = of_kind(&lines, "follower").iter().map(|line| (line["user_id"].as_str().unwrap(), line["secret"] == true)).collect();
        assert_eq!(followers, BTreeSet::from([("4", false), ("5", true)]));
        assert_eq!((users("block"), users("mute")), (vec!["8".into()], vec!["9".into()]));
        assert_eq!(one("own_relation_counts"), json!({"secret": 1, "special": 0, "blocked": 1, "requests_sent": 1}));
        assert_eq!(one("follower_counts"), json!({"followers": 2, "mutuals": 0, "requests": 1}));
        let notifications: Vec<_> = of_kind(&lines, "notification").iter().map(|line| (line["content"]["title"].as_str(), line["deleted"] == true)).collect();
        assert_eq!(notifications, [(Some("n1"), false), (Some("n2"), false), (None, true), (Some("x"), false)]);
        assert_eq!(one("grouped_notification")["actor_id"], "2");
        assert_eq!((&one("membership")["group_id"], &one("membership")["ordinal"]), (&json!("9"), &json!(1)));
        let messages: Vec<_> = of_kind(&lines, "group_message").iter().map(|line| (line["client_id"].as_str().unwrap(), line["content"].as_str())).collect();
        assert_eq!(messages, [("c1", Some("says c1")), ("c2", None), ("c4", Some("says c4"))]);
        let inbox: Vec<_> = of_kind(&lines, "inbox").iter().filter(|line| !line["peer_id"].is_null()).map(|line| (line["own"] == true, line["client_id"].as_str(), line["content"].as_str())).collect();
        assert_eq!(inbox, [(true, Some("d1"), Some("hello")), (false, None, Some("hi"))]);
        assert_eq!((&one("device")["device_id"], &one("device")["cursor"], &one("device")["push"]), (&json!("phone"), &json!(2), &json!(true)));
        assert_eq!(one("operation")["command"]["pair"]["followee"], "10", "{text}");
        user.get("/v1/users/1/export").await.problem(403, "forbidden");
        service.get("/v1/users/0/export").await.problem(400, "invalid_path");
        node.stop().await;
    }

    async fn badges_are_shown_with_what_was_retracted_and_deleted(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for (badge, by) in [("like", 10), ("mention", 4), ("old", 7)] {
            client.post(&format!("/v1/users/1/badges/{badge}/increment"), &json!({ "by": by })).await.ok();
        }
        for at in [7, 9, 10] {
            client.post("/v1/users/1/badges/like/retract", &json!({ "at": at })).await.ok();
        }
        client.delete("/v1/users/1/badges/old").await.ok();
        let lines = export(client, 1).await;
        let own = of_kind(&lines, "user")[0];
        let like = json!({"badge": "like", "head": 10, "read_up_to": 0, "unread": 7, "retracted": "7 9-10"});
        assert_eq!(own["counters"], json!([like, {"badge": "mention", "head": 4, "read_up_to": 0, "unread": 4}]));
        assert_eq!(own["deleted_counters"], json!([{"badge": "old", "head": 7}]));
        // With no badge left, their heads are all that the user's marks have.
        for badge in ["like", "mention"] {
            client.delete(&format!("/v1/users/1/badges/{badge}")).await.ok();
        }
        let lines = export(client, 1).await;
        let own = of_kind(&lines, "user")[0];
        let heads = [("like", 10), ("mention", 4), ("old", 7)].map(|(badge, head)| json!({"badge": badge, "head": head}));
        assert_eq!((own.get("counters"), &own["deleted_counters"]), (None, &json!(heads)));
        node.stop().await;
    }

    /// Nor is a row made of who is only named by somebody whom it changes nothing for.
    async fn who_was_never_seen_has_nothing_whatever_others_do(world: World) {
        let node = world.node().await;
        node.client.put("/v1/users/1/following/6", &json!({"visibility": "secret"})).await.ok();
        node.client.delete("/v1/users/1/following/6").await;
        node.stop().await;
        // A badge is in the user's own row.
        let node = world.node_with(&["--follower-badge", "fans", "--request-badge", "asked"]).await;
        let client = &node.client;
        client.put("/v1/users/1/blocks/2", &json!({})).await.ok();
        client.delete("/v1/users/1/followers/3").await;
        client.put("/v1/users/1/follow-requests/4", &json!({})).await.problem(404, "not_found");
        client.delete("/v1/users/1/follow-requests/5").await;
        client.put("/v1/users/1/blocks/7", &json!({})).await.ok();
        client.delete("/v1/users/1/blocks/7").await;
        for user in 2..=7 {
            assert_eq!(export(client, user).await, Vec::<Value>::new(), "user {user}");
        }
        let mut hand = Hand::on(&world).await;
        hand.run("delete from users where user_id = 1").await;
        assert_eq!(hand.text("select cast(count(*) as text) from users").await, "0");
        node.stop().await;
    }

    /// Pages neither repeat nor skip, and messages of many groups follow each other.
    async fn long_lists_are_whole(world: World) {
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        // What is old may be swept meanwhile.
        let now = Clock::System.now().0;
        let numbers = "with recursive n (g) as (select 1 union all select g + 1 from n where g < 950)";
        hand.run(&format!("{numbers} insert into followers (followee_id, since, follower_id) select 1, g / 7, g + 1 from n")).await;
        hand.run(&format!("{numbers} insert into posts (user_id, post_id, seq, created_at, gone) select 1, 'p' || g, g, {now}, 0 from n")).await;
        let bytes = if world.tier == Tier::Embedded { "x''" } else { "'\\x'" };
        hand.run(&format!("{numbers} insert into memberships (group_id, ordinal, span, user_id, from_seq, to_seq, read_seq, extra, level, joined_at, at)
            select g / 10, 1, g % 10, 1, 0, 0, 0, {bytes}, 0, 5, 5 from n where g >= 10 and g < 60")).await;
        hand.run(&format!("{numbers} insert into group_messages (group_id, seq, sender_id, client_id, content, sent_at, recalled)
            select 1 + g % 3, g, 1, 'c' || g, 'text', {now}, 0 from n")).await;
        // Of others, and of a group that the user was never in.
        hand.run("insert into group_messages (group_id, seq, sender_id, client_id, content, sent_at, recalled) values (1, 2000, 2, 'c', 'text', 5, 0)").await;
        let lines = export(&node.client, 1).await;
        for (kind, field, count) in [("follower", "user_id", 950), ("post", "post_id", 950), ("group_message", "client_id", 950)] {
            let found: BTreeSet<_> = of_kind(&lines, kind).iter().map(|line| line[field].as_str().unwrap()).collect();
            assert_eq!((found.len(), of_kind(&lines, kind).len()), (count, count), "{kind}");
        }
        assert_eq!((of_kind(&lines, "membership").len(), lines.len()), (50, 3 * 950 + 50));
        node.stop().await;
    }

    /// So many at once; each ends when its caller goes away, and one that is cut off has no last line.
    async fn exports_are_bounded_and_end_with_their_callers(world: World) {
        let node = world.node_with(&["--user-exports", "1"]).await;
        let mut hand = Hand::on(&world).await;
        // More than the sockets hold.
        let (content, now) = ("x".repeat(2000), Clock::System.now().0);
        let numbers = "with recursive n (g) as (select 1 union all select g + 1 from n where g < 20000)";
        hand.run(&format!("{numbers} insert into inbox (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at)
            select 1, g, 2, 2, g, 0, 0, 0, 0, 'c' || g, '{content}', {now}, {now} from n")).await;
        let begin = async || {
            let response = node.client.request(Method::GET, "/v1/users/1/export").send().await.unwrap();
            assert_eq!(response.status(), 200);
            response
        };
        let slow = begin().await;
        node.client.get("/v1/users/2/export").await.problem(503, "overloaded");
        drop(slow);
        eventually("the place is free", async || node.client.get("/v1/users/2/export").await.status == 200).await;
        assert_eq!(export(&node.client, 1).await.len(), 20_000);

        let mut cut = begin().await;
        cut.chunk().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        hand.run("alter table inbox rename to inbox_elsewhere").await;
        let mut last = Vec::new();
        let broken = loop {
            match cut.chunk().await {
                Ok(Some(bytes)) => last = bytes.to_vec(),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert!(broken && !String::from_utf8_lossy(&last).contains("\"end\""));
        let reply = node.client.get("/v1/users/1/export").await;
        assert!(reply.status == 200 || reply.status == 500, "{reply:?}");
        hand.run("alter table inbox_elsewhere rename to inbox").await;
        eventually("it is whole again", async || node.client.get("/v1/users/2/export").await.text.ends_with("\"lines\":0}\n")).await;
        node.stop().await;
    }
}
