//! A distributed database that is there already, for `make test-distributed`: all tests use it, one
//! after the other, each from its beginning.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// Its URL, if the tests are to use one.
pub fn database() -> Option<String> {
    std::env::var("HEADMARK_TEST_DISTRIBUTED").ok()
}

/// Removes all rows but those that migrations make. Its name must say that it is for tests.
pub async fn empty(url: &str) -> String {
    let name = url.split('?').next().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
    assert!(
        name.contains("test"),
        "HEADMARK_TEST_DISTRIBUTED names the database '{name}', whose rows would all be deleted: name one with 'test' in its name"
    );
    let mut conn = PgConnection::connect(url).await.unwrap();
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
