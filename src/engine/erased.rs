//! Users that were erased. Their ids may not be used again, so a hash of each is kept for ever.
//!
//! While the rows of such a user are removed, its own row says so
//! ([`UserSettings::is_erased`](super::marks::UserSettings::is_erased)). After that only the hash
//! does: it is looked for where a user has no row, and for users of whom a write looks at no row
//! (`pairs::need_named`). A user that has one pays nothing.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Pipeline, Statement, Type};

static FIND: Statement = Statement::new(
    "select r.user_id, e.operation_id
    from {rows} r
    join erased_users e on e.id_hash = r.id_hash
    where exists (select 1 from erased_users)",
    &[("user_id", Type::Int), ("id_hash", Type::Text)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 1] {
    [&FIND]
}

/// A user that was erased, and the id of the operation that did it.
pub type Erased = (UserId, String);

/// What is kept of an id: SHA-256, in hex.
#[must_use]
pub fn id_hash(user: UserId) -> String {
    let mut hash = Sha256::new();
    hash.update(b"headmark:erased:");
    hash.update(user.to_string());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn columns(users: &[UserId]) -> [Column; 2] {
    [Column::Int(users.iter().map(|user| user.get()).collect()), Column::Text(users.iter().map(|user| id_hash(*user)).collect())]
}

fn erased(rows: Vec<(i64, String)>) -> Vec<Erased> {
    rows.into_iter().filter_map(|(user, operation)| Some((UserId::try_from(user).ok()?, operation))).collect()
}

/// Those of these users that were erased, inside a transaction.
pub async fn find(pipeline: &Pipeline, users: &[UserId]) -> DbResult<Vec<Erased>> {
    if users.is_empty() { Ok(Vec::new()) } else { Ok(erased(pipeline.fetch(&FIND, columns(users)).await?)) }
}

/// Those of these users that were erased.
pub async fn read(db: &Db, users: &[UserId]) -> DbResult<Vec<Erased>> {
    if users.is_empty() { Ok(Vec::new()) } else { Ok(erased(db.fetch(&FIND, &columns(users)).await?)) }
}

/// Where JSON of ours names users.
const USERS: [&str; 10] =
    ["user_id", "target_id", "sender_id", "receiver_id", "peer_id", "actor_id", "actors", "recipients", "user_ids", "mentions"];

/// Whether JSON that this program wrote names a user, by its id as text.
#[must_use]
pub fn names_user(value: &Value, user: &str) -> bool {
    let is_user = |value: &Value| match value {
        Value::Array(all) => all.iter().any(|one| one == user),
        one => one == user,
    };
    match value {
        Value::Object(fields) => fields.iter().any(|(name, of)| (USERS.contains(&name.as_str()) && is_user(of)) || names_user(of, user)),
        Value::Array(all) => all.iter().any(|one| names_user(one, user)),
        _ => false,
    }
}

/// The answer to what names such a user. `pointers` are the places in the body; the path has none.
#[must_use]
pub fn problem<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Problem {
    let problem = Problem::new(Code::Erased, "The user was erased. The id cannot be used again.");
    pointers.into_iter().filter(|pointer| !pointer.is_empty()).fold(problem, |problem, pointer| problem.at(pointer, "was erased"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_where_users_are() {
        let named = |json: &str| names_user(&serde_json::from_str(json).unwrap(), "42");
        assert!(named(r#"{"items":[{"user_id":"7"},{"target_id":"42"}]}"#) && named(r#"{"actors":["1","42"]}"#));
        assert!(!named(r#"{"group_id":"42","content":"42","user_id":"7","unread":42}"#));
    }

    #[test]
    fn the_hash_of_an_id_stays_the_same_for_ever() {
        // `printf 'headmark:erased:42' | sha256sum`
        let user = UserId::try_from(42).unwrap();
        assert_eq!(id_hash(user), "0235096318cf08386fb7ec0b81e94ef00e5852e344eb7340894170e3221561f7");
    }
}
