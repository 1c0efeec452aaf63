//! The rows of `push_users` and `unread_jobs` in a batch. The former are guarded by the lock of the
//! user's own row; the latter are locked last of all.

use std::collections::BTreeSet;

use super::due::{Change, Due};
use super::job::{Job, Scope};
use super::store;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};

/// What a batch needs: jobs that it moves.
pub type Needs = BTreeSet<Scope>;

/// The rows of a batch.
#[derive(Debug, Default)]
pub struct PushRows {
    users: Table<UserId, Change>,
    jobs: Table<Scope, Option<Job>>,
    /// Jobs that are to be done, from when on.
    causes: Table<Scope, Option<UnixMs>>,
}

impl PushRows {
    /// The user has a push device from now on, and is looked at from this time on; None: it has none.
    pub(super) fn set_flag(&mut self, user: UserId, push: Option<UnixMs>) {
        self.users.set(&user, Change { flag: Some(push.is_some()), due: push.map(|at| Due::Exactly(Some(at))) });
    }

    /// When a user who has one is looked at.
    pub(super) fn set_due(&mut self, user: UserId, due: Due) {
        let change = self.users.get(&user).with_due(due);
        self.users.set(&user, change);
    }

    /// A job is to be done, not before this time.
    pub(super) fn add_job(&mut self, scope: Scope, due_at: UnixMs) {
        let due_at = self.causes.get(&scope).map_or(due_at, |before| before.max(due_at));
        self.causes.set(&scope, Some(due_at));
    }

    /// How far a job is; None where it is done.
    #[must_use]
    pub fn job(&self, scope: Scope) -> Option<Job> {
        self.jobs.get(&scope)
    }

    pub(super) fn set_job(&mut self, scope: Scope, job: Option<Job>) {
        self.jobs.set(&scope, job);
    }
}

impl RowSet for PushRows {
    type Needs = Needs;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, scopes: &Needs) -> DbResult<()> {
        self.jobs.insert_loaded(store::lock_jobs(pipeline, scopes).await?.into_iter().map(|(scope, job)| (scope, Some(job))));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        store::save_users(conn, self.users.changed()).await?;
        store::save_jobs(conn, self.jobs.changed()).await?;
        let causes: Vec<_> = self.causes.changed().filter_map(|(scope, due_at)| Some((*scope, (*due_at)?))).collect();
        store::add_jobs(conn, &causes).await
    }

    fn settle(&mut self) {
        self.users.settle();
        self.jobs.settle();
        self.causes.settle();
    }

    fn undo(&mut self) {
        self.users.undo();
        self.jobs.undo();
        self.causes.undo();
    }
}
