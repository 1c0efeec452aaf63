//! What fan-out writes: one page puts some jobs of a group into the inboxes of some of its
//! members, and moves the group's progress, in one transaction.
//!
//! A page names the progress that it was made for, and moves it only from there. So no matter who fans
//! out, and how many at once on however many nodes, each member gets each job once and in order, and a
//! page that was cut off leaves nothing behind.
//!
//! Two pages in a row may be under way side by side, in two lanes: the second one begins when the rows of the
//! first are locked ([`Stage::Begun`]), writes its rows into other inboxes meanwhile, and waits until the first
//! one is over before it moves the progress.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::delivery::{DeliveryPage, Progress};
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::GroupId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::Batch;
use crate::engine::lanes::{self, Answer, Core, MIN_LARGE, Names, Needs, RowSet, Rows, Table};
use crate::failpoint;
use crate::features::inbox::append_runs;

static MAKE: Statement = Statement::new(
    "insert into group_deliveries (group_id, delivered, up_to_job, up_to_ordinal, at)
    select group_id, 0, 0, 0, at
    from {rows} r
    where true
    on conflict (group_id) do nothing",
    &[("group_id", Type::Int), ("at", Type::Int)],
);

static LOCK: Statement = Statement::each(
    "select d.group_id, d.delivered, d.up_to_job, d.up_to_ordinal
    from {rows} r
    join group_deliveries d on d.group_id = r.group_id",
    "select d.group_id, d.delivered, d.up_to_job, d.up_to_ordinal
    from {rows} r
    join group_deliveries d on d.group_id = r.group_id
    order by d.group_id
    for update of d",
    &[("group_id", Type::Int)],
);

/// Moves the progress of groups, where it is the one that the batch began with.
static SAVE: Statement = Statement::new(
    "update group_deliveries
    set delivered = r.delivered, up_to_job = r.up_to_job, up_to_ordinal = r.up_to_ordinal, at = r.at
    from {rows} r
    where group_deliveries.group_id = r.group_id and group_deliveries.delivered = r.from_delivered
        and group_deliveries.up_to_job = r.from_job and group_deliveries.up_to_ordinal = r.from_ordinal",
    &[
        ("group_id", Type::Int),
        ("delivered", Type::Int),
        ("up_to_job", Type::Int),
        ("up_to_ordinal", Type::Int),
        ("at", Type::Int),
        ("from_delivered", Type::Int),
        ("from_job", Type::Int),
        ("from_ordinal", Type::Int),
    ],
);

static DELETE_JOBS: Statement = Statement::new(
    "delete from delivery_jobs
    where (group_id, job) in (
        select t.group_id, t.job
        from {rows} r
        join delivery_jobs t on t.group_id = r.group_id and t.job <= r.delivered
    )",
    &[("group_id", Type::Int), ("delivered", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&MAKE, &LOCK, &SAVE, &DELETE_JOBS]
}

/// How long the pages of a batch wait for those before them, in all. After that the database is asked,
/// which undoes the batch if one of those is still not done. Less than a lane waits for a lock, as others may
/// wait for the rows of the batch meanwhile.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// How far a page is in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No row is locked; also where it is tried again.
    Waiting,
    /// Its rows are locked.
    Begun,
    Committed,
}

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// It is done.
    Done,
    /// The page before it is not done yet.
    Early,
    /// Somebody else did it, or something after it.
    Late,
}

/// A page on its way through a lane.
#[derive(Debug)]
pub(super) struct PageInLane {
    pub(super) page: DeliveryPage,
    pub(super) lane_key: i64,
    /// Dropped with the page, also where it failed.
    pub(super) stage: watch::Sender<Stage>,
    /// The page before it, if that is under way in another lane.
    pub(super) before: Option<watch::Receiver<Stage>>,
}

