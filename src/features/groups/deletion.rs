//! The deletion of a group. One transaction makes it one that is deleted: from then on its messages are
//! unread for nobody, no list shows it, nothing more is put into inboxes, and everything that names it
//! is refused. Its rows go afterwards, in the background (`crate::features::removals`). What it has put
//! into inboxes is a tombstone once the message is gone. The row of the group stays: its id may not be
//! used again. So does the name of its channel, where an import made it: a later import finds the group
//! by it, and brings nothing back.
//!
//! The messages go first, then the memberships end, which raises the revision of each member. So a
//! client that polls its inbox sees the tombstones.

use super::members::{end_membership, tell};
use super::pages::DeliveryRows;
use super::refused::unknown;
use super::rows::GroupRows;
use super::{Group, lists};
use crate::base::clock::UnixMs;
use crate::base::error::{Fault, Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Statement, Type, in_time};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::marks::StreamKey;
use crate::features::operations::{AcceptedOut, OperationId};
use crate::features::removals::rows::{begin, repeat};
use crate::features::removals::{Engines, NewRemoval, Place, Progress, RemovalKind, Step, delete_pages};

/// How many memberships one batch ends.
const MEMBERS_AT_ONCE: i64 = 100;

/// How many rows of memberships one batch removes.
const MEMBERSHIPS_AT_ONCE: i64 = 500;

/// How many rows one batch removes of what imports have taken of a group's log.
const LOG_MEMBERS_AT_ONCE: i64 = 1000;

static MESSAGES: [Statement; 2] = [
    Statement::one(
        "delete from group_messages
        where group_id = $1 and seq in (select m.seq from group_messages m where m.group_id = $1 order by m.group_id, m.seq limit $2)",
        &[("group_id", Type::Int), ("max_rows", Type::Int)],
    ),
    Statement::one(
        "delete from group_changes
        where group_id = $1 and id in (select c.id from group_changes c where c.group_id = $1 order by c.group_id, c.id limit $2)",
        &[("group_id", Type::Int), ("max_rows", Type::Int)],
    ),
];

static JOBS: [Statement; 1] = [Statement::one(
    "delete from delivery_jobs
    where group_id = $1 and job in (select t.job from delivery_jobs t where t.group_id = $1 order by t.group_id, t.job limit $2)",
    &[("group_id", Type::Int), ("max_rows", Type::Int)],
)];

static MEMBERSHIPS: Statement = Statement::one(
    "select m.user_id, m.span
    from memberships m
    where m.group_id = $1
    order by m.group_id, m.ordinal
    limit $2",
    &[("group_id", Type::Int), ("max_rows", Type::Int)],
);

static DELETE_MEMBERSHIPS: Statement = Statement::new(
    "delete from memberships
    where (user_id, group_id, span) in (select user_id, group_id, span from {rows} r)",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("span", Type::Int)],
)
.by("user_id");

/// Who is in a group's log. They need not be members.
static LOG_MEMBERS: Statement = Statement::one(
    "select l.user_id
    from group_log_members l
    where l.group_id = $1
    limit $2",
    &[("group_id", Type::Int), ("max_rows", Type::Int)],
);

static DELETE_LOG_MEMBERS: Statement = Statement::new(
    "delete from group_log_members
    where (user_id, group_id) in (select user_id, group_id from {rows} r)",
    &[("user_id", Type::Int), ("group_id", Type::Int)],
)
.by("user_id");

static DELIVERIES: Statement = Statement::one("delete from group_deliveries where group_id = $1", &[("group_id", Type::Int)]);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    let ([messages, changes], [jobs]) = (&MESSAGES, &JOBS);
    [messages, changes, jobs, &DELIVERIES, &MEMBERSHIPS, &DELETE_MEMBERSHIPS, &LOG_MEMBERS, &DELETE_LOG_MEMBERS]
}

/// Deletes a group. A repeat answers with the operation of the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeleteGroup {
    pub(super) group: GroupId,
    /// The id that the operation gets.
    pub(super) operation: OperationId,
    /// Who may read what came of it.
    pub(super) caller: String,
}

impl lanes::Command for DeleteGroup {
    fn needs(&self, needs: &mut Needs) {
        needs.head(StreamKey::group(self.group));
        needs.of::<GroupRows>().groups.insert(self.group);
        needs.of::<DeliveryRows>().entry(self.group).or_default();
    }

