//! What fan-out writes: one step puts some tasks of a group into the inboxes of some of its members, and moves the group's progress, in one transaction.
//!
//! A step names the progress that it was made for and does nothing where the progress is another by then. So whoever fans out, and however many at once on
//! however many nodes, each member gets each task once and in order, and a step that was cut off leaves nothing behind.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::heads::Batch;
use crate::engine::lanes::{self, Answer, Core, Needs, RowSet, Rows, Table};
use crate::features::inbox::append_inbox;
use crate::features::inbox::{Item, Of};

static MAKE: Statement = Statement::new(
    "insert into group_deliveries (group_id, delivered, round_task, round_ordinal, at)
    select group_id, 0, 0, 0, at
    from {rows} r
    where true
    on conflict (group_id) do nothing",
    &[("group_id", Type::Int), ("at", Type::Int)],
);

static LOCK: Statement = Statement::each(
    "select d.group_id, d.delivered, d.round_task, d.round_ordinal
    from {rows} r
    join group_deliveries d on d.group_id = r.group_id",
    "select d.group_id, d.delivered, d.round_task, d.round_ordinal
    from {rows} r
    join group_deliveries d on d.group_id = r.group_id
    order by d.group_id
    for update of d",
    &[("group_id", Type::Int)],
);

static SAVE: Statement = Statement::new(
    "update group_deliveries
    set delivered = r.delivered, round_task = r.round_task, round_ordinal = r.round_ordinal, at = r.at
    from {rows} r
    where group_deliveries.group_id = r.group_id",
    &[("group_id", Type::Int), ("delivered", Type::Int), ("round_task", Type::Int), ("round_ordinal", Type::Int), ("at", Type::Int)],
);

static DELETE_TASKS: Statement = Statement::new(
    "delete from group_tasks
    where (group_id, task) in (
        select t.group_id, t.task
        from {rows} r
        join group_tasks t on t.group_id = r.group_id and t.task <= r.delivered
    )",
    &[("group_id", Type::Int), ("delivered", Type::Int)],
);

static PLAN: Statement = Statement::one(
    "select d.delivered, d.round_task, d.round_ordinal, g.tasks
    from group_deliveries d
    join chat_groups g on g.group_id = d.group_id
    where d.group_id = $1",
    &[("group_id", Type::Int)],
);

static TASKS: Statement = Statement::one(
    "select t.task, t.seq, t.recall, m.sender_id
    from group_tasks t
    join group_messages m on m.group_id = t.group_id and m.seq = t.seq
    where t.group_id = $1 and t.task > $2 and t.task <= $3
    order by t.group_id, t.task",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int)],
);

