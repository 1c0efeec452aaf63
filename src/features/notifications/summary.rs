//! The notifications in the unread summary.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::engine::entries::UserRows;
use crate::engine::heads::BroadcastState;
use crate::engine::marks::parts::numbers;
use crate::features::summary_part::{ByName, Shared, SummaryFacts, SummaryPart, UnreadOut};

/// What settings call this kind, as the summary does.
const KIND: &str = "notifications";

/// The notifications.
#[derive(Debug)]
pub struct NotificationPart;

/// A notification type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationTermsOut {
    /// The unread notifications of the type in the user's list.
    unread: i64,
}

/// The types: name, unread.
fn types(facts: SummaryFacts<'_>) -> impl Iterator<Item = (&str, i64)> {
    numbers(&facts.entry.parts, "m:").map(|(name, unread)| (name, unread.max(0)))
}

impl SummaryPart for NotificationPart {
    const SHARED: Shared = Shared::Nothing;
    const IN_TOTAL: bool = true;
    type Count = ();
    type Decoded = ();
    type Out<'a> = ByName<'a, UnreadOut>;
    type Terms = BTreeMap<String, NotificationTermsOut>;

    fn decode(&self, _facts: SummaryFacts<'_>) {}

    async fn count(&self, _facts: SummaryFacts<'_>, (): &()) -> Option<()> {
        Some(())
    }

    fn unread(facts: SummaryFacts<'_>, (): &()) -> i64 {
        let left_out = facts.left_out(KIND);
        types(facts).filter(|(name, _)| !left_out.has(name)).map(|(_, unread)| unread).fold(0, i64::saturating_add)
    }

    fn show<'a>(facts: SummaryFacts<'a>, (): &()) -> ByName<'a, UnreadOut> {
        ByName(types(facts).map(|(name, unread)| (name, facts.cap.unread(unread))).collect())
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<Self::Terms> {
        Ok(numbers(&rows.entry.parts, "m:").map(|(name, unread)| (name.to_owned(), NotificationTermsOut { unread })).collect())
    }

    fn explained_unread(rows: &UserRows, terms: &Self::Terms) -> i64 {
        let left_out = rows.left_out(KIND);
        terms.iter().filter(|(name, _)| !left_out.has(name)).map(|(_, terms)| terms.unread).fold(0, i64::saturating_add)
    }
}
