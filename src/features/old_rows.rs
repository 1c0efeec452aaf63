//! Rows that are kept for some days, each owner's without a gap: how the old ones go.
//!
//! A sweep walks page by page through the owners that may have old rows, and has a command for each
//! that has: the rows go under the owner's lock, the lowest first and without leaving one out. So what
//! is kept stays one run up to the head. What must stay is passed by; the walk goes on in the next
//! sweep where the last one stopped, so that it cannot keep the sweep from the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::base::abandoned::AHEAD_MS;
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Result;
use crate::db::{Column, Db, DbResult, Statement};
use crate::engine::lanes::{self, Job, Lanes};
use crate::features::rounds::{PAUSE, Rounds};

/// How many rows, or owners, one round of a sweep looks at.
pub const PAGE: i64 = 1000;

/// How many rows of an owner one command removes, and how many rows those commands remove together
/// that are sent at once.
pub const OWNER_ROWS: i64 = 500;

/// How often in one round an owner with more rows than a command removes is looked at again.
const AGAIN: u32 = 20;

/// How many rounds of a sweep may stay where they are, for owners with more rows than that. What cannot
/// go yet must not keep the sweep from the others.
const STAYS: u32 = 50;

/// A walk that looks also at what is not old rests so many times as long as it took, so that it is a
/// small part of what the database does; and at most so long.
const RESTS: u32 = 3;
const MAX_REST: Duration = Duration::from_secs(6 * 3600);

/// A time further ahead than this was told by a clock that was fast.
pub fn ahead(clock: &Clock) -> i64 {
    clock.now().0 + AHEAD_MS
}

/// Where a walk is: the last owner that was looked at, and how old its row was, where the walk goes by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    pub at: i64,
    pub owner: i64,
}

impl Default for Walk {
    fn default() -> Self {
        Self { at: i64::MIN, owner: 0 }
    }
}

/// A walk that looks also at what is not old, and so rests before it begins again.
#[derive(Debug, Default)]
pub struct RestingWalk {
    walk: Walk,
    /// Whether a sweep left old rows behind since the walk began.
    has_left: bool,
    begun: Option<Instant>,
    rests_until: Option<Instant>,
}

impl RestingWalk {
    /// The walk, unless it rests.
    pub fn due(&mut self, now: Instant) -> Option<&mut Walk> {
        if self.rests_until.is_some_and(|until| now < until) {
            return None;
        }
        self.begun.get_or_insert(now);
        Some(&mut self.walk)
    }

    /// A sweep went on with it, and did this; None where it failed, and may have left old rows behind before that.
    /// At its end the walk rests, unless there is more to remove.
    pub fn went_on(&mut self, swept: Option<Swept>, now: Instant) {
        self.has_left |= swept.is_none_or(|swept| swept.has_left);
        if swept.is_some()
            && self.walk == Walk::default()
            && let Some(begun) = self.begun.take()
            && !std::mem::take(&mut self.has_left)
        {
            self.rests_until = Some(now + (now.duration_since(begun) * RESTS).min(MAX_REST));
        }
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Up to how many rows it removed.
    pub removed: u64,
    /// Whether it went past old rows that could go, as its time, or that of their page, was over.
    pub has_left: bool,
}

/// A page of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Those that have old rows.
    pub owners: BTreeSet<i64>,
    /// Where the walk goes on; None: this was the last page.
    pub next: Option<Walk>,
}

impl Page {
    /// The page on which these were looked at.
    #[must_use]
    pub fn new(owners: BTreeSet<i64>, looked_at: &[Walk]) -> Self {
        let is_last = i64::try_from(looked_at.len()).is_ok_and(|count| count < PAGE);
        Self { owners, next: looked_at.last().filter(|_| !is_last).copied() }
    }
}

/// Some of an owner's rows, such as those that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Old {
    pub owner: i64,
    pub first: i64,
    pub last: i64,
}

impl Old {
    /// How many rows that is.
    #[must_use]
    pub fn rows(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// The old ones of these rows, of each owner the lowest. The statement tells of each owner the lowest row within these that
/// is not old, one beyond them where all are.
///
/// # Errors
/// The driver's own.
pub async fn old_within(db: &Db, young: &'static Statement, within: Vec<Old>, before: UnixMs, clock: &Clock) -> DbResult<Vec<Old>> {
    if within.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        within.iter().map(|rows| rows.owner).collect(),
        within.iter().map(|rows| rows.first).collect(),
        within.iter().map(|rows| rows.last).collect(),
        vec![before.0; within.len()],
        vec![ahead(clock); within.len()],
    ];
    let young: Vec<(i64, i64, i64)> = db.fetch(young, &columns.map(Column::Int)).await?;
    let old = young.into_iter().filter(|(_, first, young)| young > first);
    Ok(old.map(|(owner, first, young)| Old { owner, first, last: young - 1 }).collect())
}

/// A table with such rows.
pub trait OldRows: Sync {
    /// The owners after a place that have rows older than this. It looks at [`PAGE`] of them.
    fn page(&self, after: Walk, before: UnixMs) -> impl Future<Output = DbResult<Page>> + Send;

    /// The old rows of these owners that may go, of each the lowest; at most [`OWNER_ROWS`] each.
    fn find(&self, owners: &BTreeSet<i64>, before: UnixMs) -> impl Future<Output = DbResult<Vec<Old>>> + Send;

    /// What removes these rows of one owner, under its lock.
    fn command(&self, old: &Old, before: UnixMs) -> Option<Arc<dyn lanes::Command>>;
}

/// What a sweep works with.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    pub lanes: &'a Lanes,
    pub draining: &'a CancellationToken,
    /// What is older is old.
    pub before: UnixMs,
}

