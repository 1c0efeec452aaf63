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
    fn is_good(&self, history: History, mark: i64, above: &AboveFloor) -> bool {
        let is_new = self.history == history && self.other_changes >= above.other_changes;
        is_new && self.after <= mark && self.up_to >= above.mention_floor
    }
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
        // With what others ask for who are further behind; not where that is to be read again, as they may be away by
        // now, and far behind the others.
        let is_current = |kept: &Arc<Told>| kept.history == history && kept.other_changes >= above.other_changes;
        let kept = self.groups.get(&group).await.filter(is_current);
        let after = kept.map_or(mark.mark, |kept| kept.after.min(mark.mark));
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
