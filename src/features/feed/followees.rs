//! One user's list: whom it follows, each with the head in memory and the user's mark.

use std::sync::{Arc, Mutex, PoisonError};

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::{ListVersion, Revision};
use crate::engine::heads::{CachedHead, History, KeptCount, Versions};
use crate::engine::marks::{Intervals, Kind};

/// When a mute ends that never does.
pub(super) const FOR_EVER: UnixMs = UnixMs(i64::MAX);

/// What a list takes besides its creators.
const LIST_BYTES: usize = 256;

/// One creator of a list.
#[derive(Debug)]
pub(super) struct Followee {
    pub(super) cached_head: Arc<CachedHead>,
    /// What counts as seen.
    pub(super) mark: i64,
    pub(super) creator: UserId,
}

/// One creator of a list and its part of the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    pub creator: UserId,
    /// How much the creator has ever posted.
    pub head: i64,
    /// Up to where the user has seen it.
    pub mark: i64,
    /// How many posts are there that the user has not seen.
    pub unread: i64,
    /// Whether the user mutes the creator, so that they do not count.
    pub muted: bool,
}

/// Whom a user follows, each with the head in memory and the user's mark, as of one version.
#[derive(Debug)]
pub struct FeedList {
    pub(super) version: ListVersion,
    /// In the order of the creators, so that every node adds up in the same order; last, in the same
    /// order, those whom the user mutes.
    pub(super) followees: Box<[Followee]>,
    /// When the mutes of the last ones end.
    pub(super) muted_until: Box<[UnixMs]>,
    /// Of those whose marks lie below what the cached heads tell: the sum of the cached heads'
    /// versions, and of what is unread. Looked at only where there are any.
    pub(super) below: Mutex<Option<(i64, i64)>>,
    /// Where the cached heads tell all: what is unread, and their versions.
    pub(super) counted: KeptCount<(i64, Versions)>,
}

/// A count as far as the cached heads tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) unread: i64,
    /// The cached heads' versions.
    pub(super) versions: Versions,
    /// Whether a head is not loaded.
    pub(super) unloaded: bool,
    /// Those of whom only the rows tell.
    pub(super) below: Vec<usize>,
}

impl Counted {
    /// Adds one creator; false where the head is not loaded.
    fn add(&mut self, at: usize, of: &Followee) -> bool {
        // Before the head: then the head is at least as new.
        let Some(version) = of.cached_head.loaded_version() else { return false };
        self.versions.add(Kind::Post, of.creator.get().cast_unsigned(), version);
        match of.cached_head.unread(of.mark, &Intervals::default()) {
            Some(unread) => self.unread = self.unread.saturating_add(unread),
            None => self.below.push(at),
        }
        true
    }
}

impl FeedList {
    /// The revision at which the list changed last.
    #[must_use]
    pub fn version(&self) -> Revision {
        self.version.revision
    }

    /// How many creators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.followees.len()
    }

    /// Whether the user follows nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.followees.is_empty()
    }

    /// The creators one by one: creator, head, mark, and what is unread; None where only the rows
    /// tell, see [`super::Feeds::terms`].
    pub fn iter(&self) -> impl Iterator<Item = (UserId, i64, i64, Option<i64>)> + '_ {
        let none = Intervals::default();
        self.followees.iter().map(move |of| (of.creator, of.cached_head.head(), of.mark, of.cached_head.unread(of.mark, &none)))
    }

    /// Whom the user mutes at this time.
    pub(super) fn muted(&self, now: UnixMs) -> impl Iterator<Item = UserId> + '_ {
        let (_, muted) = self.by_mute();
        muted.iter().zip(&self.muted_until).filter(move |(_, until)| **until > now).map(|(of, _)| of.creator)
    }

    /// When the next mute ends.
    pub(super) fn changes_at(&self, now: UnixMs) -> Option<UnixMs> {
        self.muted_until.iter().copied().filter(|until| *until > now && *until < FOR_EVER).min()
    }

    /// Those whose posts always count, and those whom the user mutes, or did until some time.
    fn by_mute(&self) -> (&[Followee], &[Followee]) {
        self.followees.split_at_checked(self.followees.len() - self.muted_until.len()).unwrap_or_default()
    }

    /// What was counted before, while no version has changed since. Not for a horizon: a head is
    /// written before its version, so what was kept may lack a post that [`Self::heads`] has by now.
    pub(super) fn count_kept(&self, history: History, now: UnixMs) -> Counted {
        let heads = self.unmuted(now).map(|(_, of)| &*of.cached_head);
        let mut partly = Counted::default();
        let count = || {
            partly = self.count(now);
            let is_whole = !partly.unloaded && partly.below.is_empty();
            is_whole.then(|| ((partly.unread, partly.versions), self.changes_at(now)))
        };
        match self.counted.get_or_count(history, heads, now, count) {
            Some((unread, versions)) => Counted { unread, versions, ..Counted::default() },
            None => partly,
        }
    }

    pub(super) fn count(&self, now: UnixMs) -> Counted {
        let mut counted = Counted::default();
        for (at, of) in self.unmuted(now) {
            if !counted.add(at, of) {
                return Counted { unloaded: true, ..Counted::default() };
            }
        }
        counted
    }

    /// The creators who count, each with the place in the list. Neither the posts nor the version of
    /// one who is muted do: who polls is not woken by them.
    fn unmuted(&self, now: UnixMs) -> impl Iterator<Item = (usize, &Followee)> {
        let (always, muted) = self.by_mute();
        let muted = muted.iter().zip(&self.muted_until).map(move |(of, until)| (of, *until <= now));
        let all = always.iter().map(|of| (of, true)).chain(muted).enumerate();
        all.filter(|(_, (_, counts))| *counts).map(|(at, (of, _))| (at, of))
    }

    /// The heads of the creators, in their order; None where one is not known.
    pub(super) fn heads(&self) -> Option<Vec<i64>> {
        self.followees.iter().map(|of| Some(of.cached_head.head()).filter(|_| of.cached_head.is_loaded())).collect()
    }

    pub(super) fn below(&self) -> std::sync::MutexGuard<'_, Option<(i64, i64)>> {
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn weight(&self) -> u32 {
        u32::try_from(LIST_BYTES + size_of_val::<[Followee]>(&self.followees) + size_of_val::<[UnixMs]>(&self.muted_until))
            .unwrap_or(u32::MAX)
    }
}
