//! What a feature adds to the unread summary and to its explanation.
//!
//! To add a kind of badge: a [`SummaryPart`] in the feature's `summary.rs`, and a line in the list
//! in `summary/parts.rs`.

use std::fmt;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::cache::{Entry, Revision};
use crate::engine::entries::UserRows;
use crate::engine::heads::{BroadcastState, Versions};
use crate::engine::marks::LeftOut;
use crate::engine::marks::parts::{enrolled, left_out};

/// What a part depends on besides the user's own rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    Nothing,
    /// The channels of broadcasts and the dots, which every node holds in memory.
    BroadcastState,
    /// Heads that the part looks up by itself.
    Heads,
}

/// What is known of a user when a part is counted.
#[derive(Debug, Clone, Copy)]
pub struct SummaryFacts<'a> {
    pub user: UserId,
    /// The user's own state.
    pub entry: &'a Entry,
    /// What everybody shares.
    pub broadcast_state: &'a BroadcastState,
    /// The highest number to show.
    pub cap: Cap,
    /// When it is counted.
    pub now: UnixMs,
}

impl SummaryFacts<'_> {
    /// The head of the broadcast state at which the user was enrolled.
    #[must_use]
    pub fn enrolled(&self) -> i64 {
        enrolled(&self.entry.parts)
    }

    /// The names of a kind that the user's settings keep out of the total.
    #[must_use]
    pub fn left_out(&self, kind: &str) -> LeftOut<'_> {
        left_out(&self.entry.parts, kind)
    }
}

/// The highest number that a summary shows; None: any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cap(pub Option<i64>);

impl Cap {
    /// A number as it is shown, and with a cap whether it is higher.
    #[must_use]
    pub fn show(self, number: i64) -> (i64, Option<bool>) {
        (number.min(self.0.unwrap_or(i64::MAX)), self.0.map(|cap| number > cap))
    }

    /// What is enough to count: one more than the cap tells that there is more.
    #[must_use]
    pub fn enough(self) -> i64 {
        self.0.map_or(i64::MAX, |cap| cap.saturating_add(1))
    }

    /// An unread count with its head.
    #[must_use]
    pub fn counter(self, unread: i64, head: i64) -> CounterOut {
        let (unread, capped) = self.show(unread);
        CounterOut { unread, head, capped }
    }

    /// An unread count.
    #[must_use]
    pub fn unread(self, unread: i64) -> UnreadOut {
        let (unread, capped) = self.show(unread);
        UnreadOut { unread, capped }
    }
}

/// A kind of badge in the unread summary.
pub trait SummaryPart: fmt::Debug + Send + Sync {
    /// What it depends on besides the user's own rows.
    const SHARED: Shared;

    /// Whether the total on the app icon includes it.
    const IN_TOTAL: bool = false;

    /// What a poll counts of it before it knows whether the client has the same already. `()` where
    /// the user's state and the broadcast state say everything.
    type Count: Clone + PartialEq + fmt::Debug + Send + Sync;

    /// What counting needs of the user's state, in a form that is kept with it for later polls.
    type Decoded: Clone + fmt::Debug + Send + Sync;

    /// How a summary shows it.
    type Out<'a>: Serialize + fmt::Debug;

    /// How `explain` shows it.
    type Terms: Serialize + fmt::Debug + Send;

    /// Reads what counting needs of the user's state.
    fn decode(&self, facts: SummaryFacts<'_>) -> Self::Decoded;

    /// How much memory that takes besides itself, in bytes.
    fn decoded_bytes(_decoded: &Self::Decoded) -> usize {
        0
    }

    /// Counts it; None where a store is away.
    fn count(&self, facts: SummaryFacts<'_>, decoded: &Self::Decoded) -> impl Future<Output = Option<Self::Count>> + Send;

    /// The versions of the heads that were counted, for [`Shared::Heads`].
    fn versions(_count: &Self::Count) -> Versions {
        Versions::default()
    }

    /// When the count will be another without a write; None: never.
    fn changes_at(_count: &Self::Count) -> Option<UnixMs> {
        None
    }

    /// The revision of the user that the count needs, where it was counted from newer rows than the
    /// user's state. Shown together, they would be a revision with the numbers of another one.
    fn needs(_decoded: &Self::Decoded, _count: &Self::Count) -> Option<Revision> {
        None
    }

    /// What the total adds up, at least 0, less what the user's settings leave out.
    fn unread(_facts: SummaryFacts<'_>, _count: &Self::Count) -> i64 {
        0
    }

    /// As a summary shows it.
    fn show<'a>(facts: SummaryFacts<'a>, count: &'a Self::Count) -> Self::Out<'a>;

    /// The terms of its numbers, from the rows.
    ///
    /// # Errors
    /// 503 where a store is away: nothing is guessed.
    fn explain(&self, rows: &UserRows, broadcast_state: &BroadcastState) -> impl Future<Output = Result<Self::Terms>> + Send;

    /// What the total adds up of these terms, less what the user's settings leave out.
    fn explained_unread(_rows: &UserRows, _terms: &Self::Terms) -> i64 {
        0
    }
}

/// An unread count with the head at which it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterOut {
    /// The number of unread items.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The current head; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// An unread count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnreadOut {
    /// The number of unread items.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// Values by name, in the order of the names; in JSON an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByName<'a, T>(pub Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for ByName<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
