//! Does jobs: tells of the users of a scope in pages, some jobs at once.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::PushContext;
use crate::base::abandoned::Abandoned;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::db::{DbResult, in_time};
use crate::engine::lanes;
use crate::failpoint;
use crate::features::groups::push_members;
use crate::features::push::command::{PageOut, UnreadPage};
use crate::features::push::{Job, Scope, store};

/// How many users a page tells of at most; fewer after one that failed.
const PAGE_USERS: i64 = 500;

/// How many jobs a node has in hand, each a page at a time: so none keeps the others waiting.
const MAX_JOBS: usize = 16;

/// Jobs in hand.
#[derive(Debug)]
pub(super) struct Walker {
    jobs: Vec<(Scope, Job)>,
    page_users: i64,
    /// Jobs that are due in the far future.
    abandoned: Abandoned<Scope>,
}

impl Default for Walker {
    fn default() -> Self {
        Self { jobs: Vec::new(), page_users: PAGE_USERS, abandoned: Abandoned::default() }
    }
}

impl Walker {
    /// Whether it has no job in hand.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A page of each job in hand, and of some that are due.
    pub(super) async fn round(&mut self, state: &PushContext, stop: &CancellationToken) -> Result<()> {
        let room = MAX_JOBS.saturating_sub(self.jobs.len());
        if room > 0 {
            let now = state.clock.now();
            let found = in_time(store::due_jobs(&state.db, now, i64::try_from(room).unwrap_or(i64::MAX))).await?;
            let due = self.abandoned.ended(found, |(scope, job)| (*scope, job.due_at), now, Instant::now());
            let is_new = |scope: Scope| self.jobs.iter().all(|(of, _)| *of != scope);
            let due: Vec<_> = due.into_iter().filter(|(scope, _)| is_new(*scope)).take(room).collect();
            self.jobs.extend(due);
        }
        if stop.is_cancelled() {
            return Ok(());
        }
        let (jobs, page_users) = (std::mem::take(&mut self.jobs), self.page_users);
        let mut failed = None;
        for moved in join_all(jobs.into_iter().map(|(scope, job)| page(state, scope, job, page_users))).await {
            match moved {
                Ok(moved) => self.jobs.extend(moved),
                // It is found again by its row.
                Err(error) => failed = Some(error),
            }
        }
        self.page_users = if failed.is_some() { (page_users / 2).max(1) } else { PAGE_USERS };
        failed.map_or(Ok(()), Err)
    }
}

/// Does a page; where the job is then, if there is more of this pass to do here.
async fn page(state: &PushContext, scope: Scope, from: Job, page_users: i64) -> Result<Option<(Scope, Job)>> {
    let page = in_time(plan(state, scope, from, page_users)).await?;
    let (to, users) = (page.to, u64::try_from(page.users.len()).unwrap_or_default());
    failpoint("push::before_page");
    let answer = state.lanes.submit(lanes::Job { command: Arc::new(page), key: None }).await?;
    let PageOut { moved, due_at } = answer.value()?;
    failpoint("push::after_page");
    // Else another node has done it, and goes on.
    if !moved {
        return Ok(None);
    }
    metrics::counter!("headmark_unread_job_users_total").increment(users);
    Ok(to.map(|after| (scope, Job { after, due_at: UnixMs(due_at), ..from })))
}

async fn plan(state: &PushContext, scope: Scope, from: Job, page_users: i64) -> DbResult<UnreadPage> {
    let (to, users) = match scope {
        Scope::All => {
            let users = store::users_after(&state.db, from.after, page_users).await?;
            let is_full = i64::try_from(users.len()).unwrap_or(i64::MAX) >= page_users;
            (users.last().map(|user| user.get()).filter(|_| is_full), users)
        }
        Scope::Group(group) => push_members::page(&state.db, group, from.after, state.clock.now(), page_users).await?,
    };
    Ok(UnreadPage { scope, from, to, users })
}
