//! What a recount compares of how far users have read: no mark may lie beyond the head of its
//! stream, as what comes next would count as read. Repaired, it is at the head, and nothing is
//! unread.
//!
//! A head that is itself too low is told from the rows of its things, so that no mark is lost by
//! it. A snapshot of a feed that cannot be read counts as none; a recount removes it.

use super::{Difference, What};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::engine::marks::{self, Kind};
use crate::features::feed::Snapshot;

const USERS: &[(&str, Type)] = &[("user_id", Type::Int)];

/// Marks of counters, channels, dots and views. The rows of things are only looked at where a mark
/// is beyond the head.
static BEYOND: Statement = Statement::new(
    "select user_id, kind, name, mark, head
    from (
        select user_id, kind, name, mark, case when named > head then named else head end as head
        from (
            select m.user_id, m.kind, m.name, m.mark,
                case when m.kind = 1 then m.head else coalesce(h.head, 0) end as head,
                case when m.kind = 1 or m.mark <= coalesce(h.head, 0) then 0
                    when m.kind = 2 then coalesce((select max(n.seq) from notices n where n.channel = m.name), 0)
                    when m.kind = 4 then coalesce((select max(i.seq) from view_items i where i.stream = m.name), 0)
                    else 0 end as named
            from {rows} r
            join marks m on m.user_id = r.user_id and m.kind in (1, 2, 3, 4)
            left join heads h on h.owner_id = 0 and h.kind = m.kind and h.name = m.name
        ) marked
    ) counted
    where mark > head
    order by user_id, kind, name",
    USERS,
);

/// Memberships, also those that have ended.
static BEYOND_GROUPS: Statement = Statement::new(
    "select user_id, group_id, span, read_seq, head
    from (
        select user_id, group_id, span, read_seq, case when sent > head then sent else head end as head
        from (
            select m.user_id, m.group_id, m.span, m.read_seq, coalesce(h.head, 0) as head,
                case when m.read_seq <= coalesce(h.head, 0) then 0
                    else coalesce((select max(g.seq) from group_messages g where g.group_id = m.group_id), 0) end as sent
            from {rows} r
            join memberships m on m.user_id = r.user_id
            left join heads h on h.owner_id = m.group_id and h.kind = 6 and h.name = ''
        ) marked
    ) counted
    where read_seq > head
    order by user_id, group_id, span",
    USERS,
);

/// Follows.
static BEYOND_POSTS: Statement = Statement::new(
    "select user_id, followee_id, mark, head
    from (
        select user_id, followee_id, mark, case when posted > head then posted else head end as head
        from (
            select f.follower_id as user_id, f.followee_id, f.mark, coalesce(h.head, 0) as head,
                case when f.mark <= coalesce(h.head, 0) then 0
                    else coalesce((select max(p.seq) from posts p where p.user_id = f.followee_id), 0) end as posted
            from {rows} r
            join following f on f.follower_id = r.user_id and f.mark > 0
            left join heads h on h.owner_id = f.followee_id and h.kind = 5 and h.name = ''
        ) marked
    ) counted
    where mark > head
    order by user_id, followee_id",
    USERS,
);

static SNAPSHOTS: Statement = Statement::new(
    "select s.user_id, s.data
    from {rows} r
    join feed_snapshots s on s.user_id = r.user_id
    order by s.user_id",
    USERS,
);

static LOWER: Statement = Statement::new(
    "update marks
    set head = r.head, mark = r.head, retracted = ''
    from {rows} r
    where marks.user_id = r.user_id and marks.kind = r.kind and marks.name = r.name",
    &[("user_id", Type::Int), ("kind", Type::Int), ("name", Type::Text), ("head", Type::Int)],
);

static LOWER_GROUPS: Statement = Statement::new(
    "update memberships
    set read_seq = r.head, extra = r.extra
    from {rows} r
    where memberships.user_id = r.user_id and memberships.group_id = r.group_id and memberships.read_seq > r.head",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("head", Type::Int), ("extra", Type::Bytes)],
);

static LOWER_POSTS: Statement = Statement::new(
    "update following
    set mark = r.head
    from {rows} r
    where following.follower_id = r.user_id and following.followee_id = r.followee_id",
    &[("user_id", Type::Int), ("followee_id", Type::Int), ("head", Type::Int)],
);

static REMOVE_SNAPSHOTS: Statement = Statement::new(
    "delete from feed_snapshots
    where user_id in (select user_id from {rows} r)",
    USERS,
);

