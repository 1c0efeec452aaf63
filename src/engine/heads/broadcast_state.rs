//! The broadcast state: all channels of broadcasts and all dots, as every node holds them in
//! memory. What costs the same for ten users and for a hundred million is one row here and one
//! number with each user.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::deleted::Deleted;
use super::store::NoticeRow;
use super::versions::Versions;
use crate::base::clock::UnixMs;
use crate::engine::marks::users::NOT_ENROLLED;
use crate::engine::marks::{Intervals, Kind, Stream, StreamKey, unread};

/// One channel: its stream, and where on the broadcast state its notices stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channel {
    /// How many notices there ever were.
    pub head: i64,
    /// Up to this seq, they were deleted together with the channel, which was made again since.
    deleted_up_to: i64,
    /// Those after it that were withdrawn or have expired.
    gone: Intervals,
    /// For each seq after it, the head of the broadcast state when it was sent.
    positions: Vec<i64>,
    /// Those that will expire: when, and which.
    expiring: BTreeMap<i64, BTreeSet<i64>>,
}

impl Channel {
    /// The seq of the last notice that a user enrolled at this head of the broadcast state is not
    /// to be counted.
    fn seq_at_enrolment(&self, enrolled: i64) -> i64 {
        let before = self.positions.partition_point(|position| *position <= enrolled);
        self.deleted_up_to.saturating_add(i64::try_from(before).unwrap_or(i64::MAX))
    }

    /// How many notices a user has not read: those after its mark and after its enrolment that are
    /// still there.
    #[must_use]
    pub fn unread(&self, enrolled: i64, mark: i64) -> i64 {
        if enrolled <= NOT_ENROLLED {
            return 0;
        }
        unread(self.head, mark.max(self.seq_at_enrolment(enrolled)), &self.gone, &Intervals::default())
    }

    /// Up to which seq this user has read: by its mark or by its enrolment.
    #[must_use]
    pub fn read_up_to(&self, enrolled: i64, mark: i64) -> i64 {
        if enrolled <= NOT_ENROLLED { self.head } else { mark.max(self.seq_at_enrolment(enrolled)) }
    }

    fn take(&mut self, seq: i64, position: i64, expires_at: i64, withdrawn: bool) {
        let Some(at) = usize::try_from(seq - self.deleted_up_to).ok().and_then(|nth| nth.checked_sub(1)) else { return };
        if self.positions.len() <= at {
            // Notices arrive in the order of their positions. A gap is one that is still to come, or whose row was
            // lost: it is as old as the next one.
            self.positions.resize(at + 1, position);
        }
        if let Some(place) = self.positions.get_mut(at) {
            *place = position;
        }
        self.head = self.head.max(seq);
        if withdrawn {
            self.gone.insert(seq, seq);
        } else if expires_at > 0 {
            self.expiring.entry(expires_at).or_default().insert(seq);
        }
    }

    /// All notices up to this seq were deleted, and are forgotten here.
    fn delete(&mut self, up_to: i64) {
        if up_to > self.deleted_up_to {
            let deleted = usize::try_from(up_to - self.deleted_up_to).unwrap_or(usize::MAX);
            self.positions.drain(..deleted.min(self.positions.len()));
            self.expiring.values_mut().for_each(|seqs| seqs.retain(|seq| *seq > up_to));
            self.expiring.retain(|_, seqs| !seqs.is_empty());
            self.gone.drop_up_to(up_to);
            self.deleted_up_to = up_to;
        }
    }

    /// When the next notice expires, if any does.
    fn next_expiry(&self) -> Option<i64> {
        self.expiring.first_key_value().map(|(at, _)| *at)
    }

    fn expire(&mut self, now: UnixMs) {
        while let Some(entry) = self.expiring.first_entry().filter(|entry| *entry.key() <= now.0) {
            entry.remove().into_iter().for_each(|seq| self.gone.insert(seq, seq));
        }
    }
}

