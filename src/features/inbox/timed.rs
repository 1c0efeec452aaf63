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

/// SQL for the chats whose level ends, or has ended without a write since: those whose own level does,
/// and those of which only a mute does, also where there is no message yet. A mute for ever, a level for ever, and a block never end.
/// Given where the chats and the mutes are from, and which of them.
macro_rules! timed_chats {
    ($chats:literal, $mutes:literal, $of_chats:literal, $of_mutes:literal) => {
        concat!(
            "select d.user_id, d.peer_id, case when coalesce(m.until, 0) > d.level_until then m.until else d.level_until end as ends_at,
            d.head - d.mark + d.again - d.recalled as unread
        from ",
            $chats,
            "
        left join mutes m on m.user_id = d.user_id and m.target_id = d.peer_id
        where ",
            $of_chats,
            " and d.level_until > 0 and coalesce(m.until, 1) > 0
            and not exists (select 1 from blocks b where b.user_id = d.user_id and b.target_id = d.peer_id)
        union all
        select m.user_id, m.target_id, m.until, coalesce(d.head - d.mark + d.again - d.recalled, 0)
        from ",
            $mutes,
            "
        left join directs d on d.user_id = m.user_id and d.peer_id = m.target_id
        where ",
            $of_mutes,
            " and m.until > 0 and coalesce(d.level, 0) = 0
            and not exists (select 1 from blocks b where b.user_id = m.user_id and b.target_id = m.target_id)"
        )
    };
}
pub(super) use timed_chats;

/// The chats that entries list.
pub(super) const ENTRY_ROWS: EntryRows = EntryRows {
    select: concat!(
        "select t.user_id, {kind}, '', t.peer_id, t.ends_at, t.unread, 0, 0, 0, cast(null as bytea)
    from (",
        timed_chats!("{rows} r join directs d on d.user_id = r.user_id", "{rows} r join mutes m on m.user_id = r.user_id", "true", "true"),
        ") t"
    ),
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

impl Ended {
    /// By the entry of the user.
    #[must_use]
    pub fn of(parts: &Parts, now: UnixMs) -> Self {
        let mut ended = Self::default();
        let chats = parts.starting_with("t:").filter_map(|(_, text)| text.split_once(' '));
        for (until, unread) in chats.filter_map(|(until, unread)| Some((UnixMs(until.parse().ok()?), unread.parse::<i64>().ok()?))) {
            if until > now {
                ended.next = Some(ended.next.map_or(until, |next| next.min(until)));
            } else {
                ended.unread = ended.unread.saturating_add(unread.max(0));
                ended.chats += i64::from(unread > 0);
                ended.levels += 1;
            }
        }
        ended
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
