//! The kinds of streams, and why one does not take a change.

/// What sort of stream a row of `marks` or `heads` is about; the number is how the databases hold
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A counter badge: head and mark are the user's own.
    Counter,
    /// A channel of broadcasts: one head for all, a mark for each user who has read in it.
    Broadcast,
    /// A dot: one head for all, a mark for each user who has cleared it.
    Dot,
    /// A view: one head for all, a mark for each user who has visited it.
    View,
    /// The posts of a creator. The marks of those who follow are in their snapshots of the feed.
    Post,
    /// The messages of a group. How far members have read them is in their memberships.
    Group,
    /// All that ever happened to channels and dots, of which each user has one mark: the enrolment.
    BroadcastState,
}

impl Kind {
    /// The number that stands in the rows.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Counter => 1,
            Self::Broadcast => 2,
            Self::Dot => 3,
            Self::View => 4,
            Self::Post => 5,
            Self::Group => 6,
            Self::BroadcastState => 7,
        }
    }

    /// Every kind.
    const ALL: [Self; 7] = [Self::Counter, Self::Broadcast, Self::Dot, Self::View, Self::Post, Self::Group, Self::BroadcastState];

    /// The kind of a row; None where this version does not know it.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// Why a stream does not take a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The head would pass [`MAX_HEAD`](crate::base::ids::MAX_HEAD).
    HeadFull,
    /// That position was never reached.
    UnknownPosition,
    /// More than [`MAX_RETRACTED_RUNS`](super::MAX_RETRACTED_RUNS) would have to be remembered.
    TooManyRuns,
}
