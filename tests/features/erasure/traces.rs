//! Nothing names an erased user any more: no row, no entry of the cache, no event; and others have what
//! they would have without it.

use deadpool_redis::redis::{self, Value as Reply};
use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _};

use super::left::assert_tombstones;
use super::routes::{routes, send};
use super::world::{ERASED, Seed, shown};
use super::{erase, erased, node};
use crate::both_tiers;
use crate::maintenance::import::headmark;
use crate::support::{Client, Hand, Node, Tier, World, eventually, eventually_within};

/// The forms in which rows may name the user: in digits, and as eight bytes.
fn forms() -> [String; 3] {
    let hex = |bytes: [u8; 8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [ERASED.to_string(), hex(ERASED.to_be_bytes()), hex(ERASED.to_le_bytes())]
}

/// The tables and columns that name the user.
pub async fn named_in_tables(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    match Hand::on(world).await {
        Hand::Sqlite(mut conn) => {
            let columns = "select m.name, c.name from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table'";
            let columns: Vec<(String, String)> = sqlx::query_as(columns).fetch_all(&mut conn).await.unwrap();
            for (table, column) in columns {
                let [digits, be, le] = forms();
                let sql = format!(
                    "select count(*) from \"{table}\" where cast(\"{column}\" as text) like '%{digits}%'
                        or lower(hex(\"{column}\")) like '%{be}%' or lower(hex(\"{column}\")) like '%{le}%'"
                );
                let (rows,): (i64,) = sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut conn).await.unwrap();
                if rows > 0 {
                    found.push(format!("{table}.{column}"));
                }
            }
        }
        Hand::Postgres(mut conn) => {
            let tables = "select relname::text from pg_class
                where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition";
            let tables: Vec<(String,)> = sqlx::query_as(tables).fetch_all(&mut conn).await.unwrap();
            for (table,) in tables {
                let like = forms().map(|form| format!("t::text like '%{form}%'")).join(" or ");
                let rows =
                    sqlx::query(AssertSqlSafe(format!("select t::text from {table} t where {like}"))).fetch_all(&mut conn).await.unwrap();
                found.extend(rows.iter().map(|row| format!("{table}: {}", row.get::<String, _>(0))));
            }
        }
    }
    found
}

/// A reply as text, in which the bytes that stand for digits are those digits.
fn digits_shown(reply: Reply) -> String {
    match reply {
        Reply::Array(replies) => replies.into_iter().map(|reply| digits_shown(reply) + ",").collect(),
        Reply::BulkString(bytes) => bytes
            .into_iter()
            .filter(|byte| *byte != 0xfe)
            .map(|byte| match byte {
                0x80..0xe4 => format!("{:02}", byte - 0x80),
                0xe4..0xee => format!(" {}", byte - 0xe4),
                _ => char::from(byte).to_string(),
            })
            .collect(),
        other => format!("{other:?}"),
    }
}

/// The keys of Redis that name the user, in their names or in what they hold.
async fn named_in_redis(world: &World) -> Vec<String> {
    if world.tier == Tier::Embedded {
        return Vec::new();
    }
    let client = redis::Client::open(world.redis_url.as_str()).unwrap();
    let mut conn = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut conn).await.unwrap();
    let mut found = Vec::new();
    for key in keys.into_iter().filter(|key| key.starts_with(&world.prefix) || *key == world.event_stream()) {
        let kind: String = redis::cmd("TYPE").arg(&key).query_async(&mut conn).await.unwrap();
        let read = match kind.as_str() {
            "hash" => redis::cmd("HGETALL").arg(&key).query_async(&mut conn).await,
            "string" => redis::cmd("GET").arg(&key).query_async(&mut conn).await,
            _ => Ok(Reply::Nil),
        };
        let mut held = vec![digits_shown(read.unwrap_or(Reply::Nil))];
        if kind == "stream" {
            let entries = redis::cmd("XRANGE").arg(&key).arg("-").arg("+").query_async(&mut conn).await;
            let entries: Vec<(String, Vec<String>)> = entries.unwrap();
            assert!(!entries.is_empty(), "the stream has events of others");
            held = entries.into_iter().map(|(_, fields)| fields.concat()).filter(|event| !event.contains("user_erased")).collect();
        }
        found.extend(held.into_iter().chain([key]).filter(|text| text.contains(&ERASED.to_string())));
    }
    found
}

/// The events that name the user.
async fn named_in_events(client: &Client) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/v1/events?after={after}&limit=100")).await.ok();
        let events = page["items"].as_array().unwrap().iter().map(ToString::to_string);
        found.extend(events.filter(|event| event.contains(&ERASED.to_string())));
        after = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return found;
        }
    }
}

