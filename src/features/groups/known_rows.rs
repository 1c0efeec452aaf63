//! What only the rows tell of a group's messages, read once for all its members.
//!
//! A head keeps the newest of what was recalled and of what mentions all. A member who is further behind
//! is counted from the rows. These tell the same to all such members, until more is recalled or has
//! expired: a message alone changes nothing of it.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::{GroupMark, lists};
use crate::base::error::{Error, Fault, Result};
use crate::base::ids::GroupId;
use crate::db::{Db, DbResult};
use crate::engine::get_or_read::get_or_read;
use crate::engine::heads::{AboveFloor, CachedHead, History};
use crate::engine::marks::{Intervals, Numbers, numbers};

/// How many runs of positions a node keeps, and for how long those of a group are kept that nobody asks for.
const MAX_RUNS: u64 = 1_000_000;
const TTL: Duration = Duration::from_secs(300);

/// What the rows of a group tell, from one seq to another.
#[derive(Debug)]
struct Told {
    history: History,
    /// As of how many other changes than messages, at least.
    other_changes: i64,
    after: i64,
    up_to: i64,
    /// What was recalled or has expired.
    gone: Intervals,
    mention_all: Intervals,
}

impl Told {
    /// Whether nothing of it is outdated.
    fn is_current(&self, history: History, above: &AboveFloor) -> bool {
        self.history == history && self.other_changes >= above.other_changes
    }

    fn is_good(&self, history: History, mark: i64, above: &AboveFloor) -> bool {
        self.is_current(history, above) && self.after <= mark && self.up_to >= above.mention_floor
    }
}

/// From where on the rows are read for a member with this mark: with what others ask for who are further behind; not
/// where that is to be read again, as they may be away by now, and far behind the others.
fn read_from(kept: Option<&Told>, history: History, mark: i64, above: &AboveFloor) -> i64 {
    let current = kept.filter(|kept| kept.is_current(history, above));
    current.map_or(mark, |kept| kept.after.min(mark))
}

/// What the rows of the groups tell whose members are far behind.
#[derive(Debug)]
pub(super) struct KnownRows {
    db: Db,
    groups: Cache<GroupId, Arc<Told>>,
}

impl KnownRows {
    pub(super) fn new(db: Db) -> Self {
        let weigh = |_: &GroupId, told: &Arc<Told>| u32::try_from(told.gone.runs() + told.mention_all.runs() + 8).unwrap_or(u32::MAX);
        Self { db, groups: Cache::builder().weigher(weigh).max_capacity(MAX_RUNS).time_to_idle(TTL).build() }
    }

    /// What is unread to a member, as new as the head or newer; None where the head tells all.
    pub(super) async fn numbers(&self, history: History, group: GroupId, mark: &GroupMark, head: &CachedHead) -> DbResult<Option<Numbers>> {
        let Some(above) = head.above_floor() else { return Ok(None) };
        let kept = self.groups.get(&group).await;
        let after = read_from(kept.as_deref(), history, mark.mark, &above);
        let read = || self.read(history, group, after, &above);
        let told = get_or_read(&self.groups, group, |told| told.is_good(history, mark.mark, &above), read).await.map_err(of_database)?;
        let (gone, all) = (told.gone.with(&mark.extra), told.mention_all.union(&above.mention_all));
        Ok(Some(numbers(above.head, mark.mark, &gone, &all.with(&mark.mentions))))
    }

    async fn read(&self, history: History, group: GroupId, after: i64, above: &AboveFloor) -> Result<Arc<Told>> {
        let gone = lists::gone(&self.db, group, after, above.head).await?;
        let mention_all = lists::mention_all(&self.db, group, after, above.head).await?;
        Ok(Arc::new(Told { history, other_changes: above.other_changes, after, up_to: above.head, gone, mention_all }))
    }
}

fn of_database(error: Error) -> sqlx::Error {
    match error {
        Error::Fault(Fault::Db(error)) => error,
        _ => sqlx::Error::PoolTimedOut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_further_behind_is_read_for_only_while_what_was_read_is_current() {
        let history = History::default();
        let (gone, mention_all) = (Intervals::default(), Intervals::default());
        let kept = Told { history, other_changes: 3, after: 10, up_to: 50, gone, mention_all };
        let above = |other_changes| AboveFloor { head: 60, mention_all: Intervals::default(), mention_floor: 20, other_changes };
        assert_eq!(read_from(Some(&kept), history, 40, &above(3)), 10);
        assert_eq!(read_from(Some(&kept), history, 5, &above(3)), 5);
        assert_eq!(read_from(Some(&kept), history, 40, &above(4)), 40, "more was recalled");
        assert_eq!(read_from(None, history, 40, &above(3)), 40);
    }
}
