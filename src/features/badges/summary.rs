//! The counters in the unread summary.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::engine::entries::UserRows;
use crate::engine::heads::BroadcastState;
use crate::engine::marks::parts::counters;
use crate::engine::marks::{Kind, Mark};
use crate::features::summary_part::{ByName, CounterOut, Shared, SummaryFacts, SummaryPart};

/// What settings call this kind, as the summary does.
const KIND: &str = "counters";

/// The counters.
#[derive(Debug)]
pub struct CounterPart;

/// A counter: unread = head − mark − retracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterTermsOut {
    /// The total number, including read and removed ones.
    head: i64,
    /// The position up to which the user has read.
    mark: i64,
    /// The retracted positions above the mark, as runs.
    #[schema(example = "117 119-121")]
    retracted: String,
    /// The unread count.
    unread: i64,
}

impl From<&Mark> for CounterTermsOut {
    fn from(mark: &Mark) -> Self {
        Self { head: mark.head(), mark: mark.mark(), retracted: mark.retracted().to_string(), unread: mark.unread() }
    }
}

impl SummaryPart for CounterPart {
    const SHARED: Shared = Shared::Nothing;
    const IN_TOTAL: bool = true;
    type Count = ();
    type Decoded = ();
    type Out<'a> = ByName<'a, CounterOut>;
    type Terms = BTreeMap<String, CounterTermsOut>;

    fn decode(&self, _facts: SummaryFacts<'_>) {}

    async fn count(&self, _facts: SummaryFacts<'_>, (): &()) -> Option<()> {
        Some(())
    }

    fn unread(facts: SummaryFacts<'_>, (): &()) -> i64 {
        let left_out = facts.left_out(KIND);
        counters(&facts.entry.parts).filter(|(name, ..)| !left_out.has(name)).map(|(_, unread, _)| unread).fold(0, i64::saturating_add)
    }

    fn show<'a>(facts: SummaryFacts<'a>, (): &()) -> ByName<'a, CounterOut> {
        ByName(counters(&facts.entry.parts).map(|(name, unread, head)| (name, facts.cap.counter(unread, head))).collect())
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<Self::Terms> {
        Ok(rows.marks_of(Kind::Counter).map(|(name, mark)| (name.to_owned(), (&mark).into())).collect())
    }

    fn explained_unread(rows: &UserRows, terms: &Self::Terms) -> i64 {
        let left_out = rows.left_out(KIND);
        terms.iter().filter(|(name, _)| !left_out.has(name)).map(|(_, terms)| terms.unread).fold(0, i64::saturating_add)
    }
}
