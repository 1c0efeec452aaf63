//! Users' lists, as they are read outside of batches.
//!
//! Which notification of an entry is the newest that is left, how many actors the entry has and who
//! they are is counted from `grouped_notifications` in the same statement, of at most
//! [`super::MAX_IN_ENTRY`] rows for each entry.

use super::{Content, Status};
use crate::base::clock::UnixMs;
use crate::base::ids::{Name, NotificationId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};

/// A page of a user's list. Entries and what is grouped in them lie with the user, so on a
/// distributed database that is read first, and the notifications by what it says. The first row
/// (seq 0) has the user's revision and how far the user has seen the list. Below seq 0 there may be
/// very many rows, of which no list shows any.
macro_rules! page {
    ($of:literal) => {
        concat!(
            "with p as materialized (
        select r.notification_id, r.seq, r.type, r.created_at, r.updated_at, r.read_at
        from notification_receivers r
        where r.user_id = $1 and r.seq > 0 and r.seq < $2 and r.gone = 0 and ",
            $of,
            "
        order by r.seq desc
        limit $3
    ), by_actor as (
        select g.entry_id, g.actor_id, max(g.seq) as seq, count(*) as notifications
        from p
        join grouped_notifications g on g.user_id = $1 and g.entry_id = p.notification_id
        group by g.entry_id, g.actor_id
    ), placed as (
        select a.entry_id, a.actor_id, a.seq, a.notifications,
            row_number() over (partition by a.entry_id, case when a.actor_id = 0 then 0 else 1 end order by a.seq desc) as place
        from by_actor a
    ), grouped as (
        select a.entry_id, max(a.seq) as seq, sum(case when a.actor_id = 0 then a.notifications else 1 end) as actors,
            string_agg(case when a.actor_id > 0 and a.place <= 3 then cast(a.actor_id as text) end, ' ' order by a.place) as newest
        from placed a
        group by a.entry_id
    ), r as materialized (
        select p.notification_id, p.seq, p.type, p.created_at, p.updated_at, p.read_at,
            cast(coalesce(e.actors, 0) as bigint) as actors, coalesce(e.newest, '') as newest,
            coalesce(g.notification_id, p.notification_id) as shown
        from p
        left join grouped e on e.entry_id = p.notification_id
        left join grouped_notifications g on g.user_id = $1 and g.entry_id = e.entry_id and g.seq = e.seq
    )
    select cast(0 as bigint) as seq, u.revision as id, u.notification_seen as shown, '' as type, '' as content, 0 as sent_at, 0 as created_at,
        0 as updated_at, 0 as read_at, 0 as actors, '' as newest
    from users u
    where u.user_id = $1
    union all
    select r.seq, r.notification_id, r.shown, r.type, n.content, n.created_at, r.created_at, r.updated_at, r.read_at, r.actors, r.newest
    from r
    join notifications n on n.notification_id = r.shown
    order by seq desc"
        )
    };
}

const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int), ("type", Type::Text)];
const PAGE_FROM: &[(&str, Type)] =
    &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int), ("type", Type::Text), ("from", Type::Int)];

/// All, or with $5 = 1 those that were read.
static LIST: Statement = Statement::one(page!("r.read_at >= $5 and ($4 = '' or r.type = $4)"), PAGE_FROM);

static LIST_UNREAD: Statement =
    Statement::one(page!("r.read_at = 0"), &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)]);

static LIST_UNREAD_OF_TYPE: Statement = Statement::one(page!("r.read_at = 0 and r.type = $4"), PAGE);

static LIST_UNSEEN: Statement = Statement::one(
    page!(
        "r.read_at = 0 and ($4 = '' or r.type = $4) and r.seq > coalesce((select s.notification_seen from users s where s.user_id = $1), 0)"
    ),
    PAGE,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&LIST, &LIST_UNREAD, &LIST_UNREAD_OF_TYPE, &LIST_UNSEEN]
}

/// An entry in a user's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: NotificationId,
    /// Its place in the list.
    pub seq: i64,
    pub kind: Name,
    /// The newest of its notifications that is left.
    pub newest: NotificationId,
    /// What that one says: a [`Content`], as JSON.
    pub stored: String,
    pub created_at: UnixMs,
    pub updated_at: UnixMs,
    /// When the user has read it; None: not yet.
    pub read_at: Option<UnixMs>,
    /// How many actors it has; those without an actor count one each.
    pub count: i64,
    /// The newest actors, as decimals. Empty for an entry without a group key.
    actors: String,
}

impl Listed {
    /// What it shows.
    #[must_use]
    pub fn content(&self) -> Content {
        serde_json::from_str(&self.stored).unwrap_or_default()
    }

    /// The newest actors, the newest act first.
    #[must_use]
    pub fn actors(&self) -> Vec<UserId> {
        let content = self.content();
        let is_alone = content.group_key.is_none();
        self.actors.split(' ').filter_map(|id| id.parse().ok()).chain(content.actor_id.filter(|_| is_alone)).collect()
    }
}

/// A page of a user's list, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The user's revision.
    pub revision: i64,
    /// Up to which seq the user has seen the list.
    pub seen: i64,
    /// The entries, the newest first.
    pub entries: Vec<Listed>,
}

type Row = (i64, i64, i64, String, String, i64, i64, i64, i64, i64, String);

fn listed(row: Row) -> Option<Listed> {
    let (seq, id, newest, kind, stored, sent_at, created_at, updated_at, read_at, count, actors) = row;
    // Of an entry of an earlier version, which has one notification.
    let or_sent = |at: i64| UnixMs(if at == 0 { sent_at } else { at });
    Some(Listed {
        id: NotificationId::try_from(id).ok()?,
        seq,
        kind: kind.parse().ok()?,
        newest: NotificationId::try_from(newest).ok()?,
        stored,
        created_at: or_sent(created_at),
        updated_at: or_sent(updated_at),
        read_at: Some(UnixMs(read_at)).filter(|at| *at != UnixMs(0)),
        count: count.max(1),
        actors,
    })
}

/// Up to `limit` entries of a user's list before this seq, newest first.
pub async fn page(db: &Db, user: UserId, status: Status, kind: Option<&Name>, before: i64, limit: i64) -> DbResult<Page> {
    let mut columns: Vec<_> = [user.get(), before, limit].map(|value| Column::Int(vec![value])).into();
    let text = || Column::Text(vec![kind.map_or(String::new(), Name::to_string)]);
    let statement = match (status, kind) {
        (Status::Unread, None) => &LIST_UNREAD,
        (Status::Unread, Some(_)) => {
            columns.push(text());
            &LIST_UNREAD_OF_TYPE
        }
        (Status::Unseen, _) => {
            columns.push(text());
            &LIST_UNSEEN
        }
        (Status::All | Status::Read, _) => {
            columns.extend([text(), Column::Int(vec![i64::from(status == Status::Read)])]);
            &LIST
        }
    };
    let mut found = Page::default();
    for row in db.fetch::<Row>(statement, &columns).await? {
        if row.0 == 0 {
            (found.revision, found.seen) = (row.1, row.2);
        } else {
            found.entries.extend(listed(row));
        }
    }
    Ok(found)
}
