//! What is to be fanned out: which jobs of a group go into the inboxes of which of its members next.
//! What becomes of a page is in `pages.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use super::due_members::{Due, MAX_JOBS, Membership, holds};
use crate::base::abandoned::AHEAD_MS;
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::features::inbox::GroupRun;

static PLAN: Statement = Statement::one(
    "select d.delivered, d.up_to_job, d.up_to_ordinal, g.jobs, g.ordinals
    from group_deliveries d
    join chat_groups g on g.group_id = d.group_id
    where d.group_id = $1 and g.deleted_by = ''",
    &[("group_id", Type::Int)],
);

static JOBS: Statement = Statement::one(
    "select t.job, t.seq, t.recall, m.sender_id
    from delivery_jobs t
    join group_messages m on m.group_id = t.group_id and m.seq = t.seq
    where t.group_id = $1 and t.job > $2 and t.job <= $3
    order by t.group_id, t.job",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int)],
);

/// Groups with jobs that nobody has moved for a while, and since when; those that have waited
/// longest first. With as many that were moved so far in the future that a clock was fast.
static BEHIND: Statement = Statement::one(
    "select * from (
        select t.group_id, min(d.at)
        from delivery_jobs t
        join group_deliveries d on d.group_id = t.group_id
        where d.at < $1
        group by t.group_id
        order by min(d.at), t.group_id
        limit $3
    ) behind
    union all
    select * from (
        select t.group_id, min(d.at)
        from delivery_jobs t
        join group_deliveries d on d.group_id = t.group_id
        where d.at > $2
        group by t.group_id
        order by min(d.at), t.group_id
        limit $3
    ) ahead",
    &[("before", Type::Int), ("ahead", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&PLAN, &JOBS, &BEHIND]
}

// A member's jobs are bits of a number.
const _: () = assert!(MAX_JOBS <= 64);

/// How far a group's jobs are. It only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Progress {
    /// Every member has the jobs up to this one.
    pub delivered: i64,
    /// The present pass puts the jobs up to this one into inboxes.
    pub up_to_job: i64,
    /// The members up to this ordinal have those.
    pub up_to_ordinal: i64,
}

