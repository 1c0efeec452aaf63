//! Finds the receivers of a group's messages: the members at the time when each was sent.

use crate::base::ids::GroupId;
use crate::db::{Column, Db, DbResult, Statement, Type};

/// The current members who joined before the last of the messages, in the order of their ordinals.
static HERE: Statement = Statement::one(
    "select m.ordinal, m.user_id, m.from_seq, m.to_seq
    from memberships m
    where m.group_id = $1 and m.ordinal > $2 and m.to_seq < 0 and m.from_seq < $3
    order by m.group_id, m.ordinal
    limit $4",
    &[("group_id", Type::Int), ("ordinal", Type::Int), ("last_seq", Type::Int), ("max_rows", Type::Int)],
);

/// Former members who left after the first of the messages was sent. A group may have any number of former
/// members, but few leave while a message is delivered.
static LEFT: Statement = Statement::one(
    "select m.ordinal, m.user_id, m.from_seq, m.to_seq
    from memberships m
    where m.group_id = $1 and m.to_seq >= $2 and m.to_seq >= 0
    order by m.group_id, m.to_seq
    limit $3",
    &[("group_id", Type::Int), ("first_seq", Type::Int), ("max_rows", Type::Int)],
);

/// The memberships that held when one of these messages was sent, of a stretch of ordinals. Those of a
/// user do not overlap, so a user has no more of them here than there are jobs.
static STRETCH: Statement = Statement::one(
    "select m.ordinal, m.user_id, m.from_seq, m.to_seq
    from memberships m
    where m.group_id = $1 and m.ordinal > $2 and m.ordinal <= $3 and (m.to_seq < 0 or m.to_seq >= $4) and exists (
        select 1
        from delivery_jobs t
        where t.group_id = $1 and t.job > $5 and t.job <= $6 and m.from_seq < t.seq and (m.to_seq < 0 or t.seq <= m.to_seq)
    )
    order by m.group_id, m.ordinal
    limit $7",
    &[
        ("group_id", Type::Int),
        ("ordinal", Type::Int),
        ("up_to_ordinal", Type::Int),
        ("first_seq", Type::Int),
        ("after", Type::Int),
        ("up_to", Type::Int),
        ("max_rows", Type::Int),
    ],
)
.distributed(super::distributed::STRETCH);

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> [&'static Statement; 3] {
    [&HERE, &LEFT, &STRETCH]
}

/// How many jobs one pass takes.
pub(super) const MAX_JOBS: usize = 50;

/// How many rows of inboxes one page writes at most, and for how many memberships.
const MAX_ROWS: usize = 2500;
const MAX_MEMBERSHIPS: usize = 1000;

/// A page takes whole members, so more memberships are read for it than one member can have.
const MIN_MEMBERSHIPS: usize = MAX_JOBS + 1;

// The jobs of all memberships but the last are written.
const _: () = assert!((MIN_MEMBERSHIPS - 1) * MAX_JOBS <= MAX_ROWS);

/// Each page reads all who have left since, up to so many. Where there are more, a page goes through a
/// stretch of ordinals, so that it ends soon whether or not anybody in it was a member then.
const MAX_LEFT: usize = 1000;
const MAX_STRETCH: i64 = 20_000;

/// A membership: ordinal, user, after which message it began, and the last one of it or -1.
pub(super) type Membership = (i64, i64, i64, i64);

/// Whether it held when a message was sent.
pub(super) fn holds((_, _, from_seq, to_seq): &Membership, seq: i64) -> bool {
    *from_seq < seq && (*to_seq < 0 || seq <= *to_seq)
}

/// The messages of which somebody is to have those that fell into a membership.
pub(super) struct Due<'a> {
    pub(super) group: GroupId,
    /// The messages of the jobs, but for those that have expired.
    pub(super) seqs: &'a [i64],
    /// The jobs, after the one and up to the other.
    pub(super) after: i64,
    pub(super) up_to: i64,
}

