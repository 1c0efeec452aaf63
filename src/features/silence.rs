//! What keeps a user from being shown what another one does: a block, a mute, or both.
//!
//! Nobody else may notice any of it. So what is silenced is kept as it is, and left out where the
//! user's numbers are added up. A mute that ends is compared with the clock, as levels of chats
//! are (`level.rs`), so nothing is written when its time comes.

use crate::base::clock::UnixMs;
use crate::features::level::{Level, LevelUntil};

/// A mute, by when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mute {
    /// Until when; None: for ever.
    pub until: Option<UnixMs>,
}

impl Mute {
    /// As a row holds it: a time that is 0 for ever.
    #[must_use]
    pub fn from_row(until: i64) -> Self {
        Self { until: Some(UnixMs(until)).filter(|until| until.0 > 0) }
    }

    /// The time for a row.
    #[must_use]
    pub fn row(self) -> i64 {
        self.until.map_or(0, |until| until.0)
    }

    /// Whether its time has come. It then stays so.
    #[must_use]
    pub fn has_ended(self, now: UnixMs) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// What a user has done not to be shown another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Silence {
    /// Whether the user blocks the other one.
    pub blocked: bool,
    /// The mute, also one that has ended.
    pub mute: Option<Mute>,
}

impl Silence {
    /// As [`silence_code!`] reads it.
    #[must_use]
    pub fn from_code(code: i64) -> Self {
        let until = code.div_euclid(2);
        Self { blocked: code.rem_euclid(2) == 1, mute: (until >= 0).then(|| Mute::from_row(until)) }
    }

    /// Whether the user is shown nothing of the other one.
    #[must_use]
    pub fn holds(self, now: UnixMs) -> bool {
        self.blocked || self.mute.is_some_and(|mute| !mute.has_ended(now))
    }

    /// The level of the chat with the other one, given the one that the user has set: the last of
    /// all reasons to count nothing decides when it ends.
    #[must_use]
    pub fn over(self, level: LevelUntil) -> LevelUntil {
        let for_ever = LevelUntil::new(Level::None, None);
        match self.mute {
            _ if self.blocked => for_ever,
            None => level,
            Some(Mute { until: None }) => for_ever,
            Some(Mute { until: Some(_) }) if level.set() != Level::All && level.until().is_none() => level,
            Some(Mute { until }) => LevelUntil::new(Level::None, until.max(level.until())),
        }
    }
}

/// SQL for what a user has done not to be shown another one, as one number: twice the time at which
/// a mute ends (0: never, -1: there is none), and 1 more for a block.
macro_rules! silence_code {
    ($user:literal, $other:literal) => {
        concat!(
            "2 * coalesce((select m.until from mutes m where m.user_id = ",
            $user,
            " and m.target_id = ",
            $other,
            "), -1) + (select count(*) from blocks b where b.user_id = ",
            $user,
            " and b.target_id = ",
            $other,
            ")"
        )
    };
}
pub(crate) use silence_code;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_code_is_read_as_it_was_made() {
        let of = |code| Silence::from_code(code);
        let mute = |until: i64| Some(Mute { until: (until > 0).then_some(UnixMs(until)) });
        assert_eq!([-2, -1].map(of), [false, true].map(|blocked| Silence { blocked, mute: None }));
        assert_eq!([0, 1].map(of), [false, true].map(|blocked| Silence { blocked, mute: mute(0) }));
        assert_eq!([14, 15].map(of), [false, true].map(|blocked| Silence { blocked, mute: mute(7) }));
    }

    fn mutes() -> impl Strategy<Value = Option<Mute>> {
        prop::option::of(prop::option::of(1..8_i64).prop_map(|until| Mute { until: until.map(UnixMs) }))
    }

    proptest! {
        /// At each moment, the chat counts where neither its level, nor a mute, nor a block keeps it
        /// from that; and it begins to count when the level that is shown says so.
        #[test]
        fn a_chat_counts_where_nothing_silences_it(
            blocked in any::<bool>(),
            mute in mutes(),
            none in any::<bool>(),
            until in prop::option::of(1..8_i64),
        ) {
            let set = LevelUntil::new(if none { Level::None } else { Level::All }, until.map(UnixMs));
            let silence = Silence { blocked, mute };
            let over = silence.over(set);
            let counts = |now: i64| !silence.holds(UnixMs(now)) && set.at(UnixMs(now)) == Level::All;
            for now in 0..10 {
                prop_assert_eq!(over.at(UnixMs(now)) == Level::All, counts(now), "at {}", now);
            }
            let first = (0..10).find(|now| counts(*now));
            prop_assert_eq!(over.ends_at(UnixMs(0)), first.filter(|now| *now > 0).map(UnixMs));
        }

        #[test]
        fn a_row_holds_a_mute(mute in mutes()) {
            let Some(mute) = mute else { return Ok(()) };
            prop_assert_eq!(Mute::from_row(mute.row()), mute);
        }
    }
}
