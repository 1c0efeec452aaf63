//! Events that name a user who is erased: they go, and their numbers stay.

use serde_json::value::RawValue;

use super::publisher::{GONE, Publisher};
use super::store;
use crate::base::error::{Error, Fault, Result};
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::engine::erased::names_user;

/// How many rows are read at once, each of which may hold the events of a whole batch; and after how many a batch has
/// done enough.
const ROWS_AT_ONCE: i64 = 50;
const ENOUGH_ROWS: i64 = 500;

/// After how many events of rows that may name the user it has, too.
const ENOUGH_EVENTS: i64 = 5000;

/// From how many events on they go from the stream, before the batch looks at further ones: Postgres ends a transaction
/// that waits for Redis for too long.
const STREAMED_AT_ONCE: usize = 500;

/// With the contents of rows that may name the user.
static LOOK: Statement = Statement::one(
    "select e.batch_id, e.first_id, e.size, case when e.content like $3 then e.content else '' end
    from events e
    where e.batch_id > $1
    order by e.batch_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int), ("pattern", Type::Text)],
);

static SAVE: Statement = Statement::new(
    "update events
    set content = r.content
    from {rows} r
    where events.batch_id = r.batch_id",
    &[("batch_id", Type::Int), ("content", Type::Text)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&LOOK, &SAVE]
}

/// A row of [`LOOK`].
type Row = (i64, i64, i64, String);

impl Publisher {
    /// Forgets events that name a user, in some rows after this one, and on the stream in Redis. The
    /// event that the user is erased stays. The last row that was looked at; None where these were all.
    ///
    /// # Errors
    /// Those of the stores.
    pub async fn forget_user(&self, user: &str, after: i64) -> Result<Option<i64>> {
        let mut conn = self.db.connect().await?;
        conn.begin().await?;
        // Nobody numbers or appends meanwhile.
        store::lock_head(&mut conn).await?;
        let (mut last, mut rows, mut events, mut gone) = (after, 0, 0, Vec::new());
        let next = 'batch: loop {
            let found = look(&mut conn, user, last).await?;
            let is_full = i64::try_from(found.len()).unwrap_or(i64::MAX) >= ROWS_AT_ONCE;
            for (batch, first, size, content) in found {
                last = batch;
                if content.is_empty() {
                    continue;
                }
                gone.extend(forget_in_row(&mut conn, user, (batch, first), &content).await?);
                if gone.len() >= STREAMED_AT_ONCE {
                    self.take_off_stream(&mut conn, &mut gone).await?;
                }
                events += size;
                if events >= ENOUGH_EVENTS {
                    break 'batch Some(last);
                }
                // To read a full row takes a while.
                tokio::task::yield_now().await;
            }
            rows += ROWS_AT_ONCE;
            if !is_full || rows >= ENOUGH_ROWS {
                break is_full.then_some(last);
            }
        };
        self.take_off_stream(&mut conn, &mut gone).await?;
        conn.commit().await?;
        Ok(next)
    }

    /// Before the commit: should the node die, the rows still say which they are.
    async fn take_off_stream(&self, conn: &mut Conn, gone: &mut Vec<i64>) -> Result<()> {
        if let Some(stream) = self.stream.as_ref().filter(|_| !gone.is_empty()) {
            conn.send().await?;
            self.cache.remove(stream, gone).await.map_err(|_| Error::store_unavailable())?;
        }
        gone.clear();
        Ok(())
    }
}

/// Some rows after this one.
async fn look(conn: &mut Conn, user: &str, after: i64) -> DbResult<Vec<Row>> {
    let pattern = Column::Text(vec![format!("%\"{user}\"%")]);
    conn.fetch(&LOOK, &[Column::Int(vec![after]), Column::Int(vec![ROWS_AT_ONCE]), pattern]).await
}

/// Forgets events of a row. The numbers of these that may be on the stream.
async fn forget_in_row(conn: &mut Conn, user: &str, (batch, first): (i64, i64), content: &str) -> Result<Vec<i64>> {
    let (content, mut gone) = without_user(content, first, user).map_err(|error| Error::from(Fault::Bug(error.to_string())))?;
    if !gone.is_empty() {
        save(conn, batch, content).await?;
    }
    gone.retain(|_| first > 0);
    Ok(gone)
}

async fn save(conn: &mut Conn, batch: i64, content: String) -> DbResult<()> {
    conn.later(&SAVE, &[Column::Int(vec![batch]), Column::Text(vec![content])]).await
}

/// The events of a row without those that name a user, and the numbers of these.
fn without_user(content: &str, first: i64, user: &str) -> serde_json::Result<(String, Vec<i64>)> {
    let mut events: Vec<Box<RawValue>> = serde_json::from_str(content)?;
    let (id_as_json, mut gone) = (format!("\"{user}\""), Vec::new());
    for (id, event) in (first..).zip(&mut events).filter(|(_, event)| event.get().contains(&id_as_json)) {
        let value: serde_json::Value = serde_json::from_str(event.get())?;
        if value.get("type").is_none_or(|kind| kind != "user_erased") && names_user(&value, user) {
            *event = RawValue::from_string(GONE.to_owned())?;
            gone.push(id);
        }
    }
    Ok((serde_json::to_string(&events)?, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_those_that_stay_are_the_same() {
        let row = r#"[{"type":"post","data":{"user_id":"42"}},{"type":"post","data":{"user_id":"7","post_id":"42"}},{"type":"user_erased","data":{"user_id":"42"}}]"#;
        let (left, gone) = without_user(row, 10, "42").unwrap();
        assert_eq!(gone, [10]);
        assert_eq!(left, row.replacen(r#"{"type":"post","data":{"user_id":"42"}}"#, "null", 1));
        assert_eq!(without_user(&left, 10, "42").unwrap(), (left.clone(), Vec::new()), "once");
    }
}
