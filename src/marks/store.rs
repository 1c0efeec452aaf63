//! The rows of `users` and `marks`, and all of a user's own rows that a cache entry shows.

use crate::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::groups::GroupMark;
use crate::ids::{GroupId, UserId};
use crate::relations::Versions;

use super::{Kind, Mark, MarkKey};

/// A user's own row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Counts the changes of the user's own rows.
    pub revision: i64,
    /// How many counters the user has.
    pub counters: i64,
    /// How many others the user follows.
    pub following: i64,
    /// The head of the board when the user was first seen; [`NOT_ENROLLED`] before that.
    pub enrolled: i64,
    /// The day on which the user was seen last.
    pub seen_day: i64,
    /// The revision at which the list behind the feed changed last.
    pub feed: i64,
    /// The seq of the last message that is read by hand.
    pub message_seq: i64,
    /// How many groups the user is in.
    pub chat_groups: i64,
    /// The seq of the last row of the user's inbox.
    pub inbox_seq: i64,
    /// Direct messages that the user has not read, those of muted chats aside.
    pub direct_unread: i64,
    /// From how many peers they are.
    pub direct_chats: i64,
}

/// In place of a head of the board: the user was not seen yet, or is forgotten.
pub const NOT_ENROLLED: i64 = -1;

impl Default for User {
    fn default() -> Self {
        Self {
            revision: 0,
            counters: 0,
            following: 0,
            enrolled: NOT_ENROLLED,
            seen_day: 0,
            feed: 0,
            message_seq: 0,
            chat_groups: 0,
            inbox_seq: 0,
            direct_unread: 0,
            direct_chats: 0,
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
    "select u.user_id, u.revision, u.counters, u.following, u.enrolled, u.seen_day, u.feed, u.message_seq, u.chat_groups, u.inbox_seq,
        u.direct_unread, u.direct_chats
    from {rows} r
    join users u on u.user_id = r.user_id",
    "select u.user_id, u.revision, u.counters, u.following, u.enrolled, u.seen_day, u.feed, u.message_seq, u.chat_groups, u.inbox_seq,
        u.direct_unread, u.direct_chats
    from {rows} r
    join users u on u.user_id = r.user_id
    order by u.user_id
    for update of u",
    &[("user_id", Type::Int)],
);

/// On Postgres the rows are there, as [`MAKE_USERS`] ran before: an update writes less to the log than an insert that meets a row.
static SAVE_USERS: Statement = Statement::each(
    "insert into users (user_id, revision, counters, following, enrolled, seen_day, feed, message_seq, chat_groups, inbox_seq, direct_unread,
        direct_chats)
    select user_id, revision, counters, following, enrolled, seen_day, feed, message_seq, chat_groups, inbox_seq, direct_unread, direct_chats
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        revision = excluded.revision,
        counters = excluded.counters,
        following = excluded.following,
        enrolled = excluded.enrolled,
        seen_day = excluded.seen_day,
        feed = excluded.feed,
        message_seq = excluded.message_seq,
        chat_groups = excluded.chat_groups,
        inbox_seq = excluded.inbox_seq,
        direct_unread = excluded.direct_unread,
        direct_chats = excluded.direct_chats",
    "update users
    set revision = r.revision,
        counters = r.counters,
        following = r.following,
        enrolled = r.enrolled,
        seen_day = r.seen_day,
        feed = r.feed,
        message_seq = r.message_seq,
        chat_groups = r.chat_groups,
        inbox_seq = r.inbox_seq,
        direct_unread = r.direct_unread,
        direct_chats = r.direct_chats
    from {rows} r
    where users.user_id = r.user_id",
    &[
        ("user_id", Type::Int),
        ("revision", Type::Int),
        ("counters", Type::Int),
        ("following", Type::Int),
        ("enrolled", Type::Int),
        ("seen_day", Type::Int),
        ("feed", Type::Int),
        ("message_seq", Type::Int),
        ("chat_groups", Type::Int),
        ("inbox_seq", Type::Int),
        ("direct_unread", Type::Int),
        ("direct_chats", Type::Int),
    ],
);

static LOAD_MARKS: Statement = Statement::new(
    "select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted, m.at
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind = r.kind and m.name = r.name",
    &[("user_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)],
);

static LOAD_MARKS_OF_USERS: Statement = Statement::new(
    "select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted, m.at
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind = r.kind",
    &[("user_id", Type::Int), ("kind", Type::Int)],
);

static SAVE_MARKS: Statement = Statement::new(
    "insert into marks (user_id, kind, name, head, mark, retracted, at)
    select user_id, kind, name, head, mark, retracted, at
    from {rows} r
    where true
    on conflict (user_id, kind, name) do update set
        head = excluded.head,
        mark = excluded.mark,
        retracted = excluded.retracted,
        at = excluded.at",
    &[
        ("user_id", Type::Int),
        ("kind", Type::Int),
        ("name", Type::Text),
        ("head", Type::Int),
        ("mark", Type::Int),
        ("retracted", Type::Text),
        ("at", Type::Int),
    ],
);

static DELETE_MARKS_OF_USERS: Statement = Statement::new(
    "delete from marks
    where (user_id, kind) in (select user_id, kind from {rows} r)",
    &[("user_id", Type::Int), ("kind", Type::Int)],
);

/// All that a cache entry shows of whole users, in one statement, so that it belongs together: first the user's own row (as kind 0), then the marks (views
/// aside, which are many and read one by one), the memberships of groups (as kind 6), the types of messages (as kind 8), and when the lists of relations changed
/// (as kind 20).
static READ_USERS: Statement = Statement::new(
    "select u.user_id, 0 as kind, '' as name, u.revision as a, u.enrolled as b, u.seen_day as c, u.feed as d, u.direct_unread as e,
        u.direct_chats as f, '' as retracted, cast(null as bytea) as data
    from {rows} r
    join users u on u.user_id = r.user_id
    union all
    select m.user_id, m.kind, m.name, m.head, m.mark, m.at, 0, 0, 0, m.retracted, cast(null as bytea)
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind <> 4
    union all
    select s.user_id, 6, '', s.group_id, s.read_seq, s.muted, s.at, 0, 0, '', s.extra
    from {rows} r
    join memberships s on s.user_id = r.user_id and s.to_seq < 0
    union all
    select t.user_id, 8, t.type, t.unread, 0, 0, 0, 0, 0, '', cast(null as bytea)
    from {rows} r
    join message_types t on t.user_id = r.user_id
    union all
    select c.user_id, 20, '', c.following_version, c.blocks_version, 0, 0, 0, 0, '', cast(null as bytea)
    from {rows} r
    join relation_counts c on c.user_id = r.user_id
    order by 1, 2, 3",
    &[("user_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    [&MAKE_USERS, &LOCK_USERS, &SAVE_USERS, &LOAD_MARKS, &LOAD_MARKS_OF_USERS, &SAVE_MARKS, &DELETE_MARKS_OF_USERS, &READ_USERS]
}

/// A row of `marks` as the statements return it.
type MarkRow = (i64, i64, String, i64, i64, String, i64);

/// A row of `users` as the statements return it.
type UserRow = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);

/// A row of [`READ_USERS`].
type ReadRow = (i64, i64, String, i64, i64, i64, i64, i64, i64, String, Option<Vec<u8>>);

/// The kinds of [`READ_USERS`] that are no marks.
const USER_ROW: i64 = 0;
const MEMBERSHIP_ROW: i64 = 6;
const MESSAGE_TYPE_ROW: i64 = 8;
const RELATIONS_ROW: i64 = 20;

/// One user's own rows as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The user.
    pub user: UserId,
    /// The user's own row, as far as the cache shows it.
    pub row: User,
    /// The marks that the cache shows, in the order of kind and name.
    pub marks: Vec<(MarkKey, Mark)>,
    /// How many messages that are read by hand are unread, by type.
    pub messages: Vec<(String, i64)>,
    /// The groups that the user is in, and how far it has read each.
    pub groups: Vec<(GroupId, GroupMark)>,
    /// When the user's lists of relations changed last.
    pub lists: Versions,
    /// Whether that is all there is. Not so where a newer version, side by side with this one during an upgrade, wrote rows of a kind that
    /// this one does not know: then the cache that both share must not be filled from here.
    pub complete: bool,
}

impl Snapshot {
    /// Of a user without any row.
    #[must_use]
    pub fn none(user: UserId) -> Self {
        Self {
            user,
            row: User::default(),
            marks: Vec::new(),
            messages: Vec::new(),
            groups: Vec::new(),
            lists: Versions::default(),
            complete: true,
        }
    }
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
    let (users, marks) = conn.fetch_both((&LOCK_USERS, &columns), (&LOAD_MARKS, &mark_key_columns(keys))).await?;
    Ok((users.into_iter().filter_map(user_of_row).collect(), marks.into_iter().filter_map(mark_of_row).collect()))
}

fn user_of_row(row: UserRow) -> Option<(UserId, User)> {
    let (user, revision, counters, following, enrolled, seen_day, feed, message_seq, chat_groups, inbox_seq, direct_unread, direct_chats) =
        row;
    let row =
        User { revision, counters, following, enrolled, seen_day, feed, message_seq, chat_groups, inbox_seq, direct_unread, direct_chats };
    Some((UserId::try_from(user).ok()?, row))
}

/// Writes these users' rows.
///
/// # Errors
/// The driver's own.
pub async fn save_users(conn: &mut Conn, users: &[(UserId, User)]) -> DbResult<()> {
    let column = |value: fn(&User) -> i64| Column::Int(users.iter().map(|(_, row)| value(row)).collect());
    let columns = [
        Column::Int(users.iter().map(|(user, _)| user.get()).collect()),
        column(|row| row.revision),
        column(|row| row.counters),
        column(|row| row.following),
        column(|row| row.enrolled),
        column(|row| row.seen_day),
        column(|row| row.feed),
        column(|row| row.message_seq),
        column(|row| row.chat_groups),
        column(|row| row.inbox_seq),
        column(|row| row.direct_unread),
        column(|row| row.direct_chats),
    ];
    conn.later(&SAVE_USERS, &columns).await
}

fn mark_key_columns(keys: &[MarkKey]) -> [Column; 3] {
    [
        Column::Int(keys.iter().map(|key| key.user.get()).collect()),
        Column::Int(keys.iter().map(|key| key.kind.code()).collect()),
        Column::Text(keys.iter().map(|key| (*key.name).to_owned()).collect()),
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
        Column::Text(marks.iter().map(|(key, _)| (*key.name).to_owned()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.head()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.mark()).collect()),
        Column::Text(marks.iter().map(|(_, mark)| mark.retracted().to_string()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.at.0).collect()),
    ];
    conn.later(&SAVE_MARKS, &columns).await
}

/// Removes all marks of these kinds.
///
/// # Errors
/// The driver's own.
pub async fn delete_marks_of_users(conn: &mut Conn, users: &[(UserId, Kind)]) -> DbResult<()> {
    let columns =
        [Column::Int(users.iter().map(|(user, _)| user.get()).collect()), Column::Int(users.iter().map(|(_, kind)| kind.code()).collect())];
    conn.later(&DELETE_MARKS_OF_USERS, &columns).await
}

/// Reads these marks as of one moment; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn read_marks(db: &Db, keys: &[MarkKey]) -> DbResult<Vec<(MarkKey, Mark)>> {
    Ok(db.fetch(&LOAD_MARKS, &mark_key_columns(keys)).await?.into_iter().filter_map(mark_of_row).collect())
}

/// Reads whole users, in the order asked (without repeats); one without any row is at revision 0 with nothing.
///
/// # Errors
/// The driver's own.
pub async fn read_users(db: &Db, users: &[UserId]) -> DbResult<Vec<Snapshot>> {
    let rows: Vec<ReadRow> = db.fetch(&READ_USERS, &[ids(users)]).await?;
    let mut found: std::collections::HashMap<i64, Snapshot> = std::collections::HashMap::with_capacity(users.len());
    for (id, kind, name, a, b, c, d, e, f, retracted, data) in rows {
        let Ok(user) = UserId::try_from(id) else { continue };
        let snapshot = found.entry(id).or_insert_with(|| Snapshot::none(user));
        match kind {
            USER_ROW => {
                snapshot.row =
                    User { revision: a, enrolled: b, seen_day: c, feed: d, direct_unread: e, direct_chats: f, ..User::default() };
            }
            MEMBERSHIP_ROW => {
                let group = GroupId::try_from(a).ok();
                snapshot.groups.extend(group.map(|group| (group, GroupMark::from_row(b, c, d, data.as_deref()))));
            }
            MESSAGE_TYPE_ROW => snapshot.messages.push((name, a)),
            RELATIONS_ROW => snapshot.lists = Versions { following: a, blocks: b },
            _ => match mark_of_row((id, kind, name, a, b, retracted, c)) {
                Some(mark) => snapshot.marks.push(mark),
                None => snapshot.complete = false,
            },
        }
    }
    Ok(users.iter().map(|user| found.remove(&user.get()).unwrap_or_else(|| Snapshot::none(*user))).collect())
}

/// A row of a kind that this version does not know (written by a newer one) is passed over.
fn mark_of_row((user, kind, name, head, mark, retracted, at): MarkRow) -> Option<(MarkKey, Mark)> {
    let key = MarkKey { user: UserId::try_from(user).ok()?, kind: Kind::from_code(kind)?, name: name.into() };
    Some((key, Mark::from_row(head, mark, &retracted, UnixMs(at))))
}