/// One dot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dot {
    /// How often it was lit.
    pub head: i64,
    /// The head of the broadcast state when it was lit last.
    pub position: i64,
    /// When it was lit last.
    pub lit_at: UnixMs,
}

impl Dot {
    /// Whether it is lit for a user: since its mark and since its enrolment.
    #[must_use]
    pub fn is_lit(&self, enrolled: i64, mark: i64) -> bool {
        enrolled > NOT_ENROLLED && self.head > mark && self.position > enrolled
    }
}

/// All channels and dots as of one head of the broadcast state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroadcastState {
    /// The epoch of the installation in which all this is so: another one follows a restore.
    pub epoch: Arc<str>,
    /// Counts the states that this node has had: two with one number are the same.
    pub serial: u64,
    /// How many things ever happened on it: the version of everything below.
    pub head: i64,
    /// The channels by name. A change copies those that it changes, and shares the others.
    pub channels: BTreeMap<String, Arc<Channel>>,
    /// The dots by name.
    pub dots: BTreeMap<String, Dot>,
    /// The heads of channels and dots that were deleted, and not made again since.
    pub deleted: Deleted,
    /// When the next notice expires; the end of time where none does.
    next_expiry: i64,
    /// How many notices are gone: an expiry raises it without a write.
    gone: i64,
}

impl BroadcastState {
    /// Of an epoch, with nothing on it.
    #[must_use]
    pub(super) fn of(epoch: Arc<str>) -> Self {
        Self { epoch, ..Self::default() }
    }

    /// The same as the next one that a node has after `before`.
    #[must_use]
    pub(super) fn following(self, before: &Self) -> Self {
        Self { serial: before.serial.wrapping_add(1), ..self }
    }

    /// Adds what tells this broadcast state from another one: its head, and what has expired since.
    pub fn add_to(&self, versions: &mut Versions) {
        versions.add(Kind::BroadcastState, 0, self.head);
        versions.add(Kind::Broadcast, 0, self.gone);
    }

    /// The head that a channel or a dot has, or had when it was deleted; 0 where there never was one.
    #[must_use]
    pub fn head_of(&self, kind: Kind, name: &str) -> i64 {
        let there = match kind {
            Kind::Broadcast => self.channels.get(name).map(|channel| channel.head),
            _ => self.dots.get(name).map(|dot| dot.head),
        };
        there.unwrap_or_else(|| self.deleted.head(kind, name))
    }

    fn hear_of_channel(&mut self, name: String, stream: &Stream) {
        let deleted = self.deleted.head(Kind::Broadcast, &name).max(stream.floor);
        if let Some(channel) = self.channels.get_mut(&name).map(Arc::make_mut) {
            channel.head = channel.head.max(stream.head);
            channel.delete(deleted);
            // Which notices are gone they say themselves. Here are the positions at which a recount
            // has found none.
            channel.gone = channel.gone.union(&stream.retracted);
            channel.gone.drop_up_to(channel.deleted_up_to);
            if channel.head > channel.deleted_up_to {
                return;
            }
            self.channels.remove(&name);
        } else if stream.head > deleted {
            let mut channel = Channel { head: stream.head, deleted_up_to: deleted, gone: stream.retracted.clone(), ..Channel::default() };
            channel.gone.drop_up_to(deleted);
            self.deleted.set(Kind::Broadcast, &name, 0);
            self.channels.insert(name, Arc::new(channel));
            return;
        }
        self.deleted.set(Kind::Broadcast, &name, deleted);
    }

    fn hear_of_dot(&mut self, name: String, stream: &Stream) {
        let deleted = self.deleted.head(Kind::Dot, &name).max(stream.floor);
        let head = self.dots.get(&name).map_or(0, |dot| dot.head);
        if stream.head > head.max(deleted) {
            self.deleted.set(Kind::Dot, &name, 0);
            self.dots.insert(name, Dot { head: stream.head, position: stream.position, lit_at: stream.at });
        } else if deleted >= head {
            self.dots.remove(&name);
            self.deleted.set(Kind::Dot, &name, deleted);
        }
    }

