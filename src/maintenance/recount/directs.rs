//! What a recount compares of inboxes and direct chats: where each chat is, against the rows of the
//! inbox that are kept; and the numbers in the user's own row, against the chats and those rows. Of
//! what has expired nothing is left to compare with.

use std::collections::BTreeMap;

use super::living::lock_living;
use super::store::PAGE;
use super::{Difference, What};
use crate::db::{Column, Conn, DbResult, Statement, Type};

/// Chats of these users of which the rows that are kept say something else, or whose mark is beyond
/// the head, after a place in the order of the key.
static SIDES: Statement = Statement::new(
    "select user_id, peer_id, head, head_counted, mark, case when mark > head_counted then head_counted when mark < 0 then 0 else mark end,
        recalled, recalled_counted
    from (
        select d.user_id, d.peer_id, d.head, d.mark, d.recalled, (
            select count(*)
            from inbox i
            where i.user_id = d.user_id and i.peer_id = d.peer_id and i.peer_id > 0 and i.own = 0 and i.recall = 0 and i.recalled = 1
                and i.peer_seq > d.mark - d.again
        ) as recalled_counted, coalesce((
            select i.peer_seq
            from inbox i
            where i.user_id = d.user_id and i.peer_id = d.peer_id and i.peer_id > 0
            order by i.seq desc
            limit 1
        ), d.head) as head_counted
        from {rows} r
        join directs d on d.user_id = r.user_id
        where (d.user_id, d.peer_id) > (r.after_user, r.after_peer)
    ) counted
    where head <> head_counted or mark > head_counted or mark < 0 or recalled <> recalled_counted
    order by user_id, peer_id
    limit 1000",
    &[("user_id", Type::Int), ("after_user", Type::Int), ("after_peer", Type::Int)],
)
.by("user_id");

static ADD_TO_SIDES: Statement = Statement::new(
    "update directs
    set head = directs.head + r.head, mark = directs.mark + r.mark, recalled = directs.recalled + r.recalled
    from {rows} r
    where directs.user_id = r.user_id and directs.peer_id = r.peer_id",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("head", Type::Int), ("mark", Type::Int), ("recalled", Type::Int)],
)
.by("user_id");