impl lanes::Command for PageInLane {
    fn needs(&self, needs: &mut Needs) {
        self.stage.send_replace(Stage::Waiting);
        let page = &self.page;
        let known = page.follows.then(|| Known { progress: page.from, before: self.before.clone() });
        if known.is_some() {
            needs.assume();
        }
        needs.of::<DeliveryRows>().entry(page.group).or_insert(known);
        page.members.iter().for_each(|(user, _)| needs.user(*user));
    }

    fn lane_key(&self) -> i64 {
        self.lane_key
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        // No more, so that it never counts as large: it is as quick as so many other changes.
        u32::try_from(self.page.rows()).unwrap_or(u32::MAX).clamp(1, MIN_LARGE)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        self.stage.send_replace(Stage::Begun);
        let page = &self.page;
        let step = match rows.get::<DeliveryRows>().progress.look(&page.group).map(|progress| progress.cmp(&page.from)) {
            Some(Ordering::Less) => Step::Early,
            Some(Ordering::Equal) => Step::Done,
            // None: the group is deleted, and all that was of it.
            Some(Ordering::Greater) | None => Step::Late,
        };
        if step == Step::Done {
            for (user, runs) in &page.members {
                append_runs(rows, *user, runs, now);
            }
            rows.get_mut::<DeliveryRows>().set(page.group, page.to);
        }
        Ok(Answer::ok(step))
    }

    fn committed(&self) {
        self.stage.send_replace(Stage::Committed);
    }
}

/// What is known of a group's progress before its last page is committed.
#[derive(Debug, Clone)]
pub struct Known {
    progress: Progress,
    before: Option<watch::Receiver<Stage>>,
}

/// Progress of the groups of a batch; the last lock that a batch takes.
#[derive(Debug, Default)]
pub struct DeliveryRows {
    progress: Table<GroupId, Progress>,
    /// Pages of which the progress is taken to be done, and that may not be.
    before: Vec<watch::Receiver<Stage>>,
}

/// Makes the rows of new groups.
pub(super) async fn make(conn: &mut Conn, groups: &[GroupId], now: UnixMs) -> DbResult<()> {
    conn.later(&MAKE, &[Column::Int(groups.iter().map(|group| group.get()).collect()), Column::Int(vec![now.0; groups.len()])]).await
}

impl DeliveryRows {
    /// How far a group is.
    #[must_use]
    pub fn progress(&self, group: GroupId) -> Progress {
        self.progress.get(&group)
    }

    /// So far it is now.
    pub fn set(&mut self, group: GroupId, progress: Progress) {
        self.progress.set(&group, progress);
    }

    /// Waits for the pages before, while the database writes what was put off.
    async fn wait(&self, conn: &mut Conn) -> DbResult<()> {
        if self.before.is_empty() {
            return Ok(());
        }
        conn.send().await?;
        failpoint("pages::beside");
        let over = self.before.iter().map(|before| {
            let mut before = before.clone();
            // An error tells that it has failed. One that is tried again may need rows of this batch.
            async move { before.wait_for(|stage| *stage != Stage::Begun).await.is_ok() }
        });
        _ = tokio::time::timeout(MAX_WAIT, join_all(over)).await;
        Ok(())
    }
}

impl RowSet for DeliveryRows {
    type Needs = BTreeMap<GroupId, Option<Known>>;