impl Progress {
    /// That of a group that is deleted: no page has it, so one that was planned before is not taken any more.
    #[must_use]
    pub fn of_deleted(self) -> Self {
        Self { up_to_job: i64::MAX, up_to_ordinal: i64::MAX, ..self }
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPage {
    /// Of which group.
    pub group: GroupId,
    /// Whether the page before it is under way, which leads to `from`.
    pub follows: bool,
    /// The progress that it was made for.
    pub from: Progress,
    /// The progress after it.
    pub to: Progress,
    /// What is put into whose inbox, in order.
    pub members: Vec<(UserId, Arc<[GroupRun]>)>,
}

impl DeliveryPage {
    /// How many rows of inboxes it writes.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.members.iter().flat_map(|(_, runs)| runs.iter()).map(|run| run.rows().unsigned_abs()).sum()
    }
}

/// The next page of a group; None where nothing is to be done. It goes on where the page before is
/// to lead, which may still be under way, or where the database says.
pub(super) async fn next_page(db: &Db, group: GroupId, after: Option<Progress>) -> DbResult<Option<DeliveryPage>> {
    let plan: Vec<(i64, i64, i64, i64, i64)> = db.fetch(&PLAN, &Column::one_row(&[group.get()])).await?;
    let Some(&(delivered, up_to_job, up_to_ordinal, jobs, ordinals)) = plan.first() else { return Ok(None) };
    let from = after.unwrap_or(Progress { delivered, up_to_job, up_to_ordinal });
    let Progress { delivered, up_to_job, up_to_ordinal } = from;
    // A pass that was begun goes on with the jobs that it began with.
    let up_to_job = if up_to_job > delivered { up_to_job } else { jobs.min(delivered + i64::try_from(MAX_JOBS).unwrap_or(i64::MAX)) };
    if up_to_job <= delivered {
        return Ok(None);
    }
    let jobs: Vec<(i64, i64, i64, i64)> = db.fetch(&JOBS, &Column::one_row(&[group.get(), delivered, up_to_job])).await?;
    let jobs: Vec<_> = jobs.into_iter().map(|(_, seq, recall, sender)| Job { seq, recall: recall == 1, sender }).collect();
    let seqs: Vec<_> = jobs.iter().map(|job| job.seq).collect();
    let due = Due { group, seqs: &seqs, after: delivered, up_to: up_to_job };
    let (memberships, last_ordinal) = due.memberships(db, up_to_ordinal, ordinals).await?;
    let to = match last_ordinal {
        Some(ordinal) => Progress { delivered, up_to_job, up_to_ordinal: ordinal },
        // Also where somebody else has done the jobs meanwhile: then the progress is another, and
        // the page is not taken.
        None => Progress { delivered: up_to_job, up_to_job, up_to_ordinal: 0 },
    };
    Ok(Some(DeliveryPage { group, follows: after.is_some(), from, to, members: of_members(group, &jobs, &memberships) }))
}

/// A message that is to be put into inboxes, or its recall.
#[derive(Debug, Clone, Copy)]
struct Job {
    seq: i64,
    recall: bool,
    sender: i64,
}

/// What each member is to get, in the order of the jobs: what was sent during its memberships. Most
/// members get the same, which is made once.
fn of_members(group: GroupId, jobs: &[Job], memberships: &[Membership]) -> Vec<(UserId, Arc<[GroupRun]>)> {
    let mut made: HashMap<(u64, u64), Arc<[GroupRun]>> = HashMap::new();
    let which = |is: &dyn Fn(&Job) -> bool| jobs.iter().enumerate().fold(0_u64, |bits, (at, job)| bits | u64::from(is(job)) << at);
    let of_member = |memberships: &[Membership]| {
        let (_, user, ..) = *memberships.first()?;
        let held = |job: &Job| memberships.iter().any(|membership| holds(membership, job.seq));
        let due = which(&held);
        let own = due & which(&|job| job.sender == user);
        let runs = made.entry((due, own)).or_insert_with(|| runs_of(group, jobs, due, own)).clone();
        Some((UserId::try_from(user).ok()?, runs))
    };
    memberships.chunk_by(|(one, ..), (other, ..)| one == other).filter_map(of_member).filter(|(_, runs)| !runs.is_empty()).collect()
}

/// The jobs of the bits of `due`, as runs of the same kind; those of `own` are of messages that the member sent.
fn runs_of(group: GroupId, jobs: &[Job], due: u64, own: u64) -> Arc<[GroupRun]> {
    let has = |bits: u64, at: usize| bits >> at & 1 == 1;
    let due: Vec<_> = jobs.iter().enumerate().filter(|(at, _)| has(due, *at)).map(|(at, job)| (has(own, at), job)).collect();
    let alike = |(own, job): &(bool, &Job), (other_own, other): &(bool, &Job)| (own, job.recall) == (other_own, other.recall);
    let run = |alike: &[(bool, &Job)]| {
        let (own, first) = alike.first()?;
        Some(GroupRun::new(group, alike.iter().map(|(_, job)| job.seq), *own, first.recall))
    };
    due.chunk_by(alike).filter_map(run).collect()
}

/// Groups with jobs that nobody has moved since `before`, and since when; those that have waited
/// longest first.
pub(super) async fn behind(db: &Db, before: UnixMs, max_rows: i64) -> DbResult<Vec<(GroupId, UnixMs)>> {
    let rows: Vec<(i64, i64)> = db.fetch(&BEHIND, &Column::one_row(&[before.0, before.0 + AHEAD_MS, max_rows])).await?;
    Ok(rows.into_iter().filter_map(|(group, at)| Some((GroupId::try_from(group).ok()?, UnixMs(at)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> GroupId {
        GroupId::try_from(9).unwrap()
    }

    fn job(seq: i64, recall: bool, sender: i64) -> Job {
        Job { seq, recall, sender }
    }

    fn run(seqs: &[i64], own: bool, recall: bool) -> GroupRun {
        GroupRun::new(group(), seqs.iter().copied(), own, recall)
    }

    #[test]
    fn each_member_gets_what_is_due_in_the_order_of_the_jobs() {
        let jobs = [job(5, false, 1), job(6, false, 2), job(5, true, 1), job(7, false, 1), job(8, false, 1)];
        // Who left and came back has two memberships. A message that has expired is among the jobs no more.
        let members = [(1, 11, 0, -1), (2, 2, 3, 5), (2, 2, 7, -1), (3, 1, 4, -1), (4, 12, 0, 4), (5, 14, 3, -1)];
        let got: Vec<_> = of_members(group(), &jobs, &members).into_iter().map(|(user, runs)| (user.get(), runs)).collect();
        let all = || vec![run(&[5, 6], false, false), run(&[5], false, true), run(&[7, 8], false, false)];
        let of_sender = vec![run(&[5], true, false), run(&[6], false, false), run(&[5], true, true), run(&[7, 8], true, false)];
        let of_guest = vec![run(&[5], false, false), run(&[5], false, true), run(&[8], false, false)];
        let expected = [(11, all()), (2, of_guest), (1, of_sender), (14, all())];
        let expected: Vec<(i64, Arc<[GroupRun]>)> = expected.into_iter().map(|(user, runs)| (user, runs.into())).collect();
        assert_eq!(got, expected);
        assert!(Arc::ptr_eq(&got[0].1, &got[3].1), "made once");
        let page = DeliveryPage {
            group: group(),
            follows: false,
            from: Progress::default(),
            to: Progress::default(),
            members: of_members(group(), &jobs, &members),
        };
        assert_eq!(page.rows(), 5 + 3 + 5 + 5);
    }
}
