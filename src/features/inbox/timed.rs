//! Direct chats whose level ends by itself: the one that was set, or that of a mute, whichever ends
//! last. Their user's sums do not count them, and the user's entry lists each: `t:7` has
//! `1767225600123 3`, which is when the level ends and how many messages are unread. A reader adds
//! those whose time has come. The next write to such a chat moves it into the sums, or the sweep that
//! removes the mute.

use std::collections::BTreeSet;

use super::Direct;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::Parts;
use crate::db::{Column, DbResult, Pipeline, Statement, Type};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Versions;
use crate::engine::marks::Kind;
use crate::engine::marks::parts::Part;
use crate::features::silence::Silence;

/// How many direct chats of a user may have a level that ends.
pub const MAX_TIMED_CHATS: usize = 100;

/// The chats that entries list: those whose own level ends, and those of which only a mute does, also
/// where there is no message yet. A mute for ever, a level for ever, and a block never end.
pub(super) const ENTRY_ROWS: EntryRows = EntryRows {
    select: "select d.user_id, {kind}, '', d.peer_id, case when coalesce(m.until, 0) > d.level_until then m.until else d.level_until end,
        d.head - d.mark + d.again - d.recalled, 0, 0, 0, cast(null as bytea)
    from {rows} r
    join directs d on d.user_id = r.user_id and d.level_until > 0
    left join mutes m on m.user_id = r.user_id and m.target_id = d.peer_id
    where coalesce(m.until, 1) > 0 and not exists (select 1 from blocks b where b.user_id = r.user_id and b.target_id = d.peer_id)
    union all
    select m.user_id, {kind}, '', m.target_id, m.until, coalesce(d.head - d.mark + d.again - d.recalled, 0), 0, 0, 0, cast(null as bytea)
    from {rows} r
    join mutes m on m.user_id = r.user_id and m.until > 0
    left join directs d on d.user_id = r.user_id and d.peer_id = m.target_id
    where coalesce(d.level, 0) = 0 and not exists (select 1 from blocks b where b.user_id = r.user_id and b.target_id = m.target_id)",
    part: |row| {
        let [peer, until, unread, ..] = row.numbers;
        Some(part(UserId::try_from(peer).ok()?, Some((UnixMs(until), unread))))
    },
};

/// The chats of users whose level ends, or has ended without a write since.
static LOAD_TIMED: Statement = Statement::new(
    "select d.user_id, d.peer_id
    from {rows} r
    join directs d on d.user_id = r.user_id and d.level_until > 0",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> [&'static Statement; 1] {
    [&LOAD_TIMED]
}

pub(super) async fn load(pipeline: &Pipeline, users: &BTreeSet<UserId>) -> DbResult<Vec<(i64, i64)>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_TIMED, [Column::Int(users.iter().map(|user| user.get()).collect())]).await
}

/// When the level of a chat ends, and what is then unread; None where it does not end.
pub(super) fn timed(direct: &Direct, silence: Silence) -> Option<(UnixMs, i64)> {
    Some((silence.over(direct.level).until()?, direct.unread()))
}

/// A chat as an entry has it; an empty part where its level does not end any more.
pub(super) fn part(peer: UserId, timed: Option<(UnixMs, i64)>) -> Part {
    (format!("t:{peer}").into(), timed.map(|(until, unread)| format!("{} {unread}", until.0)).unwrap_or_default().into())
}

/// The direct chats of a user whose level has ended without a write since, at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// How many messages are unread in them.
    pub unread: i64,
    /// In how many chats.
    pub chats: i64,
    /// How many levels have ended.
    pub levels: i64,
    /// When the next one ends.
    pub next: Option<UnixMs>,
}

/// The chats whose level ends, in the order of their ends: read of an entry once, and kept with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimedChats {
    ends: Vec<UnixMs>,
    /// How many messages are unread in so many of the first chats, and in how many of them.
    unread: Vec<(i64, i64)>,
}

impl TimedChats {
    /// Those of an entry.
    #[must_use]
    pub fn of(parts: &Parts) -> Self {
        let texts = parts.starting_with("t:").filter_map(|(_, text)| text.split_once(' '));
        let mut chats: Vec<_> = texts.filter_map(|(until, unread)| Some((until.parse().ok()?, unread.parse::<i64>().ok()?))).collect();
        chats.sort_unstable();
        let (mut unread, mut sum) = (Vec::with_capacity(chats.len()), (0_i64, 0));
        for (_, more) in &chats {
            sum = (sum.0.saturating_add((*more).max(0)), sum.1 + i64::from(*more > 0));
            unread.push(sum);
        }
        Self { ends: chats.into_iter().map(|(until, _)| UnixMs(until)).collect(), unread }
    }

    /// Those whose time has come.
    #[must_use]
    pub fn at(&self, now: UnixMs) -> Ended {
        let ended = self.ends.partition_point(|until| *until <= now);
        let (unread, chats) = ended.checked_sub(1).and_then(|last| self.unread.get(last)).copied().unwrap_or_default();
        Ended { unread, chats, levels: i64::try_from(ended).unwrap_or(i64::MAX), next: self.ends.get(ended).copied() }
    }

    /// How much memory they take besides themselves, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(self.ends.as_slice()) + size_of_val(self.unread.as_slice())
    }
}

impl Ended {
    /// By the entry of the user.
    #[must_use]
    pub fn of(parts: &Parts, now: UnixMs) -> Self {
        TimedChats::of(parts).at(now)
    }

    /// An answer shows one state more for each level that ends, at the same revision.
    #[must_use]
    pub fn versions(self) -> Versions {
        let mut versions = Versions::default();
        if self.levels > 0 {
            // No user has the id 0, so no stream passes for this.
            versions.add(Kind::Counter, 0, self.levels);
        }
        versions
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_has_ended_is_the_sum_of_those_whose_time_has_come(chats in prop::collection::vec((1..9_i64, 0..4_i64), 0..9), now in 0..10_i64) {
            let peer = |at: usize| UserId::try_from(i64::try_from(at).unwrap() + 1).unwrap();
            let parts: Parts = chats.iter().enumerate().map(|(at, (until, unread))| part(peer(at), Some((UnixMs(*until), *unread)))).collect();
            let ended: Vec<_> = chats.iter().filter(|(until, _)| *until <= now).collect();
            let expected = Ended {
                unread: ended.iter().map(|(_, unread)| unread).sum(),
                chats: i64::try_from(ended.iter().filter(|(_, unread)| *unread > 0).count()).unwrap(),
                levels: i64::try_from(ended.len()).unwrap(),
                next: chats.iter().map(|(until, _)| UnixMs(*until)).filter(|until| until.0 > now).min(),
            };
            prop_assert_eq!(Ended::of(&parts, UnixMs(now)), expected);
        }
    }
}
