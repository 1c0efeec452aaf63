//! The rows of `users` that lanes lock, load and write. A user's marks of counters, channels and
//! dots are in there, and the user's settings.

use super::{UserMarks, UserSettings};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

/// A user's own row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Names the last write of this row, whatever it changed: another one for each.
    pub version: i64,
    /// Counts the changes of the user's own rows that polls show.
    pub revision: i64,
    /// How many others the user follows.
    pub following: i64,
    /// The head of the broadcast state when the user was first seen; [`NOT_ENROLLED`] before that.
    pub enrolled: i64,
    /// The day on which the user was seen last.
    pub seen_day: i64,
    /// The revision at which the list behind the feed changed last.
    pub feed: i64,
    /// The revision at which the list of those whom the user follows changed last.
    pub following_version: i64,
    /// The seq of the last notification.
    pub notification_seq: i64,
    /// Up to which seq the user has seen the list of notifications.
    pub notification_seen: i64,
    /// How many groups the user is in.
    pub chat_groups: i64,
    /// The seq of the last row of the user's inbox.
    pub inbox_seq: i64,
    /// Direct messages that the user has not read, those of muted chats aside.
    pub direct_unread: i64,
    /// From how many peers they are.
    pub direct_chats: i64,
    /// How far the user has read counters, channels and dots.
    pub marks: UserMarks,
    pub settings: UserSettings,
}

/// In place of a head of the broadcast state: the user was not seen yet, or is forgotten.
pub const NOT_ENROLLED: i64 = -1;

impl Default for User {
    fn default() -> Self {
        Self {
            version: 0,
            revision: 0,
            following: 0,
            enrolled: NOT_ENROLLED,
            seen_day: 0,
            feed: 0,
            following_version: 0,
            notification_seq: 0,
            notification_seen: 0,
            chat_groups: 0,
            inbox_seq: 0,
            direct_unread: 0,
            direct_chats: 0,
            marks: UserMarks::default(),
            settings: UserSettings::default(),
        }
    }
}

impl User {
    /// Whether the user was seen, and not forgotten since.
    #[must_use]
    pub fn is_enrolled(&self) -> bool {
        self.enrolled > NOT_ENROLLED
    }
}

/// New rows of users, in the order of the key. Anyone who makes one has locked all it will lock among
/// those that were there, and waits only for makers of later rows: so no two wait for each other. One
/// that another transaction made meanwhile fails the batch, which finds it when it is tried again.
static INSERT_USERS: Statement = Statement::insert(
    "users",
    &[
        ("user_id", Type::Int),
        ("version", Type::Int),
        ("revision", Type::Int),
        ("following", Type::Int),
        ("enrolled", Type::Int),
        ("seen_day", Type::Int),
        ("feed", Type::Int),
        ("following_version", Type::Int),
        ("notification_seq", Type::Int),
        ("notification_seen", Type::Int),
        ("chat_groups", Type::Int),
        ("inbox_seq", Type::Int),
        ("direct_unread", Type::Int),
        ("direct_chats", Type::Int),
        ("marks", Type::Text),
        ("settings", Type::Text),
    ],
);

/// Makes those of these rows that nobody has made yet, with nothing in them.
static MAKE_USERS: Statement = Statement::new(
    "insert into users (user_id, revision)
    select user_id, 0
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do nothing",
    &[("user_id", Type::Int)],
);

const READ: &str = "select u.user_id, u.version, u.revision, u.following, u.enrolled, u.seen_day, u.feed, u.following_version,
        u.notification_seq, u.notification_seen, u.chat_groups, u.inbox_seq, u.direct_unread, u.direct_chats, u.marks, u.settings
    from {rows} r
    join users u on u.user_id = r.user_id";

static READ_USERS: Statement = Statement::new(READ, &[("user_id", Type::Int)]).by("user_id");

