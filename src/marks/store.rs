//! The rows of `users` and `marks`.

use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::ids::UserId;

use super::{Kind, Mark, MarkKey};

/// A user's own row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct User {
    /// Counts the changes of the user's own rows.
    pub revision: i64,
    /// How many counters the user has.
    pub counters: i64,
    /// How many others the user follows.
    pub following: i64,
}

/// Makes the rows that are missing, in the order of the key. Only rows that nobody else can see yet are waited for here, and [`LOCK_USERS`] waits only
/// for rows that everybody sees: so those who make wait for makers of later rows or for lockers, lockers for lockers of later rows, and no
/// two for each other.
static MAKE_USERS: Statement = Statement::new(
    "insert into users (user_id, revision, counters)
    select user_id, 0, 0
    from {rows} r
    where not exists (select 1 from users u where u.user_id = r.user_id)
    order by user_id
    on conflict (user_id) do nothing",
    &[("user_id", Type::Int)],
);

/// Locks the rows in the order of the key, and returns what they hold once they are locked.
static LOCK_USERS: Statement = Statement::each(
    "select u.user_id, u.revision, u.counters, u.following
    from {rows} r
    join users u on u.user_id = r.user_id",
    "select u.user_id, u.revision, u.counters, u.following
    from {rows} r
    join users u on u.user_id = r.user_id
    order by u.user_id
    for update of u",
    &[("user_id", Type::Int)],
);

static SAVE_USERS: Statement = Statement::new(
    "insert into users (user_id, revision, counters, following)
    select user_id, revision, counters, following
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        revision = excluded.revision,
        counters = excluded.counters,
        following = excluded.following",
    &[("user_id", Type::Int), ("revision", Type::Int), ("counters", Type::Int), ("following", Type::Int)],
);

