//! Time, injected: the program asks a [`Clock`], so that a test can set it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A point in time, in milliseconds since 1970-01-01 UTC, as stored in the databases. In JSON: RFC
/// 3339 with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-01-31T09:30:00.123Z")]
pub struct UnixMs(pub i64);

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{at:.3}")
    }
}

impl UnixMs {
    /// The day that it falls on, counted from 1970-01-01 UTC.
    #[must_use]
    pub fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }
}

impl Serialize for UnixMs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnixMs {
    /// RFC 3339, with any offset; what is finer than a millisecond is cut off.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let at = text.parse().ok().or_else(|| beyond(&text));
        let at: jiff::Timestamp = at.ok_or_else(|| de::Error::custom("not a time as in RFC 3339, such as 2026-01-31T09:30:00Z"))?;
        Ok(Self(at.as_millisecond()))
    }
}

/// The last time there is, for one that lies a little beyond it: the last seconds of the year 9999
/// are a common way to say "never".
fn beyond(text: &str) -> Option<jiff::Timestamp> {
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    (pieces.date().year() == 9999 && pieces.time().is_some() && pieces.offset().is_some()).then_some(jiff::Timestamp::MAX)
}

/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// How far a node's clock may be from the database's. A node beyond that removes nothing because of its age. So the
/// clocks of two nodes may differ by twice this.
pub const MAX_SKEW_MS: i64 = 5 * 60 * 1000;

/// Where the time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's own clock.
    #[default]
    System,
    /// A hand-set clock, in Unix milliseconds, for tests.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The present time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time of day")]
    pub fn now(&self) -> UnixMs {
        match self {
            Self::System => {
                let since =
                    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
                UnixMs(since + shift_ms())
            }
            Self::Manual(ms) => UnixMs(ms.load(Ordering::Relaxed)),
        }
    }
}

/// By how much a clock that said `before`, then asked for another clock's time and was `told` it, then said `after`, is ahead
/// of that one in milliseconds, by the least that it may be. Below 0: it is behind.
#[must_use]
pub fn ahead_of(told: i64, before: i64, after: i64) -> i64 {
    if told > after { after - told } else { (before - told).max(0) }
}

/// By how much a test has set this machine's clock wrong, with `clock::ahead_ms=return(3600000)`. Nothing without the feature
/// `failpoints`.
fn shift_ms() -> i64 {
    #[cfg(feature = "failpoints")]
    if !fail::list().is_empty() {
        fail::fail_point!("clock::ahead_ms", |ms| ms.and_then(|ms| ms.parse().ok()).unwrap_or_default());
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_year_9999_is_the_last_time_there_is() {
        let read = |text: &str| serde_json::from_value::<UnixMs>(text.into()).ok();
        let last = Some(UnixMs(jiff::Timestamp::MAX.as_millisecond()));
        assert_eq!([read("9999-12-31T23:59:59.999Z"), read("9999-12-31T23:59:59+01:00")], [last, last]);
        assert_eq!(read("9999-12-30T21:00:00Z").map(|at| at.to_string()), Some("9999-12-30T21:00:00.000Z".to_owned()));
        for bad in ["9999-12-31", "9999-12-31T23:59:59", "9999-12-32T00:00:00Z", "10000-01-01T00:00:00Z", "never"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn clocks_are_apart_by_what_the_question_does_not_explain() {
        assert_eq!([90, 100, 105, 110, 130].map(|told| ahead_of(told, 100, 110)), [10, 0, 0, 0, -20]);
    }

    #[test]
    fn times_show_milliseconds_and_utc() {
        assert_eq!(UnixMs(1_769_851_800_123).to_string(), "2026-01-31T09:30:00.123Z");
        assert_eq!(UnixMs(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
