//! Changes of messages that were there before: recalls, each with an id of its own. A client that
//! has a group's history reads them instead of reading the history again.
//!
//! The ids of a group are issued under the lock of its head, so no reader can skip one. The newest
//! [`MAX_CHANGES`] of a group are kept, and of those the ones whose messages are kept.

use crate::base::ids::GroupId;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// How many changes of a group are kept.
pub const MAX_CHANGES: i64 = 10_000;

static INSERT: Statement = Statement::insert("group_changes", &[("group_id", Type::Int), ("id", Type::Int), ("seq", Type::Int)]);

static DELETE_OLD: Statement = Statement::new(
    "delete from group_changes
    where (group_id, id) in (
        select c.group_id, c.id
        from {rows} r
        join group_changes c on c.group_id = r.group_id and c.id <= r.up_to
    )",
    &[("group_id", Type::Int), ("up_to", Type::Int)],
)
.by("group_id");

static DELETE_OF_MESSAGES: Statement = Statement::new(
    "delete from group_changes
    where (group_id, id) in (
        select c.group_id, c.id
        from {rows} r
        join group_changes c on c.group_id = r.group_id and c.seq <= r.up_to
    )",
    &[("group_id", Type::Int), ("up_to", Type::Int)],
)
.by("group_id");

/// The id of a group's last change, and the changes after one, as of the same moment.
static READ: Statement = Statement::one(
    "select * from (
        select cast(0 as bigint) as id, g.changes as seq from chat_groups g where g.group_id = $1
    ) last
    union all
    select * from (
        select c.id, c.seq
        from group_changes c
        where c.group_id = $1 and c.id > $2 and c.seq > $3
        order by c.group_id, c.id
        limit $4
    ) changes",
    &[("group_id", Type::Int), ("after", Type::Int), ("since", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&INSERT, &DELETE_OLD, &DELETE_OF_MESSAGES, &READ]
}

/// Writes new changes, by group and id. The oldest of each group go.
pub(super) async fn save(conn: &mut Conn, new: &[(GroupId, i64, i64)]) -> DbResult<()> {
    let column = |value: fn(&(GroupId, i64, i64)) -> i64| Column::Int(new.iter().map(value).collect());
    conn.later(&INSERT, &[column(|(group, ..)| group.get()), column(|(_, id, _)| *id), column(|(.., seq)| *seq)]).await?;
    let old: Vec<_> = new.iter().filter(|(_, id, _)| *id > MAX_CHANGES).collect();
    if old.is_empty() {
        return Ok(());
    }
    let groups = Column::Int(old.iter().map(|(group, ..)| group.get()).collect());
    conn.later(&DELETE_OLD, &[groups, Column::Int(old.iter().map(|(_, id, _)| id - MAX_CHANGES).collect())]).await
}

/// The changes of messages that have expired go with them, up to these.
pub(super) async fn forget(conn: &mut Conn, gone: &[(&GroupId, &i64)]) -> DbResult<()> {
    let groups = Column::Int(gone.iter().map(|(group, _)| group.get()).collect());
    conn.later(&DELETE_OF_MESSAGES, &[groups, Column::Int(gone.iter().map(|(_, up_to)| **up_to).collect())]).await
}

/// Changes as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundChanges {
    /// The id of the last change that there was.
    pub last: i64,
    /// Id and message of each, in their order.
    pub changes: Vec<(i64, i64)>,
}

/// The changes after an id, of the messages after `since`.
pub(super) async fn read(db: &Db, group: GroupId, after: i64, since: i64, max_rows: i64) -> DbResult<FoundChanges> {
    let rows: Vec<(i64, i64)> = db.fetch(&READ, &Column::one_row(&[group.get(), after, since, max_rows])).await?;
    let last = rows.iter().find(|(id, _)| *id == 0).map_or(0, |(_, last)| *last);
    Ok(FoundChanges { last, changes: rows.into_iter().filter(|(id, _)| *id > 0).collect() })
}

/// A page of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangesPage {
    pub changes: Vec<(i64, i64)>,
    pub next_after: i64,
    pub has_more: bool,
}

/// Changes after the place that was asked for are no longer kept: the first id that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangesExpired(pub i64);

/// The page of what was found after `after` (None: from the oldest that is kept), with one row more
/// than `limit` where there are more.
///
/// # Errors
/// Where changes after `after` are no longer kept.
pub(super) fn page(after: Option<i64>, found: FoundChanges, limit: usize) -> Result<ChangesPage, ChangesExpired> {
    let FoundChanges { last, mut changes } = found;
    let first_kept = (last - MAX_CHANGES).max(0) + 1;
    if after.is_some_and(|after| after + 1 < first_kept) {
        return Err(ChangesExpired(first_kept));
    }
    let has_more = changes.len() > limit;
    changes.truncate(limit);
    // At the end, those that the reader does not see are passed, too.
    let end = after.unwrap_or(0).max(last);
    let next_after = if has_more { changes.last().map_or(end, |(id, _)| *id) } else { end };
    Ok(ChangesPage { changes, next_after, has_more })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_reader_gets_every_change_once(seqs in prop::collection::vec(1..40_i64, 0..40), since in 0..40_i64, limits in prop::collection::vec(1..5_usize, 50)) {
            let rows: Vec<_> = (1..).zip(seqs).collect();
            let last = i64::try_from(rows.len()).unwrap();
            let (mut after, mut got) = (None, Vec::new());
            for limit in limits {
                let changes = rows.iter().copied().filter(|(id, seq)| *id > after.unwrap_or(0) && *seq > since).take(limit + 1).collect();
                let page = page(after, FoundChanges { last, changes }, limit).unwrap();
                got.extend(page.changes);
                after = Some(page.next_after);
                if !page.has_more {
                    break;
                }
            }
            prop_assert_eq!(got, rows.into_iter().filter(|(_, seq)| *seq > since).collect::<Vec<_>>());
            prop_assert_eq!(after, Some(last));
        }
    }

    #[test]
    fn what_is_no_longer_kept_is_refused() {
        let found = |last| FoundChanges { last, changes: Vec::new() };
        assert_eq!(page(Some(4), found(MAX_CHANGES + 5), 9), Err(ChangesExpired(6)));
        assert!(page(Some(5), found(MAX_CHANGES + 5), 9).is_ok());
        assert!(page(None, found(MAX_CHANGES + 5), 9).is_ok());
        assert!(page(Some(0), found(MAX_CHANGES), 9).is_ok());
        assert_eq!(page(Some(9), found(2), 9).unwrap().next_after, 9, "from before a restore, or made up");
    }
}