    fn statements() -> Vec<&'static Statement> {
        [statements().as_slice(), &super::delivery::statements(), &super::due_members::statements()].concat()
    }

    /// Locks the progress of those groups of whom it is not known.
    async fn load(&mut self, pipeline: &Pipeline, core: &Core, groups: &Self::Needs) -> DbResult<()> {
        let mut asked = Vec::new();
        for (group, known) in groups {
            let Some(known) = known.as_ref().filter(|_| core.assumes()) else {
                asked.push(group.get());
                continue;
            };
            self.progress.insert_loaded([(*group, known.progress)]);
            self.before.extend(known.before.clone());
        }
        if asked.is_empty() {
            return Ok(());
        }
        let rows: Vec<(i64, i64, i64, i64)> = pipeline.fetch(&LOCK, [Column::Int(asked)]).await?;
        let row = |(group, delivered, up_to_job, up_to_ordinal): (i64, i64, i64, i64)| {
            Some((GroupId::try_from(group).ok()?, Progress { delivered, up_to_job, up_to_ordinal }))
        };
        self.progress.insert_loaded(rows.into_iter().filter_map(row));
        Ok(())
    }

    /// Writes what moved, and removes the jobs that are done.
    async fn save(&self, conn: &mut Conn, _core: &Core, batch: Batch) -> DbResult<()> {
        let moved: Vec<_> = self.progress.rows.iter().filter(|(_, (from, to))| from != to).collect();
        if moved.is_empty() {
            return Ok(());
        }
        self.wait(conn).await?;
        let column = |value: fn(&(Progress, Progress)) -> i64| Column::Int(moved.iter().map(|(_, row)| value(row)).collect());
        let columns = [
            Column::Int(moved.iter().map(|(group, _)| group.get()).collect()),
            column(|(_, to)| to.delivered),
            column(|(_, to)| to.up_to_job),
            column(|(_, to)| to.up_to_ordinal),
            Column::Int(vec![batch.now.0; moved.len()]),
            column(|(from, _)| from.delivered),
            column(|(from, _)| from.up_to_job),
            column(|(from, _)| from.up_to_ordinal),
        ];
        conn.later_all(&SAVE, &columns).await?;
        let done = moved.iter().filter(|(_, (from, to))| from.delivered < to.delivered);
        let (groups, delivered): (Vec<_>, Vec<_>) = done.map(|(group, (_, to))| (group.get(), to.delivered)).unzip();
        if groups.is_empty() { Ok(()) } else { conn.later(&DELETE_JOBS, &[Column::Int(groups), Column::Int(delivered)]).await }
    }

    fn settle(&mut self) {
        self.progress.settle();
    }

    fn undo(&mut self) {
        self.progress.undo();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lanes::{Command as _, NewRowSet};

    fn progress(delivered: i64, up_to_job: i64, up_to_ordinal: i64) -> Progress {
        Progress { delivered, up_to_job, up_to_ordinal }
    }

    #[test]
    fn a_page_is_done_at_its_progress_alone() {
        let group = GroupId::try_from(9).unwrap();
        let mut rows = Rows::new(&[NewRowSet::of::<DeliveryRows>()]);
        let (begin, middle, end) = (progress(3, 3, 0), progress(3, 5, 1000), progress(5, 5, 0));
        let step = |rows: &mut Rows, from, to| {
            let page = DeliveryPage { group, follows: false, from, to, members: Vec::new() };
            let (stage, seen) = watch::channel(Stage::Waiting);
            let page = PageInLane { page, lane_key: 9, stage, before: None };
            let step = page.apply(rows, UnixMs(1)).unwrap().value::<Step>().unwrap();
            assert_eq!(*seen.borrow(), Stage::Begun);
            page.committed();
            assert_eq!(*seen.borrow(), Stage::Committed);
            page.needs(&mut Needs::default());
            assert_eq!(*seen.borrow(), Stage::Waiting);
            step
        };
        assert_eq!(step(&mut rows, progress(0, 0, 0), begin), Step::Late, "of a group that is gone");
        rows.get_mut::<DeliveryRows>().set(group, begin);
        assert_eq!(step(&mut rows, middle, end), Step::Early);
        assert_eq!([step(&mut rows, begin, middle), step(&mut rows, begin, middle)], [Step::Done, Step::Late]);
        let mut deleted = Rows::new(&[NewRowSet::of::<DeliveryRows>()]);
        deleted.get_mut::<DeliveryRows>().set(group, middle.of_deleted());
        assert_eq!(step(&mut deleted, middle, end), Step::Late);
        assert_eq!([step(&mut rows, middle, end), step(&mut rows, middle, end)], [Step::Done, Step::Late]);
    }
}