impl Sweep<'_> {
    /// Removes old rows, in bounded rounds, and goes on from where the walk is; at the end it begins
    /// again.
    ///
    /// # Errors
    /// The driver's own, or what the lanes answer.
    pub async fn run<T: OldRows>(self, rows: &T, walk: &mut Walk) -> Result<Swept> {
        let (mut swept, mut stays, mut rounds) = (Swept::default(), 0, Rounds::new(self.draining));
        while rounds.next().await {
            let Page { owners, next } = rows.page(*walk, self.before).await?;
            let (of_page, has_more) = self.remove_of(rows, owners, &rounds).await?;
            swept.removed += of_page;
            if has_more && !rounds.are_over() && stays < STAYS {
                stays += 1;
            } else {
                // What is left of this page waits for the next walk: it must not keep the others waiting.
                swept.has_left |= has_more;
                *walk = next.unwrap_or_default();
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(swept)
    }

    /// Removes what is old of these owners' rows: up to how many, and whether there may be more.
    async fn remove_of<T: OldRows>(self, rows: &T, mut owners: BTreeSet<i64>, rounds: &Rounds<'_>) -> Result<(u64, bool)> {
        let mut removed = 0;
        for _ in 0..AGAIN {
            if owners.is_empty() {
                break;
            }
            let old = rows.find(&owners, self.before).await?;
            let mut left = old.as_slice();
            while !left.is_empty() {
                let (together, rest) = left.split_at(how_many(left));
                removed += self.remove(rows, together).await?;
                left = rest;
                if rounds.are_over() {
                    return Ok((removed, !left.is_empty() || old.iter().any(is_full)));
                }
            }
            tokio::time::sleep(PAUSE).await;
            owners = old.iter().filter(|old| is_full(old)).map(|old| old.owner).collect();
        }
        Ok((removed, !owners.is_empty()))
    }

    async fn remove<T: OldRows>(self, rows: &T, old: &[Old]) -> Result<u64> {
        let commands = old.iter().filter_map(|old| rows.command(old, self.before));
        for outcome in join_all(commands.map(|command| self.lanes.submit(Job { command, key: None }))).await {
            outcome?;
        }
        Ok(old.iter().map(|old| u64::try_from(old.rows()).unwrap_or_default()).sum())
    }
}

/// Whether its owner may have more.
fn is_full(old: &Old) -> bool {
    old.rows() >= OWNER_ROWS
}

/// How many of these are removed at once: the first, and those after it that have few rows together
/// with it.
fn how_many(old: &[Old]) -> usize {
    let mut rows = 0;
    let within = old.iter().take_while(|old| {
        rows += old.rows();
        rows <= OWNER_ROWS
    });
    within.count().clamp(1, old.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_after_a_full_page() {
        let looked_at = |count| (1..=count).map(|owner| Walk { at: 5, owner }).collect::<Vec<_>>();
        let next = |count| Page::new(BTreeSet::new(), &looked_at(count)).next;
        assert_eq!([next(0), next(PAGE - 1), next(PAGE)], [None, None, Some(Walk { at: 5, owner: PAGE })]);
    }

    #[test]
    fn a_walk_rests_at_its_end_only() {
        let (mut walk, begun) = (RestingWalk::default(), Instant::now());
        let at = |minutes: u64| begun + Duration::from_secs(60 * minutes);
        let midway = Walk { at: 0, owner: 7 };
        let mut sweep = |minutes, to| {
            let is_due = walk.due(at(minutes)).map(|walk| *walk = to).is_some();
            walk.went_on(Some(Swept::default()), at(minutes));
            is_due
        };
        assert!(sweep(0, midway) && sweep(1, midway) && sweep(10, Walk::default()), "it goes on until its end");
        assert!(!sweep(11, midway) && !sweep(39, midway), "it rests three times as long as it took");
        assert!(sweep(40, midway) && sweep(6000, Walk::default()));
        assert!(!sweep(6359, midway) && sweep(6360, midway), "it rests for six hours at most");
    }

    #[test]
    fn a_walk_that_left_old_rows_does_not_rest() {
        let (mut walk, begun) = (RestingWalk::default(), Instant::now());
        let at = |minutes: u64| begun + Duration::from_secs(60 * minutes);
        let mut sweep = |minutes, has_left: Option<bool>, to| {
            let is_due = walk.due(at(minutes)).map(|walk| *walk = to).is_some();
            walk.went_on(has_left.map(|has_left| Swept { removed: 1, has_left }), at(minutes));
            is_due
        };
        let midway = Walk { at: 0, owner: 7 };
        let (none, some, failed) = (Some(false), Some(true), None);
        assert!(sweep(0, some, midway) && sweep(1, none, Walk::default()), "it left some on the way");
        assert!(sweep(2, some, Walk::default()), "and some of the last page");
        assert!(sweep(3, failed, midway) && sweep(4, none, Walk::default()), "a failure may have left some");
        assert!(sweep(5, none, midway) && sweep(6, failed, midway) && sweep(7, none, Walk::default()), "also a later one");
        assert!(sweep(8, none, midway) && sweep(9, none, Walk::default()));
        assert!(!sweep(10, none, midway), "then nothing");
    }

    #[test]
    fn many_small_ones_go_together_and_a_large_one_alone() {
        let old = |rows: &[i64]| rows.iter().map(|rows| Old { owner: 1, first: 11, last: 10 + rows }).collect::<Vec<_>>();
        assert_eq!([how_many(&old(&[500, 1])), how_many(&old(&[1])), how_many(&old(&[200, 300, 1]))], [1, 1, 2]);
    }
}