/// Locks the rows in the order of the key, and returns what they hold once they are locked.
static LOCK_USERS: Statement = Statement::each(
    READ,
    "select u.user_id, u.version, u.revision, u.following, u.enrolled, u.seen_day, u.feed, u.following_version,
        u.notification_seq, u.notification_seen, u.chat_groups, u.inbox_seq, u.direct_unread, u.direct_chats, u.marks, u.settings
    from {rows} r
    join users u on u.user_id = r.user_id
    order by u.user_id
    for update of u",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Writes rows that nobody has changed since they were read. They are there, as new
/// ones go by [`INSERT_USERS`]: an update writes less to the log than an insert that meets a row.
static SAVE_USERS: Statement = Statement::new(
    "update {or fail} users
    set version = r.next_version,
        revision = r.revision,
        following = r.following,
        enrolled = r.enrolled,
        seen_day = r.seen_day,
        feed = r.feed,
        following_version = r.following_version,
        notification_seq = r.notification_seq,
        notification_seen = r.notification_seen,
        chat_groups = r.chat_groups,
        inbox_seq = r.inbox_seq,
        direct_unread = r.direct_unread,
        direct_chats = r.direct_chats,
        marks = r.marks,
        settings = r.settings
    from {rows} r
    where users.user_id = r.user_id and users.version = r.version",
    &[
        ("user_id", Type::Int),
        ("version", Type::Int),
        ("next_version", Type::Int),
        ("revision", Type::Int),
        ("following", Type::Int),
        ("enrolled", Type::Int),
        ("seen_day", Type::Int),
        ("feed", Type::Int),
        ("following_version", Type::Int),
        ("notification_seq", Type::Int),
        ("notification_seen", Type::Int),
        ("chat_groups", Type::Int),
        ("inbox_seq", Type::Int),
        ("direct_unread", Type::Int),
        ("direct_chats", Type::Int),
        ("marks", Type::Text),
        ("settings", Type::Text),
    ],
)
.by("user_id");

/// Finds rows that nobody has changed since they were read.
static CHECK_USERS: Statement = Statement::new(
    "select u.user_id
    from {rows} r
    join users u on u.user_id = r.user_id and u.version = r.version",
    &[("user_id", Type::Int), ("version", Type::Int)],
)
.by("user_id");

/// For rows of which no more than this changed, as with most writes: the fewer columns, the less it
/// costs.
static SAVE_MARKS: Statement = Statement::new(
    "update {or fail} users
    set version = r.next_version, revision = r.revision, marks = r.marks
    from {rows} r
    where users.user_id = r.user_id and users.version = r.version",
    &[("user_id", Type::Int), ("version", Type::Int), ("next_version", Type::Int), ("revision", Type::Int), ("marks", Type::Text)],
)
.by("user_id");

/// The same for rows to which only messages came: a group's, or of direct chats.
static SAVE_INBOX: Statement = Statement::new(
    "update {or fail} users
    set version = r.next_version,
        revision = r.revision,
        inbox_seq = r.inbox_seq,
        direct_unread = r.direct_unread,
        direct_chats = r.direct_chats
    from {rows} r
    where users.user_id = r.user_id and users.version = r.version",
    &[
        ("user_id", Type::Int),
        ("version", Type::Int),
        ("next_version", Type::Int),
        ("revision", Type::Int),
        ("inbox_seq", Type::Int),
        ("direct_unread", Type::Int),
        ("direct_chats", Type::Int),
    ],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    [&INSERT_USERS, &MAKE_USERS, &READ_USERS, &LOCK_USERS, &CHECK_USERS, &SAVE_USERS, &SAVE_MARKS, &SAVE_INBOX]
}

/// A row of `users` as the statements return it.
type UserRow = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, String, String);

pub(crate) fn ids(users: &[UserId]) -> Column {
    Column::Int(users.iter().map(|user| user.get()).collect())
}

/// Reads these users' rows (sorted, without repeats), for a write that fails if any was changed
/// meanwhile; missing ones are left out.
pub async fn read_users(pipeline: &Pipeline, users: &[UserId]) -> DbResult<Vec<(UserId, User)>> {
    let rows: Vec<UserRow> = pipeline.fetch(&READ_USERS, [ids(users)]).await?;
    Ok(rows.into_iter().filter_map(user_of_row).collect())
}

/// Locks these users' rows (sorted, without repeats) and returns them; missing ones are left out.
pub async fn lock_users(pipeline: &Pipeline, users: &[UserId]) -> DbResult<Vec<(UserId, User)>> {
    let rows: Vec<UserRow> = pipeline.fetch(&LOCK_USERS, [ids(users)]).await?;
    Ok(rows.into_iter().filter_map(user_of_row).collect())
}

/// Makes these users' rows (sorted, without repeats), which were missing a moment ago. One that another
/// transaction makes is waited for, and left as it is.
pub async fn make_users(conn: &mut Conn, users: &[UserId]) -> DbResult<()> {
    if users.is_empty() { Ok(()) } else { conn.later(&MAKE_USERS, &[ids(users)]).await }
}

