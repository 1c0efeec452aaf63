//! Groups: members, messages, and how far each member has read.

mod reading;

pub use reading::{MAX_EXTRA_BYTES, Reading, TooScattered};

use crate::marks::Intervals;

/// What a user's entry in the cache holds of a group that the user is in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMark {
    /// Up to which message all is read.
    pub read_seq: i64,
    /// Single messages above it that are read.
    pub extra: Intervals,
    /// Whether the group counts in no sum.
    pub muted: bool,
}

impl GroupMark {
    /// As a row of `memberships` holds it.
    #[must_use]
    pub fn from_row(read_seq: i64, muted: i64, extra: Option<&[u8]>) -> Self {
        Self::new(&Reading::from_row(read_seq, extra), muted == 1)
    }

    /// Of a membership.
    #[must_use]
    pub fn new(reading: &Reading, muted: bool) -> Self {
        Self { read_seq: reading.read_seq(), extra: reading.extra_runs(), muted }
    }
}