/// Every number of these users beside what it is to count, where any differs. The head of an inbox
/// is at least the last row that is kept.
static COUNT: Statement = Statement::new(
    "select user_id, unread, unread_counted, chats, chats_counted, head, head_counted
    from (
        select r.user_id,
            coalesce(u.direct_unread, 0) as unread,
            coalesce((
                select cast(sum(d.head - d.mark + d.again - d.recalled) as bigint)
                from directs d
                where d.user_id = r.user_id and d.level = 0 and d.head - d.mark + d.again > d.recalled
                    and not exists (select 1 from blocks b where b.user_id = r.user_id and b.target_id = d.peer_id)
                    and not exists (select 1 from mutes m where m.user_id = r.user_id and m.target_id = d.peer_id)
            ), 0) as unread_counted,
            coalesce(u.direct_chats, 0) as chats,
            (
                select count(*)
                from directs d
                where d.user_id = r.user_id and d.level = 0 and d.head - d.mark + d.again > d.recalled
                    and not exists (select 1 from blocks b where b.user_id = r.user_id and b.target_id = d.peer_id)
                    and not exists (select 1 from mutes m where m.user_id = r.user_id and m.target_id = d.peer_id)
            ) as chats_counted,
            coalesce(u.inbox_seq, 0) as head,
            coalesce((
                select i.seq
                from inbox i
                where i.user_id = r.user_id and i.seq > coalesce(u.inbox_seq, 0)
                order by i.seq desc
                limit 1
            ), u.inbox_seq, 0) as head_counted
        from {rows} r
        left join users u on u.user_id = r.user_id
    ) counted
    where unread <> unread_counted or chats <> chats_counted or head <> head_counted
    order by user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Polls show these numbers, so the revision is raised.
static ADD_TO_USERS: Statement = Statement::new(
    "insert into users (user_id, version, revision, direct_unread, direct_chats, inbox_seq)
    select user_id, 1, 1, direct_unread, direct_chats, inbox_seq
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        version = users.version + 1,
        revision = users.revision + 1,
        direct_unread = users.direct_unread + excluded.direct_unread,
        direct_chats = users.direct_chats + excluded.direct_chats,
        inbox_seq = users.inbox_seq + excluded.inbox_seq",
    &[("user_id", Type::Int), ("direct_unread", Type::Int), ("direct_chats", Type::Int), ("inbox_seq", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 4] {
    [&SIDES, &ADD_TO_SIDES, &COUNT, &ADD_TO_USERS]
}

/// A row of [`SIDES`]: each number as it is stored and as it is counted.
type SideRow = (i64, i64, i64, i64, i64, i64, i64, i64);

/// A place in the order of the chats: whose, and with whom. Every chat is after the first.
pub(super) type Place = (i64, i64);

/// Compares the chats of these users from a place on. Returns what differs, and where to go on if
/// there may be more.
pub(super) async fn sides(conn: &mut Conn, users: &[i64], after: Place) -> DbResult<(Vec<Difference>, Option<Place>)> {
    let columns = [users.to_vec(), vec![after.0; users.len()], vec![after.1; users.len()]].map(Column::Int);
    let rows: Vec<SideRow> = conn.fetch(&SIDES, &columns).await?;
    let next = rows.last().map(|row| (row.0, row.1)).filter(|_| rows.len() == PAGE);
    let differences = |row: SideRow| {
        let difference = |what, stored, counted| Difference { other: Some(row.1), ..Difference::new(row.0, what, stored, counted) };
        [
            difference(What::DirectHead, row.2, row.3),
            difference(What::DirectMark, row.4, row.5),
            difference(What::DirectRecalled, row.6, row.7),
        ]
    };
    Ok((rows.into_iter().flat_map(differences).filter(|found| found.stored != found.counted).collect(), next))
}

/// Compares the chats of these users from a place on again, inside a transaction, under the locks
/// of the users, and adds what is missing.
pub(super) async fn repair_sides(conn: &mut Conn, users: &[i64], after: Place) -> DbResult<Vec<Difference>> {
    let users = lock_living(conn, users).await?;
    let (found, _) = sides(conn, &users, after).await?;
    if found.is_empty() {
        return Ok(found);
    }
    let mut sides: BTreeMap<(i64, i64), [i64; 3]> = BTreeMap::new();
    for difference in &found {
        let [head, mark, recalled] = sides.entry((difference.user, difference.other.unwrap_or_default())).or_default();
        let by = difference.missing();
        match difference.what {
            What::DirectHead => *head += by,
            What::DirectMark => *mark += by,
            _ => *recalled += by,
        }
    }
    let columns: [Vec<i64>; 5] = [
        sides.keys().map(|(user, _)| *user).collect(),
        sides.keys().map(|(_, peer)| *peer).collect(),
        sides.values().map(|[head, ..]| *head).collect(),
        sides.values().map(|[_, mark, _]| *mark).collect(),
        sides.values().map(|[.., recalled]| *recalled).collect(),
    ];
    conn.run(&ADD_TO_SIDES, &columns.map(Column::Int)).await?;
    // Entries and pages of chats show them, also where the user's sums do not count the chat.
    let mut users: Vec<_> = sides.keys().map(|(user, _)| *user).collect();
    users.dedup();
    super::marks::revise(conn, users).await?;
    Ok(found)
}

/// Compares the numbers of these users.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let rows: Vec<(i64, i64, i64, i64, i64, i64, i64)> = conn.fetch(&COUNT, &[Column::Int(users.to_vec())]).await?;
    let differences = |row: (i64, i64, i64, i64, i64, i64, i64)| {
        let difference = |what, stored, counted| Difference::new(row.0, what, stored, counted);
        [
            difference(What::DirectUnread, row.1, row.2),
            difference(What::DirectChats, row.3, row.4),
            difference(What::InboxSeq, row.5, row.6),
        ]
    };
    Ok(rows.into_iter().flat_map(differences).filter(|found| found.stored != found.counted).collect())
}

/// Adds what is missing to those numbers that are of this file, inside a transaction.
pub(super) async fn repair_numbers(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let mut users: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
    for difference in found {
        let place = match difference.what {
            What::DirectUnread => 0,
            What::DirectChats => 1,
            What::InboxSeq => 2,
            _ => continue,
        };
        if let Some(number) = users.entry(difference.user).or_default().get_mut(place) {
            *number += difference.missing();
        }
    }
    if users.is_empty() {
        return Ok(());
    }
    let columns: [Vec<i64>; 4] = [
        users.keys().copied().collect(),
        users.values().map(|[unread, ..]| *unread).collect(),
        users.values().map(|[_, chats, _]| *chats).collect(),
        users.values().map(|[.., head]| *head).collect(),
    ];
    conn.run(&ADD_TO_USERS, &columns.map(Column::Int)).await.map(|_| ())
}
