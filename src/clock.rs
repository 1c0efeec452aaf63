//! Time, injected: the program asks a [`Clock`], so that a test can set it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A point in time, in milliseconds since 1970-01-01 UTC: as the databases hold it. In JSON: RFC 3339 with milliseconds.
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
        let at: jiff::Timestamp = text.parse().map_err(|_| de::Error::custom("not a time as in RFC 3339, such as 2026-01-31T09:30:00Z"))?;
        Ok(Self(at.as_millisecond()))
    }
}

/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

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
            Self::System => UnixMs(jiff::Timestamp::now().as_millisecond()),
            Self::Manual(ms) => UnixMs(ms.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_milliseconds_and_utc() {
        assert_eq!(UnixMs(1_769_851_800_123).to_string(), "2026-01-31T09:30:00.123Z");
        assert_eq!(UnixMs(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
