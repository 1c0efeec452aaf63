//! What a recount compares of how far users have read: no mark may lie beyond the head of its
//! stream, as what comes next would count as read. Repaired, it is at the head, and nothing is
//! unread.
//!
//! A head that is itself too low is told from the rows of its things, so that no mark is lost by
//! it. A snapshot of a feed that cannot be read counts as none; a recount removes it.

use std::collections::{BTreeSet, HashMap};

use super::distributed;
use super::doubt::{doubted, retain_lasting};
use super::living::lock_living;
use super::{Difference, What};
use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::engine::marks::{self, Kind, Mark, UserMarks};
use crate::features::feed::Snapshot;

/// The kinds whose marks are in the users' own rows.
const OWN: [Kind; 3] = [Kind::Counter, Kind::Broadcast, Kind::Dot];

const USERS: &[(&str, Type)] = &[("user_id", Type::Int)];

/// Marks of views. The rows of things are only looked at where a mark is beyond the head.
static BEYOND_VIEWS: Statement = Statement::new(
    "select user_id, name, mark, head
    from (
        select user_id, name, mark, case when named > head then named else head end as head
        from (
            select m.user_id, m.name, m.mark, coalesce(h.head, 0) as head,
                case when m.mark <= coalesce(h.head, 0) then 0
                    else coalesce((select max(i.seq) from view_items i where i.stream = m.name), 0) end as named
            from {rows} r
            join marks m on m.user_id = r.user_id and m.kind = 4
            left join heads h on h.owner_id = 0 and h.kind = m.kind and h.name = m.name
        ) marked
    ) counted
    where mark > head
    order by user_id, name",
    USERS,
)
.distributed(distributed::BEYOND_VIEWS)
.by("user_id");

static MARKS: Statement = Statement::new(
    "select u.user_id, u.marks
    from {rows} r
    join users u on u.user_id = r.user_id and u.marks <> ''
    order by u.user_id",
    USERS,
)
.by("user_id");

/// The heads of channels and dots, and of channels what their rows say of it.
static HEADS: Statement = Statement::one(
    "select h.kind, h.name, h.head, coalesce((select max(n.seq) from notices n where h.kind = 2 and n.channel = h.name), 0)
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3)
    order by h.kind, h.name",
    &[],
)
.distributed(distributed::HEADS);

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
)
.distributed(distributed::BEYOND_GROUPS)
.by("user_id");

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
)
.distributed(distributed::BEYOND_POSTS)
.by("user_id");

static SNAPSHOTS: Statement = Statement::new(
    "select s.user_id, s.data
    from {rows} r
    join feed_snapshots s on s.user_id = r.user_id
    order by s.user_id",
    USERS,
)
.by("user_id");

static LOWER_VIEWS: Statement = Statement::new(
    "update marks
    set head = r.head, mark = r.head, retracted = ''
    from {rows} r
    where marks.user_id = r.user_id and marks.kind = 4 and marks.name = r.name",
    &[("user_id", Type::Int), ("name", Type::Text), ("head", Type::Int)],
)
.by("user_id");

static SET_MARKS: Statement = Statement::new(
    "update users
    set version = users.version + 1, marks = r.marks
    from {rows} r
    where users.user_id = r.user_id",
    &[("user_id", Type::Int), ("marks", Type::Text)],
)
.by("user_id");

static LOWER_GROUPS: Statement = Statement::new(
    "update memberships
    set read_seq = r.head, extra = r.extra
    from {rows} r
    where memberships.user_id = r.user_id and memberships.group_id = r.group_id and memberships.read_seq > r.head",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("head", Type::Int), ("extra", Type::Bytes)],
)
.by("user_id");

static LOWER_POSTS: Statement = Statement::new(
    "update following
    set mark = r.head
    from {rows} r
    where following.follower_id = r.user_id and following.followee_id = r.followee_id",
    &[("user_id", Type::Int), ("followee_id", Type::Int), ("head", Type::Int)],
)
.by("user_id");

static REMOVE_SNAPSHOTS: Statement = Statement::new(
    "delete from feed_snapshots
    where user_id in (select user_id from {rows} r)",
    USERS,
)
.by("user_id");

/// Polls show what is unread, and lists of creators belong to a revision: so both are raised.
static REVISE: Statement = Statement::new(
    "update users
    set version = users.version + 1, revision = users.revision + 1, feed = case when r.feed = 1 then users.revision + 1 else users.feed end
    from {rows} r
    where users.user_id = r.user_id",
    &[("user_id", Type::Int), ("feed", Type::Int)],
)
.by("user_id");

/// Raises the revisions of these users, whose lists of creators stay as they are.
pub(super) async fn revise(conn: &mut Conn, users: Vec<i64>) -> DbResult<()> {
    let feeds = vec![0; users.len()];
    conn.run(&REVISE, &[users, feeds].map(Column::Int)).await.map(|_| ())
}

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 12] {
    [
        &BEYOND_VIEWS,
        &MARKS,
        &HEADS,
        &BEYOND_GROUPS,
        &BEYOND_POSTS,
        &SNAPSHOTS,
        &LOWER_VIEWS,
        &SET_MARKS,
        &LOWER_GROUPS,
        &LOWER_POSTS,
        &REMOVE_SNAPSHOTS,
        &REVISE,
    ]
}

/// The heads of channels and dots, and 0 for those that have none.
type Heads = HashMap<(Kind, String), i64>;

