//! The dots in the unread summary.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::engine::entries::UserRows;
use crate::engine::heads::{self, BroadcastState};
use crate::engine::marks::{Kind, parts};
use crate::features::summary_part::{ByName, Shared, SummaryFacts, SummaryPart};

/// The dots.
#[derive(Debug)]
pub struct DotPart;

/// A red dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotOut {
    /// Whether it is lit for the user.
    pub lit: bool,
    /// How often the dot was lit; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 4)]
    pub head: i64,
}

/// A dot: lit if it was lit after both the mark and the enrolment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotTermsOut {
    /// How often the dot was lit.
    head: i64,
    /// The head up to which the user has cleared the dot.
    mark: i64,
    /// When the dot was last lit.
    lit_at: UnixMs,
    /// Whether it was last lit after the user was enrolled.
    after_enrolment: bool,
    /// Whether it is lit for the user.
    lit: bool,
}

impl SummaryPart for DotPart {
    const SHARED: Shared = Shared::BroadcastState;
    type Count = ();
    type Decoded = ();
    type Out<'a> = ByName<'a, DotOut>;
    type Terms = BTreeMap<String, DotTermsOut>;

    fn decode(&self, _facts: SummaryFacts<'_>) {}

    async fn count(&self, _facts: SummaryFacts<'_>, (): &()) -> Option<()> {
        Some(())
    }

    fn show<'a>(facts: SummaryFacts<'a>, (): &()) -> ByName<'a, DotOut> {
        let enrolled = facts.enrolled();
        let mut positions = parts::positions(&facts.entry.parts, Kind::Dot);
        let dot = |(name, dot): (&'a String, &heads::Dot)| {
            let lit = dot.is_lit(enrolled, positions.of(name));
            (name.as_str(), DotOut { lit, head: dot.head })
        };
        ByName(facts.broadcast_state.dots.iter().map(dot).collect())
    }

    async fn explain(&self, rows: &UserRows, broadcast_state: &BroadcastState) -> Result<Self::Terms> {
        let enrolled = rows.row.enrolled;
        let terms = |(name, dot): (&String, &heads::Dot)| {
            let mark = rows.mark(Kind::Dot, name);
            let after_enrolment = rows.row.is_enrolled() && dot.position > enrolled;
            let lit = dot.is_lit(enrolled, mark);
            (name.clone(), DotTermsOut { head: dot.head, mark, lit_at: dot.lit_at, after_enrolment, lit })
        };
        Ok(broadcast_state.dots.iter().map(terms).collect())
    }
}