/// Who is to get which task: those who were members when the message was sent. Memberships of a user do not overlap, so at most one row for each
/// user and task, however often the user has left and come back. Members are looked at in their order, also by SQLite, which heeds `cross join`.
static DUE: Statement = Statement::one(
    "select m.ordinal, m.user_id, t.task
    from memberships m
    cross join group_tasks t
    where m.group_id = $1 and m.ordinal > $2 and t.group_id = $1 and t.task > $3 and t.task <= $4
        and m.from_seq < t.seq and (m.to_seq < 0 or t.seq <= m.to_seq)
    order by m.group_id, m.ordinal
    limit $5",
    &[("group_id", Type::Int), ("ordinal", Type::Int), ("after", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

/// Groups with tasks that nobody has moved for a while, and since when; those that have waited longest first.
static BEHIND: Statement = Statement::one(
    "select t.group_id, min(d.at)
    from group_tasks t
    join group_deliveries d on d.group_id = t.group_id
    where d.at < $1
    group by t.group_id
    order by min(d.at), t.group_id
    limit $2",
    &[("at", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    [&MAKE, &LOCK, &SAVE, &DELETE_TASKS, &PLAN, &TASKS, &DUE, &BEHIND]
}

/// How many tasks one round takes.
const MAX_ROUND: i64 = 50;

/// How many rows of inboxes one step writes at most.
const MAX_ROWS: i64 = 1000;

// A step takes whole members, so the rows of one member must fit into it.
const _: () = assert!(MAX_ROUND < MAX_ROWS);

/// How far a group's tasks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Every member has the tasks up to this one.
    pub delivered: i64,
    /// The present round puts the tasks up to this one into inboxes.
    pub round_task: i64,
    /// The members up to this ordinal have those.
    pub round_ordinal: i64,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Of which group.
    pub group: GroupId,
    /// The progress that it was made for.
    pub from: Progress,
    /// The progress after it.
    pub to: Progress,
    /// What is put into whose inbox, in order.
    pub items: Vec<(UserId, Item)>,
}

/// What a step answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moved {
    /// Whether it was still to be done.
    pub(super) moved: bool,
}

impl lanes::Command for Step {
    fn needs(&self, needs: &mut Needs) {
        needs.of::<DeliveryRows>().insert(self.group);
        self.items.iter().for_each(|(user, _)| needs.user(*user));
    }

    fn lane_key(&self) -> i64 {
        self.group.get()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.items.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let moved = rows.get::<DeliveryRows>().progress(self.group) == self.from;
        if moved {
            for (user, item) in &self.items {
                append_inbox(rows, *user, item.clone(), now);
            }
            rows.get_mut::<DeliveryRows>().set(self.group, self.to);
        }
        Ok(Answer::ok(Moved { moved }))
    }
}

/// Progress of the groups of a batch; the last lock that a batch takes.
#[derive(Debug, Default)]
pub struct DeliveryRows(Table<GroupId, Progress>);

/// Makes the rows of new groups.
pub(super) async fn make(conn: &mut Conn, groups: &[GroupId], now: UnixMs) -> DbResult<()> {
    conn.later(&MAKE, &[Column::Int(groups.iter().map(|group| group.get()).collect()), Column::Int(vec![now.0; groups.len()])]).await
}

impl DeliveryRows {
    /// How far a group is.
    #[must_use]
    pub fn progress(&self, group: GroupId) -> Progress {
        self.0.get(&group)
    }

    /// So far it is now.
    pub fn set(&mut self, group: GroupId, progress: Progress) {
        self.0.set(&group, progress);
    }
}

impl RowSet for DeliveryRows {
    type Needs = BTreeSet<GroupId>;

    fn statements() -> Vec<&'static Statement> {
        statements().into()
    }

    /// Locks the progress of these groups, too.
    async fn load(&mut self, conn: &mut Conn, _core: &mut Core, groups: &Self::Needs) -> DbResult<()> {
        let rows: Vec<(i64, i64, i64, i64)> = conn.fetch(&LOCK, &[Column::Int(groups.iter().map(|group| group.get()).collect())]).await?;
        let row = |(group, delivered, round_task, round_ordinal): (i64, i64, i64, i64)| {
            Some((GroupId::try_from(group).ok()?, Progress { delivered, round_task, round_ordinal }))
        };
        self.0.insert_loaded(rows.into_iter().filter_map(row));
        Ok(())
    }

    /// Writes what moved, and removes the tasks that are done.
    async fn save(&self, conn: &mut Conn, _core: &Core, batch: Batch) -> DbResult<()> {
        let moved: Vec<_> = self.0.changed().collect();
        if moved.is_empty() {
            return Ok(());
        }
        let column = |value: fn(&Progress) -> i64| Column::Int(moved.iter().map(|(_, progress)| value(progress)).collect());
        let groups = Column::Int(moved.iter().map(|(group, _)| group.get()).collect());
        let delivered = column(|progress| progress.delivered);
        conn.later(&DELETE_TASKS, &[groups.clone(), delivered.clone()]).await?;
        let (task, ordinal) = (column(|progress| progress.round_task), column(|progress| progress.round_ordinal));
        conn.later(&SAVE, &[groups, delivered, task, ordinal, Column::Int(vec![batch.now.0; moved.len()])]).await
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn undo(&mut self) {
        self.0.undo();
    }
}

/// The next step of a group; None where nothing is to be done.
///
/// # Errors
/// The driver's own.
pub(super) async fn next_step(db: &Db, group: GroupId) -> DbResult<Option<Step>> {
    let one = |values: &[i64]| values.iter().map(|value| Column::Int(vec![*value])).collect::<Vec<_>>();
    let plan: Vec<(i64, i64, i64, i64)> = db.fetch(&PLAN, &one(&[group.get()])).await?;
    let Some(&(delivered, round_task, round_ordinal, tasks)) = plan.first() else { return Ok(None) };
    let from = Progress { delivered, round_task, round_ordinal };
    // A round that was begun goes on with the tasks that it began with.
    let round_task = if round_task > delivered { round_task } else { tasks.min(delivered + MAX_ROUND) };
    if round_task <= delivered {
        return Ok(None);
    }
    let tasks: Vec<(i64, i64, i64, i64)> = db.fetch(&TASKS, &one(&[group.get(), delivered, round_task])).await?;
    let due: Vec<DueRow> = db.fetch(&DUE, &one(&[group.get(), round_ordinal, delivered, round_task, MAX_ROWS + 1])).await?;
    let (due, last_ordinal) = whole_members(due, usize::try_from(MAX_ROWS).unwrap_or(usize::MAX));
    let to = match last_ordinal {
        Some(ordinal) => Progress { delivered, round_task, round_ordinal: ordinal },
        // Also where somebody else has done the tasks meanwhile: then the progress is another, and the step is not taken.
        None => Progress { delivered: round_task, round_task, round_ordinal: 0 },
    };
    Ok(Some(Step { group, from, to, items: items(group, &tasks, due) }))
}

/// What is to be put into an inbox: ordinal, user, task.
type DueRow = (i64, i64, i64);

/// Without the last member where there are more rows than fit, as not all of its rows may be among them. Returns with it the ordinal to go on after; None: these
/// are all.
fn whole_members(mut due: Vec<DueRow>, max_rows: usize) -> (Vec<DueRow>, Option<i64>) {
    let Some(cut) = due.last().map(|(ordinal, ..)| *ordinal).filter(|_| due.len() > max_rows) else { return (due, None) };
    due.retain(|(ordinal, ..)| *ordinal < cut);
    (due, Some(cut - 1))
}

/// What each member is to get, in the order of the tasks.
fn items(group: GroupId, tasks: &[(i64, i64, i64, i64)], mut due: Vec<DueRow>) -> Vec<(UserId, Item)> {
    due.sort_unstable_by_key(|(ordinal, _, task)| (*ordinal, *task));
    let item = |(_, user, task): DueRow| {
        let at = tasks.binary_search_by_key(&task, |(task, ..)| *task).ok()?;
        let (_, seq, recall, sender) = *tasks.get(at)?;
        let (user, sender) = (UserId::try_from(user).ok()?, UserId::try_from(sender).ok()?);
        let of = if recall == 1 { Of::Recall { group, seq } } else { Of::Group { group, seq } };
        Some((user, Item { sender, own: sender == user, of }))
    };
    due.into_iter().filter_map(item).collect()
}

/// Groups with tasks that nobody has moved since `before`, and since when; those that have waited longest first.
///
/// # Errors
/// The driver's own.
pub(super) async fn behind(db: &Db, before: UnixMs, max_rows: i64) -> DbResult<Vec<(GroupId, UnixMs)>> {
    let rows: Vec<(i64, i64)> = db.fetch(&BEHIND, &[Column::Int(vec![before.0]), Column::Int(vec![max_rows])]).await?;
    Ok(rows.into_iter().filter_map(|(group, at)| Some((GroupId::try_from(group).ok()?, UnixMs(at)))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_whole_members() {
        let rows = |ordinals: &[i64]| ordinals.iter().map(|ordinal| (*ordinal, *ordinal, 1)).collect::<Vec<_>>();
        assert_eq!(whole_members(rows(&[1, 2, 3]), 3), (rows(&[1, 2, 3]), None));
        assert_eq!(whole_members(rows(&[1, 2, 3, 3]), 3), (rows(&[1, 2]), Some(2)));
        assert_eq!(whole_members(rows(&[1, 2, 9, 9]), 3), (rows(&[1, 2]), Some(8)), "nobody is between them");
        assert_eq!(whole_members(rows(&[]), 3), (rows(&[]), None));
    }

    #[test]
    fn each_member_gets_what_is_due_in_the_order_of_the_tasks() {
        let group = GroupId::try_from(9).unwrap();
        let tasks = [(1, 5, 0, 1), (2, 6, 0, 2), (3, 5, 1, 1)];
        // A task that is not there any more was done by somebody else.
        let due = vec![(1, 11, 3), (1, 11, 1), (2, 2, 2), (2, 2, 4), (3, 1, 1)];
        let got: Vec<_> = items(group, &tasks, due)
            .into_iter()
            .map(|(user, item)| match item.of {
                Of::Group { seq, .. } => (user.get(), seq, item.own, false),
                Of::Recall { seq, .. } => (user.get(), seq, item.own, true),
                Of::Direct { .. } => panic!("no direct message"),
            })
            .collect();
        assert_eq!(got, [(11, 5, false, false), (11, 5, false, true), (2, 6, true, false), (1, 5, true, false)]);
    }
}