/// Compares the marks in the users' own rows. A head that is too low is not told from the marks: for
/// channels the rows of their broadcasts say more.
async fn count_own(conn: &mut Conn, columns: &[Column]) -> DbResult<Vec<Difference>> {
    let rows: Vec<(i64, String)> = conn.fetch(&MARKS, columns).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let heads: Vec<(i64, String, i64, i64)> = conn.fetch(&HEADS, &[]).await?;
    let heads: Heads =
        heads.into_iter().filter_map(|(kind, name, head, sent)| Some(((Kind::from_code(kind)?, name), head.max(sent)))).collect();
    let mut found = Vec::new();
    for (user, marks) in &rows {
        let marks = UserMarks::from_row(marks);
        for kind in OWN {
            for packed in marks.of_kind(kind) {
                let head =
                    if kind == Kind::Counter { packed.head } else { heads.get(&(kind, packed.name.to_owned())).copied().unwrap_or(0) };
                let mark = packed.head.saturating_sub(packed.behind);
                if mark > head {
                    let difference = Difference::new(*user, What::Mark(kind), mark, head);
                    found.push(Difference { name: Some(packed.name.into()), ..difference });
                }
            }
        }
    }
    Ok(found)
}

/// Lowers the marks in the users' own rows to their heads.
async fn lower_own(conn: &mut Conn, found: &[&Difference]) -> DbResult<()> {
    let users: BTreeSet<_> = found.iter().map(|found| found.user).collect();
    let rows: Vec<(i64, String)> = conn.fetch(&MARKS, &[Column::Int(users.into_iter().collect())]).await?;
    let (mut ids, mut texts) = (Vec::new(), Vec::new());
    for (user, marks) in rows {
        let mut marks = UserMarks::from_row(&marks);
        for difference in found.iter().filter(|found| found.user == user) {
            if let (What::Mark(kind), Some(name)) = (difference.what, &difference.name) {
                marks.set(kind, name, &Mark::from_row(difference.counted, difference.counted, "", UnixMs(0)));
            }
        }
        ids.push(user);
        texts.push(marks.as_str().to_owned());
    }
    conn.run(&SET_MARKS, &[Column::Int(ids), Column::Text(texts)]).await.map(|_| ())
}

/// Compares the marks of these users with the heads.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let columns = [Column::Int(users.to_vec())];
    let own = count_own(conn, &columns).await?;
    let views: Vec<(i64, String, i64, i64)> = conn.fetch(&BEYOND_VIEWS, &columns).await?;
    let of_view = |(user, name, mark, head): (i64, String, i64, i64)| Difference {
        name: Some(name.into()),
        ..Difference::new(user, What::Mark(Kind::View), mark, head)
    };
    let groups: Vec<(i64, i64, i64, i64, i64)> = conn.fetch(&BEYOND_GROUPS, &columns).await?;
    let of_group = |(user, group, _, mark, head)| Difference { other: Some(group), ..Difference::new(user, What::ReadSeq, mark, head) };
    let posts: Vec<(i64, i64, i64, i64)> = conn.fetch(&BEYOND_POSTS, &columns).await?;
    let of_posts = |(user, creator, mark, head)| Difference { other: Some(creator), ..Difference::new(user, What::FollowMark, mark, head) };
    let snapshots: Vec<(i64, Vec<u8>)> = conn.fetch(&SNAPSHOTS, &columns).await?;
    let broken = snapshots.into_iter().filter(|(_, data)| Snapshot::is_broken(data));
    let of_snapshot = |(user, _)| Difference::new(user, What::FeedSnapshot, 1, 0);
    let found = own
        .into_iter()
        .chain(views.into_iter().map(of_view))
        .chain(groups.into_iter().map(of_group))
        .chain(posts.into_iter().map(of_posts));
    Ok(found.chain(broken.map(of_snapshot)).collect())
}

/// Compares the marks of these users again, inside a transaction, under the locks of their rows,
/// and lowers those that are beyond a head.
pub(super) async fn repair(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let users = lock_living(conn, users).await?;
    let mut found = count(conn, &users).await?;
    if let Some(owners) = doubted(conn, &found) {
        retain_lasting(&mut found, &count(conn, &owners).await?);
    }
    if found.is_empty() {
        return Ok(found);
    }
    let of = |is: fn(What) -> bool| found.iter().filter(move |found| is(found.what)).collect::<Vec<_>>();
    let ints = |these: &[&Difference], value: fn(&Difference) -> i64| Column::Int(these.iter().map(|found| value(found)).collect());
    let owners = |these: &[&Difference]| ints(these, |found| found.user);
    let others = |these: &[&Difference]| ints(these, |found| found.other.unwrap_or_default());
    let heads = |these: &[&Difference]| ints(these, |found| found.counted);
    let own = of(|what| matches!(what, What::Mark(kind) if marks::is_own(kind)));
    if !own.is_empty() {
        lower_own(conn, &own).await?;
    }
    let views = of(|what| what == What::Mark(Kind::View));
    if !views.is_empty() {
        let names = views.iter().map(|found| found.name.as_deref().unwrap_or_default().to_owned()).collect();
        conn.run(&LOWER_VIEWS, &[owners(&views), Column::Text(names), heads(&views)]).await?;
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
    let feeds: BTreeSet<_> = follows.iter().chain(&snapshots).map(|found| found.user).collect();
    let revised: BTreeSet<_> = found.iter().map(|found| found.user).collect();
    let of_feeds = revised.iter().map(|user| i64::from(feeds.contains(user))).collect();
    conn.run(&REVISE, &[Column::Int(revised.into_iter().collect()), Column::Int(of_feeds)]).await?;
    Ok(found)
}
