//! The channels of broadcasts in the unread summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::engine::entries::UserRows;
use crate::engine::heads::{BroadcastState, Channel};
use crate::engine::marks::{Kind, parts};
use crate::features::summary_part::{ByName, CounterOut, Shared, SummaryFacts, SummaryPart};

/// What settings call this kind, as the summary does.
const KIND: &str = "broadcasts";

/// The channels of broadcasts.
#[derive(Debug)]
pub struct BroadcastPart;

/// A channel: unread = the broadcasts after both the mark and the enrolment, minus withdrawn and
/// expired ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChannelTermsOut {
    /// The number of broadcasts ever sent in the channel.
    head: i64,
    /// The position up to which the user has read.
    mark: i64,
    /// The last broadcast before the user was enrolled.
    seq_at_enrolment: i64,
    /// The number of withdrawn or expired broadcasts after both.
    gone: i64,
    /// The unread count.
    unread: i64,
}

impl ChannelTermsOut {
    fn new(channel: &Channel, enrolled: i64, mark: i64) -> Self {
        let (since, unread) = (channel.read_up_to(enrolled, mark), channel.unread(enrolled, mark));
        let gone = (channel.head - since - unread).max(0);
        Self { head: channel.head, mark, seq_at_enrolment: channel.read_up_to(enrolled, 0), gone, unread }
    }
}

/// The channels: name, unread, head.
fn channels(facts: SummaryFacts<'_>) -> impl Iterator<Item = (&str, i64, i64)> {
    let enrolled = facts.enrolled();
    let mut positions = parts::positions(&facts.entry.parts, Kind::Broadcast);
    facts.broadcast_state.channels.iter().map(move |(name, channel)| {
        let mark = positions.of(name);
        (name.as_str(), channel.unread(enrolled, mark), channel.head)
    })
}

impl SummaryPart for BroadcastPart {
    const SHARED: Shared = Shared::BroadcastState;
    const IN_TOTAL: bool = true;
    type Count = ();
    type Decoded = ();
    type Out<'a> = ByName<'a, CounterOut>;
    type Terms = BTreeMap<String, ChannelTermsOut>;

    fn decode(&self, _facts: SummaryFacts<'_>) {}

    async fn count(&self, _facts: SummaryFacts<'_>, (): &()) -> Option<()> {
        Some(())
    }

    fn unread(facts: SummaryFacts<'_>, (): &()) -> i64 {
        let left_out = facts.left_out(KIND);
        channels(facts).filter(|(name, ..)| !left_out.has(name)).map(|(_, unread, _)| unread).fold(0, i64::saturating_add)
    }

    fn show<'a>(facts: SummaryFacts<'a>, (): &()) -> ByName<'a, CounterOut> {
        ByName(channels(facts).map(|(name, unread, head)| (name, facts.cap.counter(unread, head))).collect())
    }

    async fn explain(&self, rows: &UserRows, broadcast_state: &BroadcastState) -> Result<Self::Terms> {
        let terms = |(name, channel): (&String, &Arc<Channel>)| {
            (name.clone(), ChannelTermsOut::new(channel, rows.row.enrolled, rows.mark(Kind::Broadcast, name)))
        };
        Ok(broadcast_state.channels.iter().map(terms).collect())
    }

    fn explained_unread(rows: &UserRows, terms: &Self::Terms) -> i64 {
        let left_out = rows.left_out(KIND);
        terms.iter().filter(|(name, _)| !left_out.has(name)).map(|(_, terms)| terms.unread).fold(0, i64::saturating_add)
    }
}
