//! What writes `unread` events for changes without a write: a page of a job, and the turn of a user
//! for whom something has ended.

use serde::{Deserialize, Serialize};

use super::due::Due;
use super::job::{Job, SHOWN_EVERYWHERE_MS, Scope};
use super::rows::PushRows;
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};

/// How long a job that a node works on is left to it after each page.
const LEASE_MS: i64 = SHOWN_EVERYWHERE_MS;

/// One page of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadPage {
    pub scope: Scope,
    /// The job that it was made for.
    pub from: Job,
    /// Up to where the pass is after it; None: it is at its end.
    pub to: Option<i64>,
    /// Whose numbers may have changed.
    pub users: Vec<UserId>,
}

/// What a page answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOut {
    /// Whether it was still to be done.
    pub moved: bool,
    /// When the job goes on; 0: it is done.
    pub due_at: i64,
}

/// Where a job is after a page.
fn after_page(job: Job, to: Option<i64>, now: UnixMs) -> Option<Job> {
    match to {
        Some(after) => Some(Job { after, due_at: UnixMs(now.0 + LEASE_MS), ..job }),
        None => job.next_at.map(|due_at| Job { due_at, next_at: None, after: 0 }),
    }
}

impl lanes::Command for UnreadPage {
    fn needs(&self, needs: &mut Needs) {
        self.users.iter().for_each(|user| needs.user(*user));
        needs.of::<PushRows>().insert(self.scope);
    }

    fn lane_key(&self) -> i64 {
        self.scope.id()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.users.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let Some(job) = rows.get::<PushRows>().job(self.scope) else { return Ok(Answer::ok(PageOut { moved: false, due_at: 0 })) };
        if (job.due_at, job.after) != (self.from.due_at, self.from.after) {
            return Ok(Answer::ok(PageOut { moved: false, due_at: 0 }));
        }
        self.users.iter().for_each(|user| rows.tell_unread(*user));
        let after = after_page(job, self.to, now);
        rows.get_mut::<PushRows>().set_job(self.scope, after);
        Ok(Answer::ok(PageOut { moved: true, due_at: after.map_or(0, |job| job.due_at.0) }))
    }
}

/// The turn of a user for whom something has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTurn {
    pub user: UserId,
    /// The revision of which it is known when something ends next.
    pub revision: Revision,
    /// When that is; None: nothing does.
    pub next: Option<UnixMs>,
}

impl lanes::Command for EndedTurn {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        // So that the user's row is locked.
        needs.of::<PushRows>();
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    /// Nothing where the user's rows have changed since: what ends next may be something else.
    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        let is_as_known = rows.revision(self.user) == self.revision;
        if is_as_known {
            rows.tell_unread(self.user);
            rows.get_mut::<PushRows>().set_due(self.user, Due::Exactly(self.next));
        }
        Ok(Answer::ok(is_as_known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_ends_or_begins_once_more() {
        let job = |due_at, next_at, after| Job { due_at: UnixMs(due_at), next_at: (next_at > 0).then_some(UnixMs(next_at)), after };
        assert_eq!(after_page(job(5, 0, 0), Some(7), UnixMs(10)), Some(job(2010, 0, 7)));
        assert_eq!(after_page(job(5, 9, 7), Some(8), UnixMs(10)), Some(job(2010, 9, 8)));
        assert_eq!(after_page(job(5, 0, 7), None, UnixMs(10)), None);
        assert_eq!(after_page(job(5, 9, 7), None, UnixMs(10)), Some(job(9, 0, 0)));
    }
}
