//! The notifications in the unread summary.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::entry::Count;
use super::out::NotificationCountOut;
use crate::base::error::Result;
use crate::cache::Parts;
use crate::engine::entries::UserRows;
use crate::engine::heads::BroadcastState;
use crate::engine::marks::parts::texts;
use crate::features::summary_part::{ByName, Shared, SummaryFacts, SummaryPart};

/// What settings call this kind, as the summary does.
const KIND: &str = "notifications";

/// The notifications.
#[derive(Debug)]
pub struct NotificationPart;

/// A notification type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationTermsOut {
    /// The unread entries of the type in the user's list.
    unread: i64,
    /// Those of them that the user has not seen in the list.
    unseen: i64,
}

/// The types: name and numbers (`rows::notification_part` writes them).
fn types(parts: &Parts) -> impl Iterator<Item = (&str, Count)> {
    texts(parts, "m:").filter_map(|(name, text)| {
        let (unread, unseen) = text.split_once(' ').unwrap_or((text, text));
        let unread = unread.parse::<i64>().ok()?.max(0);
        Some((name, Count { unread, seen: (unread - unseen.parse::<i64>().ok()?).clamp(0, unread) }))
    })
}

impl SummaryPart for NotificationPart {
    const SHARED: Shared = Shared::Nothing;
    const IN_TOTAL: bool = true;
    type Count = ();
    type Decoded = ();
    type Out<'a> = ByName<'a, NotificationCountOut>;
    type Terms = BTreeMap<String, NotificationTermsOut>;

    fn decode(&self, _facts: SummaryFacts<'_>) {}

    async fn count(&self, _facts: SummaryFacts<'_>, (): &()) -> Option<()> {
        Some(())
    }

    fn unread(facts: SummaryFacts<'_>, (): &()) -> i64 {
        let left_out = facts.left_out(KIND);
        types(&facts.entry.parts).filter(|(name, _)| !left_out.has(name)).map(|(_, count)| count.unread).fold(0, i64::saturating_add)
    }

    fn show<'a>(facts: SummaryFacts<'a>, (): &()) -> ByName<'a, NotificationCountOut> {
        ByName(types(&facts.entry.parts).map(|(name, count)| (name, NotificationCountOut::new(count, facts.cap))).collect())
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<Self::Terms> {
        let terms = |count: Count| NotificationTermsOut { unread: count.unread, unseen: count.unseen() };
        Ok(types(&rows.entry.parts).map(|(name, count)| (name.to_owned(), terms(count))).collect())
    }

    fn explained_unread(rows: &UserRows, terms: &Self::Terms) -> i64 {
        let left_out = rows.left_out(KIND);
        terms.iter().filter(|(name, _)| !left_out.has(name)).map(|(_, terms)| terms.unread).fold(0, i64::saturating_add)
    }
}