/// That nothing names the user but the one event.
pub async fn assert_forgotten(world: &World, client: &Client) {
    let mut named = named_in_tables(world).await;
    named.retain(|place| !(place.starts_with("events") && (world.tier == Tier::Embedded || place.contains("user_erased"))));
    assert_eq!(named, Vec::<String>::new());
    let events = named_in_events(client).await;
    assert!(events.len() == 1 && events[0].contains("user_erased"), "{events:?}");
    let mut left = Vec::new();
    eventually_within(20, "Redis has forgotten the user", async || {
        left = named_in_redis(world).await;
        left.is_empty()
    })
    .await;
}

async fn seeded(world: &World, all: bool) -> Node {
    let node = node(world).await;
    Seed { client: &node.client, all }.plant().await;
    node
}

both_tiers! {
    async fn nothing_names_an_erased_user_and_others_have_what_they_would_without_it(world: World) {
        let other = World::new(world.tier).await;
        let without = seeded(&other, false).await;
        let expected = shown(&without.client).await;
        without.stop().await;

        let node = seeded(&world, true).await;
        assert!(named_in_tables(&world).await.len() > 20, "it was everywhere");
        let location = erase(&node.client, ERASED).await;
        erased(&node.client, &location).await;
        let got = shown(&node.client).await;
        let mut wrong = Vec::new();
        for (user, of) in expected.as_object().unwrap() {
            let differs = of.as_object().unwrap().iter().filter(|(what, expected)| got[user][what] != **expected);
            wrong.extend(differs.map(|(what, expected)| format!("{what} of user {user}: {} instead of {expected}", got[user][what])));
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert_tombstones(&node.client).await;
        assert_forgotten(&world, &node.client).await;
        // Nor do requests that still name it leave anything.
        let mut late = routes(ERASED);
        late.push((Method::POST, "/v1/posts".into(), json!({"items": [{"creator_id": ERASED.to_string(), "post_id": "late"}]})));
        late.push((Method::POST, "/v1/badges/increment".into(), json!({"items": [{"user_id": ERASED.to_string(), "badge": "like"}]})));
        for route in late {
            send(&node.client, &route).await;
        }
        assert_forgotten(&world, &node.client).await;
        node.stop().await;
        let ran = headmark(&world, &["recount", "--dry-run"], false, &[], Vec::new()).await;
        assert!(ran.out.contains("nothing differs"), "{ran:?}");
    }
}

/// What SQLite deletes may stay in the pages of its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_sqlite_does_not_hold_what_is_erased() {
    let world = World::new(Tier::Embedded).await;
    let mut process = world.process(&[], &[]).await;
    let client = process.client.clone();
    // Long ones lie on pages of their own.
    for content in ["a secret of theirs".to_owned(), "a long secret of theirs ".repeat(400)] {
        let body = json!({"sender_id": 3, "client_id": content.len().to_string(), "content": content});
        client.post("/v1/users/2/inbox", &body).await.ok();
    }
    for user in [2, 3] {
        let location = erase(&client, user).await;
        erased(&client, &location).await;
    }
    // One that is killed puts nothing in order.
    process.kill().await;
    assert!(!holding(&world).is_empty(), "the log has it");
    let mut process = world.process(&[], &[]).await;
    eventually("the first sweep clears it", async || holding(&world).is_empty()).await;
    process.kill().await;
}

/// The files that hold the secret.
fn holding(world: &World) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(&world.dir).unwrap().map(|file| file.unwrap().path());
    let holds = |file: &std::path::PathBuf| std::fs::read(file).unwrap().windows(16).any(|window| window == b"secret of theirs");
    files.filter(holds).collect()
}