static LOAD_MARKS: Statement = Statement::new(
    "select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind = r.kind and m.name = r.name",
    &[("user_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)],
);

static LOAD_MARKS_OF_USERS: Statement = Statement::new(
    "select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind = r.kind",
    &[("user_id", Type::Int), ("kind", Type::Int)],
);

static SAVE_MARKS: Statement = Statement::new(
    "insert into marks (user_id, kind, name, head, mark, retracted)
    select user_id, kind, name, head, mark, retracted
    from {rows} r
    where true
    on conflict (user_id, kind, name) do update set
        head = excluded.head,
        mark = excluded.mark,
        retracted = excluded.retracted",
    &[
        ("user_id", Type::Int),
        ("kind", Type::Int),
        ("name", Type::Text),
        ("head", Type::Int),
        ("mark", Type::Int),
        ("retracted", Type::Text),
    ],
);

/// Revision and marks of whole users in one statement, so that they belong together. A user without marks has one row of nulls.
static READ_USERS: Statement = Statement::new(
    "select u.user_id, u.revision, m.kind, m.name, m.head, m.mark, m.retracted
    from {rows} r
    join users u on u.user_id = r.user_id
    left join marks m on m.user_id = u.user_id
    order by u.user_id, m.kind, m.name",
    &[("user_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 7] {
    [&MAKE_USERS, &LOCK_USERS, &SAVE_USERS, &LOAD_MARKS, &LOAD_MARKS_OF_USERS, &SAVE_MARKS, &READ_USERS]
}

/// A row of `users` as the statements return it.
type UserRow = (i64, i64, i64, i64);

/// A row of `marks` as the statements return it.
type MarkRow = (i64, i64, String, i64, i64, String);

/// A row of [`READ_USERS`].
type ReadRow = (i64, i64, Option<i64>, Option<String>, Option<i64>, Option<i64>, Option<String>);

/// One user's own rows as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The user.
    pub user: UserId,
    /// The revision that the marks belong to.
    pub revision: i64,
    /// All marks, in the order of kind and name.
    pub marks: Vec<(MarkKey, Mark)>,
    /// Whether that is all there is. Not so where a newer version, side by side with this one during an upgrade, wrote rows of a kind that
    /// this one does not know: then the cache that both share must not be filled from here.
    pub complete: bool,
}

fn ids(users: &[UserId]) -> Column {
    Column::Int(users.iter().map(|user| user.get()).collect())
}

/// Locks these users' rows (sorted, without repeats) and returns them; missing ones are made.
///
/// # Errors
/// The driver's own.
pub async fn lock_users(conn: &mut Conn, users: &[UserId]) -> DbResult<Vec<(UserId, User)>> {
    let columns = [ids(users)];
    if conn.locks_rows() {
        conn.later(&MAKE_USERS, &columns).await?;
    }
    let rows: Vec<UserRow> = conn.fetch(&LOCK_USERS, &columns).await?;
    Ok(rows.into_iter().filter_map(user_of_row).collect())
}

/// What a batch finds of its users: their own rows, and the marks that it needs.
pub type Found = (Vec<(UserId, User)>, Vec<(MarkKey, Mark)>);

/// The same, and then loads these marks, whose rows the locks protect; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn lock_users_and_load_marks(conn: &mut Conn, users: &[UserId], keys: &[MarkKey]) -> DbResult<Found> {
    let columns = [ids(users)];
    if conn.locks_rows() {
        conn.later(&MAKE_USERS, &columns).await?;
    }
    let (users, marks) = conn.fetch_both((&LOCK_USERS, &columns), (&LOAD_MARKS, &mark_columns(keys))).await?;
    Ok((users.into_iter().filter_map(user_of_row).collect(), marks.into_iter().filter_map(mark_of_row).collect()))
}

fn user_of_row((user, revision, counters, following): UserRow) -> Option<(UserId, User)> {
    Some((UserId::try_from(user).ok()?, User { revision, counters, following }))
}

/// Writes these users' rows.
///
/// # Errors
/// The driver's own.
pub async fn save_users(conn: &mut Conn, users: &[(UserId, User)]) -> DbResult<()> {
    let columns = [
        Column::Int(users.iter().map(|(user, _)| user.get()).collect()),
        Column::Int(users.iter().map(|(_, row)| row.revision).collect()),
        Column::Int(users.iter().map(|(_, row)| row.counters).collect()),
        Column::Int(users.iter().map(|(_, row)| row.following).collect()),
    ];
    conn.later(&SAVE_USERS, &columns).await
}

fn mark_columns(keys: &[MarkKey]) -> [Column; 3] {
    [
        Column::Int(keys.iter().map(|key| key.user.get()).collect()),
        Column::Int(keys.iter().map(|key| key.kind.code()).collect()),
        Column::Text(keys.iter().map(|key| key.name.as_str().to_owned()).collect()),
    ]
}

/// Loads all marks of one kind of these users.
///
/// # Errors
/// The driver's own.
pub async fn load_marks_of_users(conn: &mut Conn, users: &[(UserId, Kind)]) -> DbResult<Vec<(MarkKey, Mark)>> {
    let columns =
        [Column::Int(users.iter().map(|(user, _)| user.get()).collect()), Column::Int(users.iter().map(|(_, kind)| kind.code()).collect())];
    Ok(conn.fetch(&LOAD_MARKS_OF_USERS, &columns).await?.into_iter().filter_map(mark_of_row).collect())
}

/// Writes these marks.
///
/// # Errors
/// The driver's own.
pub async fn save_marks(conn: &mut Conn, marks: &[(&MarkKey, &Mark)]) -> DbResult<()> {
    let columns = [
        Column::Int(marks.iter().map(|(key, _)| key.user.get()).collect()),
        Column::Int(marks.iter().map(|(key, _)| key.kind.code()).collect()),
        Column::Text(marks.iter().map(|(key, _)| key.name.as_str().to_owned()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.head()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.mark()).collect()),
        Column::Text(marks.iter().map(|(_, mark)| mark.retracted().to_string()).collect()),
    ];
    conn.later(&SAVE_MARKS, &columns).await
}

/// Reads whole users, in the order asked (without repeats); one without any row is at revision 0 with no marks.
///
/// # Errors
/// The driver's own.
pub async fn read_users(db: &Db, users: &[UserId]) -> DbResult<Vec<Snapshot>> {
    let rows: Vec<ReadRow> = db.fetch(&READ_USERS, &[ids(users)]).await?;
    let mut found: std::collections::HashMap<i64, Snapshot> = std::collections::HashMap::with_capacity(users.len());
    for (id, revision, kind, name, head, mark, retracted) in rows {
        let Ok(user) = UserId::try_from(id) else { continue };
        let snapshot = found.entry(id).or_insert_with(|| Snapshot { user, revision, marks: Vec::new(), complete: true });
        if let (Some(kind), Some(name), Some(head), Some(mark), Some(retracted)) = (kind, name, head, mark, retracted) {
            match mark_of_row((id, kind, name, head, mark, retracted)) {
                Some(mark) => snapshot.marks.push(mark),
                None => snapshot.complete = false,
            }
        }
    }
    let none = |user: &UserId| Snapshot { user: *user, revision: 0, marks: Vec::new(), complete: true };
    Ok(users.iter().map(|user| found.remove(&user.get()).unwrap_or_else(|| none(user))).collect())
}

/// A row of a kind that this version does not know (written by a newer one) is passed over.
fn mark_of_row((user, kind, name, head, mark, retracted): MarkRow) -> Option<(MarkKey, Mark)> {
    let key = MarkKey { user: UserId::try_from(user).ok()?, kind: Kind::from_code(kind)?, name: name.parse().ok()? };
    Some((key, Mark::from_row(head, mark, &retracted)))
}