    fn lane_key(&self) -> i64 {
        self.group.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        let group = rows.get::<GroupRows>().group(self.group).ok_or_else(|| unknown(self.group))?;
        let removal = |id| NewRemoval { id, kind: RemovalKind::Group, subject: self.group.get(), caller: self.caller.clone() };
        if let Some(operation) = rows.get::<GroupRows>().deleted_by(self.group) {
            repeat(rows, removal(operation.clone()));
            return Ok(Answer::accepted(AcceptedOut::new(operation)));
        }
        let key = StreamKey::group(self.group);
        let mut stream = rows.head(&key);
        stream.delete_group();
        rows.set_head(&key, stream);
        rows.get_mut::<GroupRows>().set_group(self.group, Group { deleted: true, ..group });
        rows.get_mut::<GroupRows>().set_deleted_by(self.group, self.operation.clone());
        let at = rows.get::<DeliveryRows>().progress(self.group);
        rows.get_mut::<DeliveryRows>().set(self.group, at.of_deleted());
        begin(rows, removal(self.operation.clone()));
        Ok(Answer::accepted(AcceptedOut::new(self.operation.clone())))
    }
}

/// Ends memberships of a group that is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EndMemberships {
    group: GroupId,
    users: Vec<UserId>,
}

impl lanes::Command for EndMemberships {
    fn needs(&self, needs: &mut Needs) {
        needs.head(StreamKey::group(self.group));
        needs.of::<GroupRows>().groups.insert(self.group);
        for user in &self.users {
            needs.user(*user);
            needs.of::<GroupRows>().members.insert((*user, self.group));
        }
    }

    fn lane_key(&self) -> i64 {
        self.group.get()
    }

    /// Members are met, not named.
    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.users.len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        for user in &self.users {
            let has_left = end_membership(rows, self.group, *user, now);
            // Of one that is erased, nothing more is told.
            tell(rows, now, self.group, *user, (has_left && !rows.is_erased(*user)).then_some(false));
        }
        Ok(Answer::no_content())
    }
}

fn group_of(subject: i64) -> Result<GroupId> {
    GroupId::try_from(subject).map_err(|rule| Fault::Bug(format!("a removal of group {subject}: {rule}")).into())
}

/// Ends the memberships after an ordinal. Nobody joins any more.
async fn end_memberships(engines: &Engines, group: GroupId, after: i64) -> Result<Progress> {
    let members = in_time(lists::members(&engines.db, group, after, MEMBERS_AT_ONCE)).await?;
    let Some(last) = members.last().map(|member| member.ordinal) else { return Ok(Progress::Done) };
    engines.submit(EndMemberships { group, users: members.into_iter().map(|member| member.user_id).collect() }).await?;
    Ok(Progress::More(Place::id(last)))
}

/// Removes memberships, all of which have ended: nobody else puts any there any more.
async fn delete_memberships(engines: &Engines, group: GroupId) -> Result<Progress> {
    let columns = [group.get(), MEMBERSHIPS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let found: Vec<(i64, i64)> = in_time(engines.db.fetch(&MEMBERSHIPS, &columns)).await?;
    if !found.is_empty() {
        let users = Column::Int(found.iter().map(|(user, _)| *user).collect());
        let groups = Column::Int(vec![group.get(); found.len()]);
        let spans = Column::Int(found.iter().map(|(_, span)| *span).collect());
        in_time(engines.db.run(&DELETE_MEMBERSHIPS, &[users, groups, spans])).await?;
    }
    Ok(Progress::after(found.len(), MEMBERSHIPS_AT_ONCE))
}

/// Removes what imports have taken of the group's log.
async fn delete_log_members(engines: &Engines, group: GroupId) -> Result<Progress> {
    let columns = [group.get(), LOG_MEMBERS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let found: Vec<(i64,)> = in_time(engines.db.fetch(&LOG_MEMBERS, &columns)).await?;
    if !found.is_empty() {
        let users = Column::Int(found.iter().map(|(user,)| *user).collect());
        let groups = Column::Int(vec![group.get(); found.len()]);
        in_time(engines.db.run(&DELETE_LOG_MEMBERS, &[users, groups])).await?;
    }
    Ok(Progress::after(found.len(), LOG_MEMBERS_AT_ONCE))
}

/// Removes what is left. A node of 0.1.0 knows no step for the log's members, so they may still be there.
async fn delete_rest(engines: &Engines, group: GroupId) -> Result<Progress> {
    let log_members = delete_log_members(engines, group).await?;
    if log_members == Progress::Done {
        in_time(engines.db.run(&DELIVERIES, &[Column::Int(vec![group.get()])])).await?;
    }
    Ok(log_members)
}

/// The steps of the removal of a group.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        delete_pages("group_messages", &["group_messages", "group_changes"], &MESSAGES),
        // After the messages: as long as a message is there, a recount asks its job whether it is in all inboxes.
        delete_pages("delivery_jobs", &["delivery_jobs"], &JOBS),
        Step::new("group_members", &[], |engines, group, place| async move { end_memberships(&engines, group_of(group)?, place.id).await }),
        Step::new("memberships", &["memberships"], |engines, group, _| async move { delete_memberships(&engines, group_of(group)?).await }),
        Step::new("log_members", &["group_log_members"], |engines, group, _| async move {
            delete_log_members(&engines, group_of(group)?).await
        }),
        Step::new("group", &["group_deliveries"], |engines, group, _| async move { delete_rest(&engines, group_of(group)?).await }),
    ]
}
