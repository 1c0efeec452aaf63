//! What names a user in what is kept of requests and changes: answers to idempotency keys, asynchronous
//! writes, events. There is no index of users in them, and all are kept for a bounded time: each is walked
//! through once.

use serde_json::Value;

use super::step::{Engines, Place, Progress, Step, user_of};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::{Column, Statement, Type, in_time};
use crate::engine::erased::{self, names_user};
use crate::http::caller::Caller;

/// How many rows one batch looks at.
const ROWS_AT_ONCE: i64 = 1000;

/// After how many characters of answers that may name the user it looks at no further one.
const ENOUGH_CHARS: i64 = 4 * 1024 * 1024;

/// Answers, with those that may name the user in full, up to the first with so many characters before it.
static ANSWERS: Statement = Statement::one(
    "select a.caller, a.key, a.body
    from (
        select w.caller, w.key, w.body, sum(length(w.body)) over (order by w.caller, w.key) - length(w.body) as chars_before
        from (
            select k.caller, k.key, case when k.body like $4 then k.body else '' end as body
            from idempotency_keys k
            where (k.caller, k.key) > ($1, $2)
            order by k.caller, k.key
            limit $3
        ) w
    ) a
    where a.chars_before < $5
    order by a.caller, a.key",
    &[("after_caller", Type::Text), ("after_key", Type::Text), ("max_rows", Type::Int), ("pattern", Type::Text), ("max_chars", Type::Int)],
);

/// A repeat of the request is refused from then on, as it names the user.
static REFUSE: Statement = Statement::new(
    "update idempotency_keys
    set status = 410, body = r.body
    from {rows} r
    where idempotency_keys.caller = r.caller and idempotency_keys.key = r.key",
    &[("caller", Type::Text), ("key", Type::Text), ("body", Type::Content)],
);

static DELETE_ANSWERS: Statement = Statement::one(
    "delete from idempotency_keys
    where caller = $1 and key in (select k.key from idempotency_keys k where k.caller = $1 order by k.key limit $2)",
    &[("caller", Type::Text), ("max_rows", Type::Int)],
);

/// Operations, each with whether it is about the user, or the user's own.
static OPERATIONS: Statement = Statement::one(
    "select o.seq, case when o.low_id = $3 or o.high_id = $3 or o.caller = $4 then 1 else 0 end
    from operations o
    where o.seq > $1
    order by o.seq
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int), ("user_id", Type::Int), ("caller", Type::Text)],
);

static DELETE_OPERATIONS: Statement =
    Statement::new("delete from operations where seq in (select seq from {rows} r)", &[("seq", Type::Int)]);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 5] {
    [&ANSWERS, &REFUSE, &DELETE_ANSWERS, &OPERATIONS, &DELETE_OPERATIONS]
}

/// The steps that remove what names a user there.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("operations", &["operations"], |engines, subject, place| async move {
            forget_operations(&engines, user_of(subject)?, place.id).await
        }),
        Step::new("answers", &["idempotency_keys"], |engines, subject, place| async move {
            forget_answers(&engines, user_of(subject)?, place).await
        }),
        Step::new("events", &["events"], |engines, subject, place| async move {
            let next = in_time_of(engines.events.forget_user(&user_of(subject)?.to_string(), place.id)).await?;
            Ok(next.map_or(Progress::Done, |batch| Progress::More(Place::id(batch))))
        }),
    ]
}

/// As long as the batch of a lane may take: an event log may have large rows.
async fn in_time_of<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let over = |_| crate::base::error::Error::store_unavailable();
    tokio::time::timeout(std::time::Duration::from_secs(30), work).await.map_err(over)?
}

fn caller(user: UserId) -> String {
    Caller::User { id: user }.id()
}

fn int(value: i64) -> Column {
    Column::Int(vec![value])
}

fn text(value: impl Into<String>) -> Column {
    Column::Text(vec![value.into()])
}

async fn forget_operations(engines: &Engines, user: UserId, after: i64) -> Result<Progress> {
    let columns = [int(after), int(ROWS_AT_ONCE), int(user.get()), text(caller(user))];
    let rows: Vec<(i64, i32)> = in_time(engines.db.fetch(&OPERATIONS, &columns)).await?;
    let gone: Vec<_> = rows.iter().filter(|(_, of_user)| *of_user == 1).map(|(seq, _)| *seq).collect();
    if !gone.is_empty() {
        in_time(engines.db.run(&DELETE_OPERATIONS, &[Column::Int(gone)])).await?;
    }
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS_AT_ONCE;
    Ok(rows.last().filter(|_| is_full).map_or(Progress::Done, |(seq, _)| Progress::More(Place::id(*seq))))
}

/// The user's own answers go first, and then those of others. The place has the last key, as JSON.
async fn forget_answers(engines: &Engines, user: UserId, place: Place) -> Result<Progress> {
    let own = [text(caller(user)), int(ROWS_AT_ONCE)];
    if in_time(engines.db.run(&DELETE_ANSWERS, &own)).await? > 0 {
        return Ok(Progress::More(place));
    }
    let (after_caller, after_key): (String, String) = serde_json::from_str(&place.name).unwrap_or_default();
    let columns = [text(after_caller), text(after_key), int(ROWS_AT_ONCE), text(format!("%\"{user}\"%")), int(ENOUGH_CHARS)];
    let rows: Vec<(String, String, String)> = in_time(engines.db.fetch(&ANSWERS, &columns)).await?;
    let (user, mut found) = (user.to_string(), Vec::new());
    for row in rows.iter().filter(|(.., body)| !body.is_empty()) {
        if may_name(&row.2, &user) {
            found.push(row);
        }
        // To read a large answer takes a while.
        tokio::task::yield_now().await;
    }
    if !found.is_empty() {
        let refusal = serde_json::to_string(&erased::problem([]).body()).unwrap_or_default();
        let columns = [
            Column::Text(found.iter().map(|(caller, ..)| caller.clone()).collect()),
            Column::Text(found.iter().map(|(_, key, _)| key.clone()).collect()),
            Column::Text(vec![refusal; found.len()]),
        ];
        in_time(engines.db.run(&REFUSE, &columns)).await?;
    }
    // A batch with fewer rows may have been cut short: the last one finds none.
    let next = |(caller, key, _): &(String, String, String)| {
        Progress::More(Place { name: serde_json::to_string(&(caller, key)).unwrap_or_default(), ..Place::default() })
    };
    Ok(rows.last().map_or(Progress::Done, next))
}

/// Whether an answer that has the user's id in it names the user. One that no value can hold may: earlier versions
/// kept `data` with such numbers and strings. A false hit turns one old repeat into a refusal, and nothing else.
fn may_name(body: &str, user: &str) -> bool {
    match serde_json::from_str::<Value>(body) {
        Ok(body) => names_user(&body, user),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_no_value_can_hold_may_name_the_user() {
        let answer = |data: &str| format!(r#"{{"notification_id":"7","actor_id":"42","data":{{"x":{data}}}}}"#);
        for data in ["1", "1e999", r#""\ud800""#] {
            assert!(may_name(&answer(data), "42"), "{data}");
        }
        assert!(!may_name(&answer("1"), "7"), "a notification is no user");
    }
}