    /// With what changed since: heads, and notices. What is older than what is here changes
    /// nothing, so it does not matter in which order things are heard of.
    #[must_use]
    pub(super) fn with(&self, heads: &[(StreamKey, Stream)], notices: &[NoticeRow], now: UnixMs) -> Self {
        let mut broadcast_state = self.clone();
        for (key, stream) in heads {
            let name = (*key.name).to_owned();
            match key.kind {
                Kind::BroadcastState => broadcast_state.head = broadcast_state.head.max(stream.head),
                Kind::Broadcast if stream.head > 0 => broadcast_state.hear_of_channel(name, stream),
                Kind::Dot if stream.head > 0 => broadcast_state.hear_of_dot(name, stream),
                _ => {}
            }
        }
        for (channel, seq, position, expires_at, withdrawn) in notices {
            if *seq > broadcast_state.deleted.head(Kind::Broadcast, channel) {
                let channel = Arc::make_mut(broadcast_state.channels.entry(channel.clone()).or_default());
                channel.take(*seq, *position, *expires_at, *withdrawn == 1);
            }
        }
        broadcast_state.expired(now)
    }

    /// Whether a notice has expired that it still counts.
    #[must_use]
    pub fn is_outdated(&self, now: UnixMs) -> bool {
        self.next_expiry <= now.0
    }