/// Polls show what is unread, and lists of creators belong to a revision: so both are raised.
static REVISE: Statement = Statement::new(
    "update users
    set revision = users.revision + 1, feed = case when r.feed = 1 then users.revision + 1 else users.feed end
    from {rows} r
    where users.user_id = r.user_id",
    &[("user_id", Type::Int), ("feed", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 9] {
    [&BEYOND, &BEYOND_GROUPS, &BEYOND_POSTS, &SNAPSHOTS, &LOWER, &LOWER_GROUPS, &LOWER_POSTS, &REMOVE_SNAPSHOTS, &REVISE]
}

/// Compares the marks of these users with the heads.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let columns = [Column::Int(users.to_vec())];
    let marks: Vec<(i64, i64, String, i64, i64)> = conn.fetch(&BEYOND, &columns).await?;
    let of_mark = |(user, kind, name, mark, head): (i64, i64, String, i64, i64)| {
        let what = What::Mark(Kind::from_code(kind)?);
        Some(Difference { name: Some(name.into()), ..Difference::new(user, what, mark, head) })
    };
    let groups: Vec<(i64, i64, i64, i64, i64)> = conn.fetch(&BEYOND_GROUPS, &columns).await?;
    let of_group = |(user, group, _, mark, head)| Difference { other: Some(group), ..Difference::new(user, What::ReadSeq, mark, head) };
    let posts: Vec<(i64, i64, i64, i64)> = conn.fetch(&BEYOND_POSTS, &columns).await?;
    let of_posts = |(user, creator, mark, head)| Difference { other: Some(creator), ..Difference::new(user, What::FollowMark, mark, head) };
    let snapshots: Vec<(i64, Vec<u8>)> = conn.fetch(&SNAPSHOTS, &columns).await?;
    let broken = snapshots.into_iter().filter(|(_, data)| Snapshot::is_broken(data));
    let of_snapshot = |(user, _)| Difference::new(user, What::FeedSnapshot, 1, 0);
    let found = marks.into_iter().filter_map(of_mark).chain(groups.into_iter().map(of_group)).chain(posts.into_iter().map(of_posts));
    Ok(found.chain(broken.map(of_snapshot)).collect())
}

/// Compares the marks of these users again, inside a transaction, under the locks of their rows,
/// and lowers those that are beyond a head.
pub(super) async fn repair(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let ids: Vec<_> = users.iter().filter_map(|user| UserId::try_from(*user).ok()).collect();
    marks::store::lock_users(conn, &ids).await?;
    let found = count(conn, users).await?;
    if found.is_empty() {
        return Ok(found);
    }
    let of = |is: fn(What) -> bool| found.iter().filter(move |found| is(found.what)).collect::<Vec<_>>();
    let ints = |these: &[&Difference], value: fn(&Difference) -> i64| Column::Int(these.iter().map(|found| value(found)).collect());
    let owners = |these: &[&Difference]| ints(these, |found| found.user);
    let others = |these: &[&Difference]| ints(these, |found| found.other.unwrap_or_default());
    let heads = |these: &[&Difference]| ints(these, |found| found.counted);
    let of_kind = |found: &Difference| if let What::Mark(kind) = found.what { kind.code() } else { 0 };
    let named = of(|what| matches!(what, What::Mark(_)));
    if !named.is_empty() {
        let names = named.iter().map(|found| found.name.as_deref().unwrap_or_default().to_owned()).collect();
        conn.run(&LOWER, &[owners(&named), ints(&named, of_kind), Column::Text(names), heads(&named)]).await?;
    }
    let groups = of(|what| what == What::ReadSeq);
    if !groups.is_empty() {
        let extra = Column::Bytes(vec![Vec::new(); groups.len()]);
        conn.run(&LOWER_GROUPS, &[owners(&groups), others(&groups), heads(&groups), extra]).await?;
    }
    let follows = of(|what| what == What::FollowMark);
    if !follows.is_empty() {
        conn.run(&LOWER_POSTS, &[owners(&follows), others(&follows), heads(&follows)]).await?;
    }
    let snapshots = of(|what| what == What::FeedSnapshot);
    if !snapshots.is_empty() {
        conn.run(&REMOVE_SNAPSHOTS, &[owners(&snapshots)]).await?;
    }
    let feeds: std::collections::BTreeSet<_> = follows.iter().chain(&snapshots).map(|found| found.user).collect();
    let revised: std::collections::BTreeSet<_> = found.iter().map(|found| found.user).collect();
    let of_feeds = revised.iter().map(|user| i64::from(feeds.contains(user))).collect();
    conn.run(&REVISE, &[Column::Int(revised.into_iter().collect()), Column::Int(of_feeds)]).await?;
    Ok(found)
}
