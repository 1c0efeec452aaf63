//! How much of a chat counts in sums: all of it, its mentions only, or nothing, for ever or until a
//! time.
//!
//! A level is evaluated when it is read, so nothing is written when its time comes. What shows a
//! level compares with the clock, adds [`LevelUntil::has_ended`] to the version of its answer, and
//! lets a waiting poll look again at [`LevelUntil::ends_at`].

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::Problem;

/// What of a chat `chats` and `total` count.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is
// malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[schema(rename_all = "snake_case")]
pub enum Level {
    /// Every unread message.
    #[default]
    All,
    /// Unread mentions only.
    Mentions,
    /// Nothing.
    None,
}

impl TryFrom<String> for Level {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "all" => Ok(Self::All),
            "mentions" => Ok(Self::Mentions),
            "none" => Ok(Self::None),
            _ => Err("must be 'all', 'mentions' or 'none'"),
        }
    }
}

impl Level {
    /// As rows hold it. A chat that was muted before there were levels has the code of
    /// [`Self::None`].
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::All => 0,
            Self::None => 1,
            Self::Mentions => 2,
        }
    }

    /// The level of a code. A code of a newer version counts as [`Self::All`]: better a number too
    /// many than a message that nobody sees.
    #[must_use]
    pub fn from_code(code: i64) -> Self {
        match code {
            1 => Self::None,
            2 => Self::Mentions,
            _ => Self::All,
        }
    }

    /// What of these numbers counts in sums.
    #[must_use]
    pub fn counted(self, unread: i64, mentions: i64) -> i64 {
        match self {
            Self::All => unread,
            Self::Mentions => mentions,
            Self::None => 0,
        }
    }
}

/// A level with the time when it ends and [`Level::All`] holds again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelUntil {
    /// What was set.
    level: Level,
    /// Until when; None: for ever. Never there with [`Level::All`], which has nothing to end.
    until: Option<UnixMs>,
}

impl LevelUntil {
    /// This level, until then or for ever.
    #[must_use]
    pub fn new(level: Level, until: Option<UnixMs>) -> Self {
        Self { level, until: until.filter(|_| level != Level::All) }
    }

    /// As a client asks for it.
    ///
    /// # Errors
    /// A problem at `/until` where that is not after `now`.
    pub fn asked(level: Level, until: Option<UnixMs>, now: UnixMs) -> Result<Self, Problem> {
        if until.is_some_and(|until| until <= now) {
            return Err(Problem::invalid("/until", "must be in the future"));
        }
        Ok(Self::new(level, until))
    }

    /// As a row holds it: a code, and a time that is 0 for ever.
    #[must_use]
    pub fn from_row(code: i64, until: i64) -> Self {
        Self::new(Level::from_code(code), (until > 0).then_some(UnixMs(until)))
    }

    /// The code and the time for a row.
    #[must_use]
    pub fn row(self) -> (i64, i64) {
        (self.level.code(), self.until.map_or(0, |until| until.0))
    }

    /// The level that was set, whether it has ended or not.
    #[must_use]
    pub fn set(self) -> Level {
        self.level
    }

    /// When it ends; None: never.
    #[must_use]
    pub fn until(self) -> Option<UnixMs> {
        self.until
    }

    /// The level at this time.
    #[must_use]
    pub fn at(self, now: UnixMs) -> Level {
        if self.has_ended(now) { Level::All } else { self.level }
    }

    /// When the level of this time ends; None where it never does.
    #[must_use]
    pub fn ends_at(self, now: UnixMs) -> Option<UnixMs> {
        self.until.filter(|until| *until > now)
    }

    /// Whether its time has come. It then stays so: the clock of an answer's version.
    #[must_use]
    pub fn has_ended(self, now: UnixMs) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVELS: [Level; 3] = [Level::All, Level::Mentions, Level::None];

    #[test]
    fn a_level_ends_at_its_time_and_not_before() {
        let level = LevelUntil::new(Level::None, Some(UnixMs(10)));
        assert_eq!([9, 10, 11].map(|now| level.at(UnixMs(now))), [Level::None, Level::All, Level::All]);
        assert_eq!([9, 10].map(|now| level.ends_at(UnixMs(now))), [Some(UnixMs(10)), None]);
        assert_eq!([9, 10].map(|now| level.has_ended(UnixMs(now))), [false, true]);
        let for_ever = LevelUntil::new(Level::Mentions, None);
        assert_eq!((for_ever.at(UnixMs(i64::MAX)), for_ever.ends_at(UnixMs(1))), (Level::Mentions, None));
        let all = LevelUntil::new(Level::All, Some(UnixMs(10)));
        assert_eq!((all.ends_at(UnixMs(1)), all.has_ended(UnixMs(11))), (None, false), "there is nothing to end");
    }

    #[test]
    fn an_end_in_the_past_is_refused() {
        let asked = |until| LevelUntil::asked(Level::None, Some(UnixMs(until)), UnixMs(10)).is_ok();
        assert_eq!([9, 10, 11].map(asked), [false, false, true]);
    }

    #[test]
    fn muted_rows_keep_their_meaning() {
        assert_eq!([0, 1, 2, 3].map(Level::from_code), [Level::All, Level::None, Level::Mentions, Level::All]);
        assert_eq!(LEVELS.map(|level| level.counted(7, 2)), [7, 2, 0]);
    }

    proptest! {
        #[test]
        fn a_row_holds_all_of_it(level in 0..3_usize, until in prop::option::of(1..100_i64)) {
            let of = LevelUntil::new(LEVELS[level], until.map(UnixMs));
            let (code, until) = of.row();
            prop_assert_eq!(LevelUntil::from_row(code, until), of);
        }
    }
}
