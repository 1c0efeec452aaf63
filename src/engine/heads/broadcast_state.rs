//! The broadcast state: all channels of broadcasts and all dots, as every node holds them in
//! memory. What costs the same for ten users and for a hundred million is one row here and one
//! number with each user.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Those that were withdrawn or have expired.
    gone: Intervals,
    /// For each seq, from 1 on, the head of the broadcast state when it was sent.
    positions: Vec<i64>,
    /// Those that will expire: when, and which.
    expiring: BTreeMap<i64, Vec<i64>>,
}

impl Channel {
    /// The seq of the last notice that a user enrolled at this head of the broadcast state is not
    /// to be counted.
    fn seq_at_enrolment(&self, enrolled: i64) -> i64 {
        let before = self.positions.partition_point(|position| *position <= enrolled);
        i64::try_from(before).unwrap_or(i64::MAX)
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
        let Some(at) = usize::try_from(seq).ok().and_then(|seq| seq.checked_sub(1)) else { return };
        if self.positions.len() <= at {
            // Notices arrive in the order of their positions; a gap can only be one that is still
            // to come.
            self.positions.resize(at + 1, i64::MAX);
        }
        if let Some(place) = self.positions.get_mut(at) {
            *place = position;
        }
        self.head = self.head.max(seq);
        if withdrawn {
            self.gone.insert(seq, seq);
        } else if expires_at > 0 {
            let seqs = self.expiring.entry(expires_at).or_default();
            if !seqs.contains(&seq) {
                seqs.push(seq);
            }
        }
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
    /// The channels by name.
    pub channels: BTreeMap<String, Channel>,
    /// The dots by name.
    pub dots: BTreeMap<String, Dot>,
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

    /// With what changed since: heads, and notices. What is older than what is here changes
    /// nothing, so it does not matter in which order things are heard of.
    #[must_use]
    pub(super) fn with(&self, heads: &[(StreamKey, Stream)], notices: &[NoticeRow], now: UnixMs) -> Self {
        let mut broadcast_state = self.clone();
        for (key, stream) in heads {
            let name = (*key.name).to_owned();
            match key.kind {
                Kind::BroadcastState => broadcast_state.head = broadcast_state.head.max(stream.head),
                Kind::Broadcast if stream.head > 0 => {
                    let channel = broadcast_state.channels.entry(name).or_default();
                    channel.head = channel.head.max(stream.head);
                    // Which notices are gone they say themselves. Here are the positions at which a
                    // recount has found none.
                    channel.gone = channel.gone.union(&stream.retracted);
                }
                Kind::Dot if stream.head > 0 => {
                    let dot = broadcast_state.dots.entry(name).or_default();
                    if stream.head > dot.head {
                        *dot = Dot { head: stream.head, position: stream.position, lit_at: stream.at };
                    }
                }
                _ => {}
            }
        }
        for (channel, seq, position, expires_at, withdrawn) in notices {
            broadcast_state.channels.entry(channel.clone()).or_default().take(*seq, *position, *expires_at, *withdrawn == 1);
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
        self.channels.values_mut().for_each(|channel| channel.expire(now));
        let next = self.channels.values().filter_map(|channel| channel.expiring.first_key_value()).map(|(at, _)| *at).min();
        self.next_expiry = next.unwrap_or(i64::MAX);
        self.gone = self.channels.values().map(|channel| channel.gone.len()).fold(0, i64::saturating_add);
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

    #[test]
    fn a_dot_is_lit_since_mark_and_enrolment() {
        let dot = Dot { head: 3, position: 7, lit_at: UnixMs(1) };
        assert!(dot.is_lit(6, 2) && dot.is_lit(0, 0));
        assert!(!dot.is_lit(7, 0), "lit before the user was seen");
        assert!(!dot.is_lit(0, 3), "cleared");
        assert!(!dot.is_lit(NOT_ENROLLED, 0), "not seen yet");
    }
}
