//! A distributed database that is there already, for `make test-distributed`: all tests use it, one
//! after the other, each from its beginning.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Its URL, if the tests are to use one.
pub fn database() -> Option<String> {
    std::env::var("HEADMARK_TEST_DISTRIBUTED").ok()
}

/// Whether a database's name has the word `test`, as scripts/test-distributed.sh wants it.
fn is_for_tests(name: &str) -> bool {
    name.split('_').any(|word| word == "test")
}

#[test]
fn only_a_database_with_the_word_test_in_its_name_is_for_tests() {
    for name in ["test", "test_headmark", "headmark_test", "a_test_b"] {
        assert!(is_for_tests(name), "{name}");
    }
    for name in ["", "headmark", "latest", "contest", "latest_orders", "testing", "tests"] {
        assert!(!is_for_tests(name), "{name}");
    }
}

/// Removes all rows but those that migrations make. Its name must say that it is for tests.
pub async fn empty(url: &str) -> String {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let (name,): (String,) = sqlx::query_as("select current_database()::text").fetch_one(&mut conn).await.unwrap();
    assert!(
        is_for_tests(&name),
        "HEADMARK_TEST_DISTRIBUTED names the database '{name}', whose rows would all be deleted: name one with the word 'test' in its name"
    );
    let tables = "select string_agg(relname, ', ') from pg_class c join pg_dist_partition p on p.logicalrelid = c.oid
        where relnamespace = current_schema()::regnamespace";
    let (tables,): (Option<String>,) = sqlx::query_as(tables).fetch_one(&mut conn).await.unwrap();
    let tables = tables.expect("distributed tables: run `headmark migrate --distribute` first");
    let rows = "insert into cache_guard (id, epoch, bypass_until, run_id) values (1, 1, 0, '');
        insert into event_head (id, head, floor, streamed) values (1, 0, 0, 0);
        insert into unread_progress (id, event_id, expired_at) values (1, 0, 0)";
    conn.execute(AssertSqlSafe(format!("truncate {tables}"))).await.unwrap();
    conn.execute(rows).await.unwrap();
    url.to_owned()
}