    /// Without the notices that have expired by now.
    #[must_use]
    pub(super) fn expired(mut self, now: UnixMs) -> Self {
        let outdated = self.channels.values_mut().filter(|channel| channel.next_expiry().is_some_and(|at| at <= now.0));
        outdated.for_each(|channel| Arc::make_mut(channel).expire(now));
        self.next_expiry = self.channels.values().filter_map(|channel| channel.next_expiry()).min().unwrap_or(i64::MAX);
        // What was deleted is gone, too: this never falls.
        let gone = self.channels.values().map(|channel| channel.deleted_up_to.saturating_add(channel.gone.len()));
        self.gone = gone.chain(self.deleted.heads(Kind::Broadcast)).fold(0, i64::saturating_add);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast_state(rows: &[(i64, i64, i64, i64)]) -> BroadcastState {
        let notice = |(seq, position, expires, gone): &(i64, i64, i64, i64)| ("news".to_owned(), *seq, *position, *expires, *gone);
        let notices: Vec<_> = rows.iter().map(notice).collect();
        BroadcastState::default().with(&[], &notices, UnixMs(0))
    }

    #[test]
    fn what_is_heard_late_changes_nothing() {
        let dot =
            |head, position| (StreamKey { owner: 0, kind: Kind::Dot, name: "mall".into() }, Stream { head, position, ..Stream::default() });
        let at = |head| (StreamKey::broadcast_state(), Stream { head, ..Stream::default() });
        let notice = |withdrawn| ("news".to_owned(), 1, 1, 100, withdrawn);
        let new = broadcast_state(&[]).with(&[dot(2, 3), at(4)], &[notice(0), notice(1)], UnixMs(0));
        let late = new.with(&[dot(1, 2), at(3)], &[notice(0)], UnixMs(0));
        assert_eq!((late.head, late.dots["mall"].position, late.channels["news"].unread(0, 0)), (4, 3, 0));
    }

    #[test]
    fn what_was_sent_before_the_enrolment_does_not_count() {
        let broadcast_state = broadcast_state(&[(1, 1, 0, 0), (2, 5, 0, 0), (3, 9, 0, 0)]);
        let news = &broadcast_state.channels["news"];
        let unread: Vec<_> = [-1, 0, 1, 4, 5, 9, 100].map(|enrolled| news.unread(enrolled, 0)).into();
        assert_eq!(unread, [0, 3, 2, 2, 1, 0, 0]);
        assert_eq!(news.unread(0, 2), 1, "the mark counts too");
        assert_eq!(news.read_up_to(5, 1), 2);
    }

    #[test]
    fn a_notice_whose_row_was_lost_is_as_old_as_the_next_one() {
        let broadcast_state = broadcast_state(&[(1, 1, 0, 0), (2, 2, 0, 0), (4, 4, 0, 0), (5, 5, 0, 0)]);
        let unread = |enrolled| broadcast_state.channels["news"].unread(enrolled, 0);
        assert_eq!([0, 2, 3, 4, 10].map(unread), [5, 3, 3, 1, 0]);
    }

    #[test]
    fn a_change_copies_only_the_channels_that_it_changes() {
        let notice = |channel: &str, seq: i64, expires: i64| (channel.to_owned(), seq, seq, expires, 0);
        let notices: Vec<_> = (1..=3).flat_map(|seq| [notice("news", seq, 0), notice("sale", seq, 50)]).collect();
        let before = BroadcastState::default().with(&[], &notices, UnixMs(0));
        let copied = |after: &BroadcastState| -> Vec<String> {
            let copied = before.channels.iter().filter(|(name, channel)| !Arc::ptr_eq(channel, &after.channels[*name]));
            copied.map(|(name, _)| name.clone()).collect()
        };
        let dot = (StreamKey { owner: 0, kind: Kind::Dot, name: "mall".into() }, Stream { head: 1, position: 4, ..Stream::default() });
        assert_eq!(copied(&before.with(&[dot], &[], UnixMs(0))), [""; 0]);
        assert_eq!(copied(&before.with(&[], &[notice("news", 4, 0)], UnixMs(0))), ["news"]);
        assert_eq!(copied(&before.clone().expired(UnixMs(49))), [""; 0]);
        assert_eq!(copied(&before.clone().expired(UnixMs(50))), ["sale"]);
    }

    #[test]
    fn a_notice_is_gone_at_its_time_or_when_withdrawn() {
        let broadcast_state = broadcast_state(&[(1, 1, 100, 0), (2, 2, 50, 0), (3, 3, 0, 1), (4, 4, 0, 0)]);
        assert_eq!(broadcast_state.channels["news"].unread(0, 0), 3);
        assert!(!broadcast_state.is_outdated(UnixMs(49)) && broadcast_state.is_outdated(UnixMs(50)));
        let later = broadcast_state.clone().expired(UnixMs(50));
        assert_eq!((later.channels["news"].unread(0, 0), later.channels["news"].unread(0, 2)), (2, 1));
        let last = later.expired(UnixMs(1000));
        assert_eq!(last.channels["news"].unread(0, 0), 1);
        assert!(!last.is_outdated(UnixMs(i64::MAX - 1)));
    }

    #[test]
    fn an_expiry_is_another_version() {
        let versions = |broadcast_state: &BroadcastState| {
            let mut versions = Versions::default();
            broadcast_state.add_to(&mut versions);
            versions
        };
        let broadcast_state = broadcast_state(&[(1, 1, 100, 0), (2, 2, 0, 0)]);
        let later = broadcast_state.clone().expired(UnixMs(100));
        assert_eq!(versions(&later).sum, versions(&broadcast_state).sum + 1);
        assert_ne!(versions(&later).fingerprint, versions(&broadcast_state).fingerprint);
        assert_eq!(versions(&later.clone().expired(UnixMs(200))), versions(&later));
    }

    fn channel(head: i64, floor: i64) -> (StreamKey, Stream) {
        (StreamKey { owner: 0, kind: Kind::Broadcast, name: "news".into() }, Stream { head, floor, ..Stream::default() })
    }

    #[test]
    fn a_deleted_channel_is_gone_until_it_is_made_again() {
        let notice = |seq: i64| ("news".to_owned(), seq, 10 * seq, 0, 0);
        let sent = BroadcastState::default().with(&[channel(2, 0)], &[notice(1), notice(2)], UnixMs(0));
        let deleted = sent.with(&[channel(2, 2)], &[], UnixMs(0));
        assert!(deleted.channels.is_empty());
        assert_eq!((deleted.deleted.head(Kind::Broadcast, "news"), deleted.head_of(Kind::Broadcast, "news")), (2, 2));
        assert!(deleted.with(&[channel(1, 0)], &[notice(1), notice(2)], UnixMs(0)) == deleted, "what is heard late changes nothing");
        let again = deleted.with(&[channel(3, 2)], &[notice(3)], UnixMs(0));
        let first = BroadcastState::default().with(&[channel(3, 2)], &[notice(1), notice(2), notice(3)], UnixMs(0));
        for again in [again.clone(), first, again.with(&[channel(2, 2), channel(2, 0)], &[notice(2)], UnixMs(0))] {
            let news = &again.channels["news"];
            assert_eq!((news.head, again.deleted.head(Kind::Broadcast, "news")), (3, 0));
            let unread = [(0, 0), (0, 2), (0, 3), (29, 0), (30, 0)].map(|(enrolled, mark)| news.unread(enrolled, mark));
            assert_eq!(unread, [1, 1, 0, 1, 0]);
            assert_eq!((news.read_up_to(0, 0), news.read_up_to(0, 3), news.read_up_to(30, 0)), (2, 3, 3));
        }
    }

    #[test]
    fn a_deletion_never_lowers_the_versions() {
        let sum = |state: &BroadcastState| {
            let mut versions = Versions::default();
            state.add_to(&mut versions);
            versions.sum
        };
        let at = |head| (StreamKey::broadcast_state(), Stream { head, ..Stream::default() });
        let withdrawn = |seq: i64| ("news".to_owned(), seq, seq, 0, 1);
        let sent = BroadcastState::default().with(
            &[channel(3, 0), at(5)],
            &[withdrawn(1), withdrawn(2), ("news".to_owned(), 3, 3, 9, 0)],
            UnixMs(0),
        );
        let deleted = sent.with(&[channel(3, 3), at(6)], &[], UnixMs(0));
        let again = deleted.with(&[channel(4, 3), at(7)], &[("news".to_owned(), 4, 7, 0, 0)], UnixMs(0));
        assert!(sum(&sent) < sum(&deleted) && sum(&deleted) < sum(&again));
        assert!(!deleted.is_outdated(UnixMs(i64::MAX - 1)), "what was deleted does not expire");
    }

    #[test]
    fn a_deleted_dot_is_gone_until_it_is_lit_again() {
        let dot = |head, floor, position| {
            (StreamKey { owner: 0, kind: Kind::Dot, name: "mall".into() }, Stream { head, floor, position, ..Stream::default() })
        };
        let lit = BroadcastState::default().with(&[dot(2, 0, 3)], &[], UnixMs(0));
        let deleted = lit.with(&[dot(2, 2, 4)], &[], UnixMs(0));
        assert!(deleted.dots.is_empty() && deleted.head_of(Kind::Dot, "mall") == 2);
        assert!(deleted.with(&[dot(2, 0, 3)], &[], UnixMs(0)) == deleted);
        let again = deleted.with(&[dot(3, 2, 5)], &[], UnixMs(0)).with(&[dot(2, 2, 4)], &[], UnixMs(0));
        assert!(again.dots["mall"].is_lit(4, 2) && again.deleted.head(Kind::Dot, "mall") == 0);
    }

    #[test]
    fn a_dot_is_lit_since_mark_and_enrolment() {
        let dot = Dot { head: 3, position: 7, lit_at: UnixMs(1) };
        assert!(dot.is_lit(6, 2) && dot.is_lit(0, 0));
        assert!(!dot.is_lit(7, 0), "lit before the user was seen");
        assert!(!dot.is_lit(0, 3), "cleared");
        assert!(!dot.is_lit(NOT_ENROLLED, 0), "not seen yet");
    }
}
