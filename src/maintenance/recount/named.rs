//! What a recount compares of mentions by name: the positions that each member has, against the
//! messages that name the member.
//!
//! A transaction writes a message together with the positions of those whom it names, and a
//! position goes when it is read. So of a message that was read from the database first, a position
//! that is missing afterwards is a difference. So is a position that was read first, if its message
//! names somebody else afterwards. What is committed in between does not matter.

use std::collections::{BTreeMap, BTreeSet};

use super::living::lock_living;
use super::{Difference, What};
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::engine::marks::Intervals;
use crate::features::groups::MAX_MENTION_RUNS;

/// How many messages one page has.
const PAGE: usize = 1000;

/// How many positions one statement compares.
const POSITIONS_AT_ONCE: usize = 10_000;

/// Messages of these groups that name anybody, after a place in the order of the key.
static NAMING: Statement = Statement::new(
    "select m.group_id, m.seq, m.mentions
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.mentions <> '' and +m.recalled = 0
    where (m.group_id, m.seq) > (r.after_group, r.after_seq)
    order by m.group_id, m.seq
    limit 1000",
    &[("group_id", Type::Int), ("after_group", Type::Int), ("after_seq", Type::Int)],
)
.by("group_id");

/// The `+` makes SQLite look the rows up by the group, too.
static MEMBERS: Statement = Statement::new(
    "select m.user_id, m.group_id, m.from_seq, m.read_seq, m.unread_from, m.mentions
    from {rows} r
    join memberships m on m.user_id = r.user_id and m.group_id = r.group_id and +m.to_seq < 0",
    &[("user_id", Type::Int), ("group_id", Type::Int)],
)
.by("user_id");