fn user_of_row(row: UserRow) -> Option<(UserId, User)> {
    let (
        user,
        version,
        revision,
        following,
        enrolled,
        seen_day,
        feed,
        following_version,
        notification_seq,
        notification_seen,
        chat_groups,
        inbox_seq,
        direct_unread,
        direct_chats,
        marks,
        settings,
    ) = row;
    let row = User {
        version,
        revision,
        following,
        enrolled,
        seen_day,
        feed,
        following_version,
        notification_seq,
        notification_seen,
        chat_groups,
        inbox_seq,
        direct_unread,
        direct_chats,
        marks: UserMarks::from_row(&marks),
        settings: UserSettings::from_row(&settings),
    };
    Some((UserId::try_from(user).ok()?, row))
}

/// Writes these users' rows, each given as it was loaded and as it is now. Each gets this version; if
/// any has another one than was loaded, nothing is written, and what is waited for next
/// fails with [`sqlx::Error::RowNotFound`].
pub async fn save_users(conn: &mut Conn, users: &[(UserId, &User, &User)], version: i64) -> DbResult<()> {
    if users.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&User) -> i64| column_of(users, value);
    let mut columns = vec![users_of(users), column(|row| row.version), Column::Int(vec![version; users.len()])];
    // One statement for all: they may not be locked yet, and are to be in the order of the key.
    let statement = if users.iter().all(|(_, loaded, now)| marks_alone(loaded, now)) {
        columns.extend([column(|row| row.revision), marks_of(users)]);
        &SAVE_MARKS
    } else if users.iter().all(|(_, loaded, now)| inbox_alone(loaded, now)) {
        columns.extend([column(|row| row.revision), column(|row| row.inbox_seq)]);
        columns.extend([column(|row| row.direct_unread), column(|row| row.direct_chats)]);
        &SAVE_INBOX
    } else {
        columns.extend(columns_of(users));
        &SAVE_USERS
    };
    conn.later_all(statement, &columns).await
}

/// Whether nothing but the marks has changed.
fn marks_alone(loaded: &User, now: &User) -> bool {
    User { revision: now.revision, marks: now.marks.clone(), ..loaded.clone() } == *now
}

/// Whether nothing but the numbers of the inbox has changed.
fn inbox_alone(loaded: &User, now: &User) -> bool {
    let User { revision, inbox_seq, direct_unread, direct_chats, .. } = *now;
    User { revision, inbox_seq, direct_unread, direct_chats, ..loaded.clone() } == *now
}

/// Writes these users' rows, which were not there when they were to be locked. Those that changed
/// since get this version.
pub async fn insert_users(conn: &mut Conn, users: &[(UserId, &User, &User)], version: i64) -> DbResult<()> {
    if users.is_empty() {
        return Ok(());
    }
    let version = |(_, loaded, now): &(UserId, &User, &User)| if loaded == now { now.version } else { version };
    let mut columns = vec![users_of(users), Column::Int(users.iter().map(version).collect())];
    columns.extend(columns_of(users));
    conn.later(&INSERT_USERS, &columns).await
}

/// The columns after the versions.
fn columns_of(users: &[(UserId, &User, &User)]) -> [Column; 14] {
    let column = |value: fn(&User) -> i64| column_of(users, value);
    [
        column(|row| row.revision),
        column(|row| row.following),
        column(|row| row.enrolled),
        column(|row| row.seen_day),
        column(|row| row.feed),
        column(|row| row.following_version),
        column(|row| row.notification_seq),
        column(|row| row.notification_seen),
        column(|row| row.chat_groups),
        column(|row| row.inbox_seq),
        column(|row| row.direct_unread),
        column(|row| row.direct_chats),
        marks_of(users),
        Column::Text(users.iter().map(|(.., now)| now.settings.as_str().to_owned()).collect()),
    ]
}

/// Checks that these users' rows still have these versions: if not, what is waited for next fails
/// with [`sqlx::Error::RowNotFound`].
pub async fn check_users(conn: &mut Conn, users: &[(UserId, i64)]) -> DbResult<()> {
    let columns =
        [Column::Int(users.iter().map(|(user, _)| user.get()).collect()), Column::Int(users.iter().map(|(_, version)| *version).collect())];
    conn.later_all(&CHECK_USERS, &columns).await
}

fn users_of(rows: &[(UserId, &User, &User)]) -> Column {
    Column::Int(rows.iter().map(|(user, ..)| user.get()).collect())
}

fn column_of(rows: &[(UserId, &User, &User)], value: fn(&User) -> i64) -> Column {
    Column::Int(rows.iter().map(|(.., now)| value(now)).collect())
}

fn marks_of(rows: &[(UserId, &User, &User)]) -> Column {
    Column::Text(rows.iter().map(|(.., now)| now.marks.as_str().to_owned()).collect())
}
