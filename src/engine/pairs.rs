//! Two users, and the lock of what is between them; and the lock of whether a user approves follows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, Needs, RowSet};

/// How many locks there are for pairs. An absent row cannot be locked, so each pair shares one of
/// these locks with others. All batches together hold no more locks than there are here, which must
/// stay well below what Postgres has room for (`max_locks_per_transaction` × `max_connections`,
/// 6400 by default).
pub const STRIPES: u64 = 1024;

/// The first of the two numbers of these advisory locks ("pair" in ASCII); the second is the pair
/// lock.
const PAIR_LOCKS: i64 = 0x7061_6972;

/// The same for whether a user approves follows ("appr").
const APPROVAL_LOCKS: i64 = 0x6170_7072;

/// How many locks there are for that. All who follow share them, so they are held alone only while a
/// user switches; and a batch has all of them at most.
const APPROVAL_STRIPES: u64 = 64;

/// Two users, one of whom may follow the other, or block the other, or do something about the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// Who follows, or acts.
    pub follower: UserId,
    /// Who is followed, or acted upon.
    pub followee: UserId,
}

impl Pair {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { follower: self.followee, followee: self.follower }
    }

    /// The same for both directions: the lower id first.
    #[must_use]
    pub fn unordered(self) -> Self {
        self.min(self.reversed())
    }

    /// Which lock keeps others from changing this pair, in either direction: the same on every node
    /// and in every version.
    #[must_use]
    pub fn pair_lock(self) -> i64 {
        let (low, high) = (self.follower.min(self.followee).get(), self.follower.max(self.followee).get());
        let hash = mix(mix(low.unsigned_abs()).wrapping_add(high.unsigned_abs()));
        i64::try_from(hash % STRIPES).unwrap_or_default()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): neighbouring ids must not share locks by
/// pattern. Written out, as the library's own hashers may change from one release to the next, and
/// nodes of two releases run side by side.
fn mix(seed: u64) -> u64 {
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Taken in the order of the locks; the inner query is not merged into the outer one, as it is
/// ordered. SQLite's one writer needs no lock.
static LOCK_STRIPES: Statement = Statement::each(
    "select pair_lock from {rows} r where lock_class < 0",
    "select case when shared = 1
        then pg_advisory_xact_lock_shared(cast(lock_class as integer), cast(pair_lock as integer))
        else pg_advisory_xact_lock(cast(lock_class as integer), cast(pair_lock as integer)) end
    from (select lock_class, pair_lock, shared from {rows} r order by lock_class, pair_lock) sorted",
    &[("lock_class", Type::Int), ("pair_lock", Type::Int), ("shared", Type::Int)],
);

/// Locks pairs against each other for the rest of the transaction (without repeats). The first thing
/// that a transaction does, so that the order of the locks is also the order of the transactions'
/// numbers.
pub async fn lock_pairs(conn: &mut Conn, pair_locks: impl IntoIterator<Item = i64>) -> DbResult<()> {
    let locks: Vec<_> = pair_locks.into_iter().map(|pair_lock| ((PAIR_LOCKS, pair_lock), false)).collect();
    lock(conn, &locks).await
}

/// The same for locks of either class, each shared with others who only look or not.
async fn lock(conn: &mut Conn, locks: &[(Lock, bool)]) -> DbResult<()> {
    if conn.locks_rows() && !locks.is_empty() {
        let columns = [
            Column::Int(locks.iter().map(|((class, _), _)| *class).collect()),
            Column::Int(locks.iter().map(|((_, number), _)| *number).collect()),
            Column::Int(locks.iter().map(|(_, shared)| i64::from(*shared)).collect()),
        ];
        conn.later(&LOCK_STRIPES, &columns).await?;
    }
    Ok(())
}

/// The two numbers of an advisory lock.
type Lock = (i64, i64);

/// The locks of the pairs of a batch: there are no rows.
#[derive(Debug, Default)]
pub struct PairLocks;

/// Which locks of pairs a batch needs.
#[derive(Debug, Default)]
pub struct PairNeeds {
    locks: BTreeSet<Lock>,
    /// Locks of what is only looked at.
    seen_locks: BTreeSet<Lock>,
}

/// The lock of a pair, to change what is between the two.
pub fn need_pair(needs: &mut Needs, pair: Pair) {
    needs.of::<PairLocks>().locks.insert((PAIR_LOCKS, pair.pair_lock()));
}

/// The lock of a pair, only to look: nobody changes what is between the two before this transaction
/// ends, so that what is done because neither blocks the other stands before the block.
pub fn need_pair_seen(needs: &mut Needs, pair: Pair) {
    needs.of::<PairLocks>().seen_locks.insert((PAIR_LOCKS, pair.pair_lock()));
}

fn approval_lock(user: UserId) -> Lock {
    (APPROVAL_LOCKS, i64::try_from(mix(user.get().unsigned_abs()) % APPROVAL_STRIPES).unwrap_or_default())
}

/// The lock of whether a user approves follows, to switch that: whoever looked before has committed.
pub fn need_approval(needs: &mut Needs, user: UserId) {
    needs.of::<PairLocks>().locks.insert(approval_lock(user));
}

/// The lock of whether a user approves follows, only to look: nobody switches that before this
/// transaction ends.
pub fn need_approval_seen(needs: &mut Needs, user: UserId) {
    needs.of::<PairLocks>().seen_locks.insert(approval_lock(user));
}

/// A user whom a command names without a look at its row: whether it was erased. It is not erased
/// before this transaction ends.
pub fn need_named(needs: &mut Needs, user: UserId) {
    need_approval_seen(needs, user);
    needs.named(user);
}

/// To erase a user: whoever named it before has committed.
pub fn need_erasure(needs: &mut Needs, user: UserId) {
    needs.user(user);
    need_approval(needs, user);
}

impl RowSet for PairLocks {
    type Needs = PairNeeds;

    fn statements() -> Vec<&'static Statement> {
        vec![&LOCK_STRIPES]
    }

    /// Takes the locks of the pairs that may change, and of those that are looked at, in one order.
    async fn lock(conn: &mut Conn, needs: &PairNeeds) -> DbResult<()> {
        let mut locks: Vec<_> = needs.locks.iter().map(|number| (*number, false)).collect();
        locks.extend(needs.seen_locks.difference(&needs.locks).map(|number| (*number, true)));
        lock(conn, &locks).await
    }

    async fn load(&mut self, _pipeline: &Pipeline, _core: &Core, _needs: &PairNeeds) -> DbResult<()> {
        Ok(())
    }

    async fn save(&self, _conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        Ok(())
    }

    fn settle(&mut self) {}

    fn undo(&mut self) {}
}