/// The memberships of these users that have any positions.
static WITH_ANY: Statement = Statement::new(
    "select m.user_id, m.group_id, m.from_seq, m.read_seq, m.unread_from, m.mentions
    from {rows} r
    join memberships m on m.user_id = r.user_id and m.to_seq < 0 and m.mentions <> ''
    order by m.user_id, m.group_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Which of these positions are of messages that do not name the user.
static NOT_NAMED: Statement = Statement::new(
    "select r.user_id, r.group_id, r.seq
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.seq = r.seq
    where m.recalled = 0 and m.mentions not like '% ' || cast(r.user_id as text) || ' %'
    order by r.user_id, r.group_id, r.seq",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("seq", Type::Int)],
)
.by("group_id");

static SET: Statement = Statement::new(
    "update memberships
    set mentions = r.mentions
    from {rows} r
    where memberships.user_id = r.user_id and memberships.group_id = r.group_id and +memberships.to_seq < 0",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("mentions", Type::Text)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 5] {
    [&NAMING, &MEMBERS, &WITH_ANY, &NOT_NAMED, &SET]
}

/// A place in the order of the messages: a group and a message. Every message is after the first.
pub(super) type Place = (i64, i64);

/// A membership, as far as mentions need it.
struct Member {
    /// Up to here nothing is unread.
    mark: i64,
    mentions: Intervals,
}

type MemberRow = (i64, i64, i64, i64, i64, String);

impl Member {
    fn of_row((user, group, from_seq, read_seq, unread_from, mentions): MemberRow) -> ((i64, i64), Self) {
        let mark = if unread_from > 0 { unread_from - 1 } else { read_seq };
        ((user, group), Self { mark: mark.max(from_seq), mentions: Intervals::parse(&mentions) })
    }

    /// Whether the position of a message that names the member is missing.
    fn lacks(&self, seq: i64) -> bool {
        // Of more than are kept, the oldest are left out.
        let is_kept = self.mentions.runs() < MAX_MENTION_RUNS || self.mentions.first().is_some_and(|first| seq > first);
        seq > self.mark && is_kept && !self.mentions.contains(seq)
    }
}

fn difference(user: i64, group: i64, seq: i64, stored: i64) -> Difference {
    let name = Some(group.to_string().into());
    Difference { other: Some(seq), name, ..Difference::new(user, What::Mention, stored, 1 - stored) }
}

async fn members(conn: &mut Conn, pairs: &BTreeSet<(i64, i64)>) -> DbResult<BTreeMap<(i64, i64), Member>> {
    if pairs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let columns = [pairs.iter().map(|(user, _)| *user).collect(), pairs.iter().map(|(_, group)| *group).collect()];
    let rows: Vec<MemberRow> = conn.fetch(&MEMBERS, &columns.map(Column::Int)).await?;
    Ok(rows.into_iter().map(Member::of_row).collect())
}

/// Positions that are missing for messages of these groups, from a place on. Returns where to go on
/// if there may be more.
pub(super) async fn missing(conn: &mut Conn, groups: &[i64], after: Place) -> DbResult<(Vec<Difference>, Option<Place>)> {
    let columns = [groups.to_vec(), vec![after.0; groups.len()], vec![after.1; groups.len()]].map(Column::Int);
    let messages: Vec<(i64, i64, String)> = conn.fetch(&NAMING, &columns).await?;
    let named = |(group, seq, text): &(i64, i64, String)| {
        let (group, seq) = (*group, *seq);
        text.split_ascii_whitespace().filter_map(|user| user.parse().ok()).map(move |user: i64| (user, group, seq)).collect::<Vec<_>>()
    };
    let named: Vec<_> = messages.iter().flat_map(named).collect();
    let members = members(conn, &named.iter().map(|(user, group, _)| (*user, *group)).collect()).await?;
    let lacking = named.iter().filter(|(user, group, seq)| members.get(&(*user, *group)).is_some_and(|member| member.lacks(*seq)));
    let found = lacking.map(|(user, group, seq)| difference(*user, *group, *seq, 0)).collect();
    Ok((found, messages.last().map(|(group, seq, _)| (*group, *seq)).filter(|_| messages.len() == PAGE)))
}

/// Positions of these users whose messages do not name them.
pub(super) async fn extra(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let rows: Vec<MemberRow> = conn.fetch(&WITH_ANY, &[Column::Int(users.to_vec())]).await?;
    let (mut positions, mut found) = (Vec::new(), Vec::new());
    for ((user, group), member) in rows.into_iter().map(Member::of_row) {
        // Few runs may be very many positions.
        for seq in member.mentions.positions().filter(|seq| *seq > member.mark) {
            positions.push([user, group, seq]);
            if positions.len() == POSITIONS_AT_ONCE {
                found.extend(not_named(conn, &positions).await?);
                positions.clear();
            }
        }
    }
    found.extend(not_named(conn, &positions).await?);
    Ok(found)
}

/// Those of these positions (user, group, message) whose messages do not name the user.
async fn not_named(conn: &mut Conn, positions: &[[i64; 3]]) -> DbResult<Vec<Difference>> {
    if positions.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [0, 1, 2].map(|at: usize| Column::Int(positions.iter().filter_map(|position| position.get(at).copied()).collect()));
    let rows: Vec<(i64, i64, i64)> = conn.fetch(&NOT_NAMED, &columns).await?;
    Ok(rows.into_iter().map(|(user, group, seq)| difference(user, group, seq, 1)).collect())
}

/// Adds what is missing and removes the rest, inside a transaction, under the locks of the users.
pub(super) async fn repair(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let pair = |found: &Difference| Some((found.user, found.name.as_deref()?.parse().ok()?));
    let users: BTreeSet<_> = found.iter().map(|found| found.user).collect();
    let users = lock_living(conn, &users.into_iter().collect::<Vec<_>>()).await?;
    let mut members = members(conn, &found.iter().filter(|found| users.contains(&found.user)).filter_map(pair).collect()).await?;
    for found in found {
        let (Some(seq), Some(member)) = (found.other, pair(found).and_then(|pair| members.get_mut(&pair))) else { continue };
        if found.stored == 1 {
            member.mentions.remove(seq);
        } else if member.lacks(seq) {
            member.mentions.insert(seq, seq);
        }
    }
    if members.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::Int(members.keys().map(|(user, _)| *user).collect()),
        Column::Int(members.keys().map(|(_, group)| *group).collect()),
        Column::Text(members.values().map(|member| member.mentions.to_string()).collect()),
    ];
    conn.run(&SET, &columns).await?;
    // Polls show what is mentioned, so the revisions are raised.
    super::marks::revise(conn, users).await
}