impl Due<'_> {
    /// The next memberships after this ordinal, of whole members; and the ordinal to go on after, or None
    /// where these are all. `ordinals` is the highest that the group has given.
    pub(super) async fn memberships(&self, db: &Db, ordinal: i64, ordinals: i64) -> DbResult<(Vec<Membership>, Option<i64>)> {
        let (Some(first), Some(last)) = (self.seqs.iter().min(), self.seqs.iter().max()) else { return Ok((Vec::new(), None)) };
        let most = most_memberships(self.seqs.len());
        let fetch = async |statement: &'static Statement, values: &[i64]| db.fetch::<Membership>(statement, &Column::one_row(values)).await;
        let group = self.group.get();
        // Before those who have left: so anyone who leaves meanwhile is among the one or the other, or both.
        let here = fetch(&HERE, &[group, ordinal, *last, as_i64(most)]).await?;
        let left = fetch(&LEFT, &[group, *first, as_i64(MAX_LEFT + 1)]).await?;
        if left.len() <= MAX_LEFT {
            return Ok(whole_members(self.together(here, left, ordinal, most), most));
        }
        let end = ordinal.saturating_add(MAX_STRETCH);
        let found = fetch(&STRETCH, &[group, ordinal, end, *first, self.after, self.up_to, as_i64(most)]).await?;
        let (memberships, next) = whole_members(found, most);
        Ok((memberships, next.or((end < ordinals).then_some(end))))
    }

    /// The first memberships of both, in the order of ordinals, each once.
    fn together(&self, here: Vec<Membership>, left: Vec<Membership>, ordinal: i64, most: usize) -> Vec<Membership> {
        let is_due = |membership: &Membership| membership.0 > ordinal && self.seqs.iter().any(|seq| holds(membership, *seq));
        let mut all: Vec<_> = here.into_iter().chain(left.into_iter().filter(is_due)).collect();
        all.sort_unstable_by_key(|(ordinal, _, from_seq, _)| (*ordinal, *from_seq));
        all.dedup_by_key(|(ordinal, _, from_seq, _)| (*ordinal, *from_seq));
        all.truncate(most);
        all
    }
}

/// How many memberships are read for a page of so many jobs.
fn most_memberships(jobs: usize) -> usize {
    (MAX_ROWS / jobs.max(1)).clamp(MIN_MEMBERSHIPS, MAX_MEMBERSHIPS)
}

/// Without the last member where there may be more, as not all of its memberships may be among them. Returns
/// with it the ordinal to go on after; None: these are all.
fn whole_members(mut memberships: Vec<Membership>, most: usize) -> (Vec<Membership>, Option<i64>) {
    let last = memberships.last().map(|(ordinal, ..)| *ordinal);
    let Some(cut) = last.filter(|_| memberships.len() >= most) else { return (memberships, None) };
    memberships.retain(|(ordinal, ..)| *ordinal < cut);
    (memberships, Some(cut - 1))
}

fn as_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_whole_members() {
        let memberships = |ordinals: &[i64]| ordinals.iter().map(|ordinal| (*ordinal, *ordinal, 0, -1)).collect::<Vec<_>>();
        assert_eq!(whole_members(memberships(&[1, 2, 3]), 4), (memberships(&[1, 2, 3]), None));
        assert_eq!(whole_members(memberships(&[1, 2, 3, 3]), 4), (memberships(&[1, 2]), Some(2)));
        assert_eq!(whole_members(memberships(&[1, 2, 9, 9]), 4), (memberships(&[1, 2]), Some(8)), "nobody is between them");
        assert_eq!(whole_members(memberships(&[]), 4), (memberships(&[]), None));
        for jobs in 0..=MAX_JOBS {
            let most = most_memberships(jobs);
            // The last member is left out, so at least one membership is. A membership may be read for
            // a job whose message has expired.
            assert!(most > MAX_JOBS && most <= MAX_MEMBERSHIPS && (most - 1) * jobs <= MAX_ROWS, "{jobs} jobs, {most} memberships");
        }
    }

    #[test]
    fn who_leaves_between_the_two_reads_is_there_once() {
        let due = Due { group: GroupId::try_from(9).unwrap(), seqs: &[5, 8], after: 0, up_to: 2 };
        let here = [(2, 12, 0, -1), (4, 14, 6, -1), (7, 17, 0, -1)].to_vec();
        // 12 has left since, 13 before the second message; 16 came and went between the two; 11 was done before.
        let left = [(3, 13, 0, 6), (1, 11, 0, 9), (2, 12, 0, 9), (6, 16, 5, 7), (5, 15, 0, 8)].to_vec();
        let users = |most| due.together(here.clone(), left.clone(), 1, most).into_iter().map(|(_, user, ..)| user).collect::<Vec<_>>();
        assert_eq!(users(10), [12, 13, 14, 15, 17]);
        assert_eq!(users(3), [12, 13, 14]);
    }
}
