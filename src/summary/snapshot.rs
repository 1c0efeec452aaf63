//! All of users' own rows that a cache entry shows, read as of one moment.

use std::collections::HashMap;

use crate::base::ids::{GroupId, UserId};
use crate::db::{Db, DbResult, Statement, Type};
use crate::features::groups::GroupMark;
use crate::features::relations::Versions;

use crate::engine::marks::store::{User, ids, mark_of_row};
use crate::engine::marks::{Mark, MarkKey};

/// All that a cache entry shows of whole users, in one statement, so that it belongs together: first the user's own row (as kind 0), then the marks (views
/// aside, which are many and read one by one), the memberships of groups, the types of notifications, and when the lists of relations changed. Rows that are
/// no marks have a number below 1 in place of the kind, which no [`Kind`](crate::engine::marks::Kind) ever has.
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
    select s.user_id, -1, '', s.group_id, s.read_seq, s.muted, s.at, 0, 0, '', s.extra
    from {rows} r
    join memberships s on s.user_id = r.user_id and s.to_seq < 0
    union all
    select t.user_id, -2, t.type, t.unread, 0, 0, 0, 0, 0, '', cast(null as bytea)
    from {rows} r
    join notification_types t on t.user_id = r.user_id
    union all
    select c.user_id, -3, '', c.following_version, c.blocks_version, 0, 0, 0, 0, '', cast(null as bytea)
    from {rows} r
    join relation_counts c on c.user_id = r.user_id
    order by 1, 2, 3",
    &[("user_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 1] {
    [&READ_USERS]
}

/// A row of [`READ_USERS`].
type ReadRow = (i64, i64, String, i64, i64, i64, i64, i64, i64, String, Option<Vec<u8>>);

/// The kinds of [`READ_USERS`] that are no marks.
const USER_ROW: i64 = 0;
const MEMBERSHIP_ROW: i64 = -1;
const NOTIFICATION_TYPE_ROW: i64 = -2;
const RELATIONS_ROW: i64 = -3;

/// One user's own rows as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The user.
    pub user: UserId,
    /// The user's own row, as far as the cache shows it.
    pub row: User,
    /// The marks that the cache shows, in the order of kind and name.
    pub marks: Vec<(MarkKey, Mark)>,
    /// How many notifications are unread, by type.
    pub notifications: Vec<(String, i64)>,
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
            notifications: Vec::new(),
            groups: Vec::new(),
            lists: Versions::default(),
            complete: true,
        }
    }
}

/// Reads whole users, in the order asked (without repeats); one without any row is at revision 0 with nothing.
///
/// # Errors
/// The driver's own.
pub async fn read_users(db: &Db, users: &[UserId]) -> DbResult<Vec<Snapshot>> {
    let rows: Vec<ReadRow> = db.fetch(&READ_USERS, &[ids(users)]).await?;
    let mut found: HashMap<i64, Snapshot> = HashMap::with_capacity(users.len());
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
            NOTIFICATION_TYPE_ROW => snapshot.notifications.push((name, a)),
            RELATIONS_ROW => snapshot.lists = Versions { following: a, blocks: b },
            _ => match mark_of_row((id, kind, name, a, b, retracted, c)) {
                Some(mark) => snapshot.marks.push(mark),
                None => snapshot.complete = false,
            },
        }
    }
    Ok(users.iter().map(|user| found.remove(&user.get()).unwrap_or_else(|| Snapshot::none(*user))).collect())
}
