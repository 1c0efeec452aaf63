//! An unread summary: the user's own state and what users share, with the version that its entity
//! tag is made from.

use std::sync::Arc;

use super::kept::{Kept, MadeFrom};
use super::parts::{Counts, Decoded, UnreadSummaryOut, Wanted};
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::UserId;
use crate::cache::{ReadEntry, Revision};
use crate::engine::entries::{State, alive};
use crate::engine::heads::{BroadcastState, Versions};
use crate::features::summary_part::{ByName, Shared, SummaryFacts};
use crate::features::views::ViewCount;
use crate::features::views::summary::ViewOut;
use crate::http::polling::{Seen, Version};

/// A user's summary as read.
#[derive(Debug, Clone)]
pub struct UnreadSummary {
    pub user: UserId,
    /// The user's own state; None where it is not known.
    pub entry: Option<Arc<ReadEntry>>,
    /// Whether that is only what was last known.
    pub own_is_stale: bool,
    /// Whether something was kept with it: then it was shown before, so the user is not erased.
    pub was_shown: bool,
    /// What everybody shares.
    pub broadcast_state: Arc<BroadcastState>,
    /// Whether that is only what was last known.
    pub shared_is_stale: bool,
    /// What the kinds made of the user's own state.
    pub decoded: Decoded,
    /// What was counted of the kinds.
    pub counts: Counts,
    /// The views that were asked for, in that order; None where they are not known.
    pub views: Option<Vec<ViewCount>>,
    /// What was asked for.
    pub wanted: Wanted,
    /// When it is counted.
    pub now: UnixMs,
}

impl UnreadSummary {
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.entry.as_ref().map_or(0, |entry| entry.revision)
    }

    /// What the kinds are counted from.
    pub(super) fn facts(&self) -> Option<SummaryFacts<'_>> {
        let entry = self.entry.as_ref()?;
        Some(SummaryFacts { user: self.user, entry, broadcast_state: &self.broadcast_state, cap: self.wanted.cap, now: self.now })
    }

    /// Takes the user's own state as it was read.
    pub(super) fn set_own(&mut self, state: State) {
        (self.entry, self.own_is_stale) = match state {
            State::Current(entry) => (Some(entry), false),
            State::LastKnown(entry) => (Some(entry), true),
            State::Unknown => (None, false),
        };
    }

    /// What is kept with the user's own state.
    pub(super) fn kept(&self) -> Option<Arc<Kept>> {
        self.entry.as_ref()?.derived()
    }

    /// What its body is made from besides that; None where it is not to be kept.
    pub(super) fn made_from(&self) -> Option<MadeFrom<'_>> {
        let from = MadeFrom { wanted: self.wanted, broadcast_state: self.broadcast_state.serial, counts: &self.counts };
        Some(from).filter(|_| !self.has_views() && !self.is_degraded())
    }

    /// Whether any part of it is not as new as it is promised to be.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.is_stale() || self.versions().is_none()
    }

    fn is_stale(&self) -> bool {
        self.entry.is_none() || self.own_is_stale || (self.shares() && self.shared_is_stale)
    }

    /// Whether anything that users share was asked for.
    fn shares(&self) -> bool {
        self.wanted.has(|shared| shared != Shared::Nothing) || self.has_views()
    }

    /// Whether any views were asked for.
    fn has_views(&self) -> bool {
        self.views.as_ref().is_none_or(|views| !views.is_empty())
    }

    /// The version that the tag is made from; None for a degraded answer, which has no tag.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.versions().filter(|_| !self.is_stale()).map(|shared| Version::new(self.revision(), shared))
    }

    /// When it is another one without a write; None: never.
    #[must_use]
    pub fn changes_at(&self) -> Option<UnixMs> {
        self.counts.changes_at()
    }

    /// The versions of all shared heads in it; None where a part that was wanted is not known.
    #[must_use]
    pub fn versions(&self) -> Option<Versions> {
        let mut versions = self.counts.versions(self.wanted)?;
        if self.wanted.has(|shared| shared == Shared::BroadcastState) {
            self.broadcast_state.add_to(&mut versions);
        }
        self.views.as_ref()?.iter().for_each(|view| view.add_to(&mut versions));
        Some(versions)
    }

    /// Refuses a user that was erased.
    ///
    /// # Errors
    /// 410.
    pub(super) fn alive(&self) -> Result<(), Problem> {
        if self.was_shown {
            return Ok(());
        }
        self.entry.as_ref().map_or(Ok(()), |entry| alive(&entry.parts))
    }

    /// Whether the client has an answer with other shared heads, so that this node may be behind.
    pub(super) fn may_be_behind(&self, seen: Seen) -> bool {
        self.shares() && !self.is_stale() && self.versions().is_some_and(|versions| seen.has_other(versions))
    }

    /// The revision at which the user's own state must be read again, because something was counted
    /// from newer rows.
    pub(super) fn needs(&self) -> Option<Revision> {
        self.counts.needs(&self.decoded).filter(|_| !self.own_is_stale)
    }

    /// As JSON shows it.
    #[must_use]
    pub fn out(&self) -> UnreadSummaryOut<'_> {
        let (stale, missing, cap) = (self.stale(), self.missing(), self.wanted.cap);
        let out = UnreadSummaryOut::without_kinds(self.user, &self.broadcast_state.epoch);
        let views = self.views.as_ref().filter(|views| !views.is_empty());
        let views = views.map(|views| ByName(views.iter().map(|of| (&*of.stream, ViewOut::new(of, cap))).collect()));
        let out = UnreadSummaryOut { degraded: self.is_degraded(), stale, missing, views, ..out };
        let Some(facts) = self.facts() else { return out };
        let total = self.counts.total(facts).filter(|_| self.wanted.has_total()).map(|total| cap.show(total));
        let out = UnreadSummaryOut {
            revision: Some(self.revision()),
            shared_revision: self.versions().map(|versions| versions.sum),
            total: total.map(|(total, _)| total),
            capped: total.and_then(|(_, capped)| capped),
            ..out
        };
        out.add_kinds(facts, &self.counts)
    }

    /// When degraded, the kinds that are as last known.
    fn stale(&self) -> Vec<&'static str> {
        if self.entry.is_none() || !(self.own_is_stale || self.shared_is_stale) {
            return Vec::new();
        }
        let is_stale = |shared| self.own_is_stale || shared != Shared::Nothing;
        let mut names = self.wanted.names(&self.counts, |shared, is_known| is_known && is_stale(shared));
        names.extend((self.has_views() && self.views.is_some()).then_some("views"));
        names
    }

    /// When degraded, the kinds that are not known.
    fn missing(&self) -> Vec<&'static str> {
        let mut names = self.wanted.names(&self.counts, |_, is_known| !is_known);
        names.extend(self.views.is_none().then_some("views"));
        names
    }
}
