//! The memberships of a group, and what follows from them for its messages.

use std::collections::HashMap;

use crate::base::id_hash::IdHash;
use crate::base::ids::{MAX_HEAD, UserId};
use crate::engine::marks::Hidden;
use crate::features::groups::Reading;

/// One membership of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The member's number in the group.
    pub ordinal: i64,
    /// None: a user that was erased.
    pub user: Option<UserId>,
    /// The head when joining.
    pub from_seq: i64,
    /// The head when leaving; None: a member now.
    pub to_seq: Option<i64>,
    /// How far the member has read.
    pub reading: Reading,
    /// The messages of which nobody sees whether the member has read them.
    pub hidden: Hidden,
}

impl Span {
    /// Whether a message was sent within it.
    fn covers(&self, seq: i64) -> bool {
        self.from_seq < seq && self.to_seq.is_none_or(|to| seq <= to)
    }

    /// Whether others see that the member has read a message.
    fn has_read(&self, seq: i64) -> bool {
        self.reading.has_read(seq) && !self.hidden.hides(seq)
    }

    /// How many messages others see that the member has read.
    fn shown_reads(&self) -> i64 {
        // Single ones lie above what is read as a whole, and not above the head at which the member left.
        let (read_seq, single) = (self.reading.read_seq(), self.reading.extra_len());
        let hidden = self.hidden.within(self.from_seq + 1, MAX_HEAD).map(|(from, to)| {
            let read_up_to = to.min(read_seq);
            (read_up_to - from + 1).max(0) + self.reading.extra_count(from.max(read_seq + 1), to)
        });
        (read_seq - self.from_seq).max(0) + single - hidden.sum::<i64>()
    }
}

/// All memberships of a group there ever were, as of one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spans {
    /// In the order of ordinals, and of each the oldest first.
    spans: Vec<Span>,
    /// See [`Self::progress`].
    progress: i64,
}

/// What hiding adds to the progress: more than what it can take from the reads that are shown.
const HIDING: i64 = 1 << 24;

/// How many recipients a message has, and how many of them have read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// The members when it was sent, less the sender.
    pub recipients: i64,
    /// Those of them who have read it.
    pub read: i64,
}

/// A recipient of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// None: a user that was erased.
    pub user: Option<UserId>,
    /// The member's number in the group.
    pub ordinal: i64,
    /// Whether the membership of that time has ended.
    pub left: bool,
}

/// The ordinals of a message's recipients, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ordinals {
    /// Those who have read it.
    pub read: Vec<i64>,
    /// Those who have not.
    pub unread: Vec<i64>,
}

/// The bitmaps of a message. Ordinal `i` (from 1) is bit `i - 1`, the lowest bit of each byte
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmaps {
    /// The highest ordinal there was when the message was sent.
    pub max_ordinal: i64,
    /// The recipients who have read it.
    pub read: Vec<u8>,
    /// Those who had left before it was sent.
    pub quit: Vec<u8>,
}

fn set_bit(bits: &mut [u8], ordinal: i64) {
    let Some(bit) = usize::try_from(ordinal).ok().and_then(|ordinal| ordinal.checked_sub(1)) else { return };
    if let Some(byte) = bits.get_mut(bit / 8) {
        *byte |= 1 << (bit % 8);
    }
}

impl Spans {
    /// Of these memberships, in the order of ordinals.
    #[must_use]
    pub fn new(spans: Vec<Span>) -> Self {
        let ends = |span: &Span| i64::from(span.to_seq.is_some()) + i64::from(span.user.is_none());
        let part = |span: &Span| 1 + ends(span) + span.shown_reads() + span.hidden.changes().saturating_mul(HIDING);
        let progress = spans.iter().map(part).fold(0, i64::saturating_add);
        Self { spans, progress }
    }

    /// Goes up with each change of what is shown: with what members are seen to have read, with who
    /// begins or ends to hide that, and with who comes, goes or is erased. Never with what somebody reads and
    /// hides: polls wake by it.
    #[must_use]
    pub fn progress(&self) -> i64 {
        self.progress
    }

    /// How much room they take, as a number of memberships of people who read from top to bottom.
    pub(super) fn weight(&self) -> usize {
        self.spans.iter().map(|span| 1 + span.reading.extra_bytes() / size_of::<Span>()).sum()
    }

    /// The head at which a user's membership began; None where there is none.
    #[must_use]
    pub fn member_since(&self, user: UserId) -> Option<i64> {
        self.spans.iter().find(|span| span.user == Some(user) && span.to_seq.is_none()).map(|span| span.from_seq)
    }

    fn covering(&self, seq: i64) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.covers(seq))
    }

    /// The counts of the messages from this one to that one, given who sent each (None: it is not
    /// counted). The memberships are walked through, however many messages there are.
    #[must_use]
    pub fn counts(&self, from: i64, senders: &[Option<UserId>]) -> Vec<Count> {
        let to = from + i64::try_from(senders.len()).unwrap_or(0) - 1;
        // Steps between neighbours, added up at the end.
        let mut steps = vec![Count::default(); senders.len() + 1];
        let mut add = |first: i64, last: i64, step: Count| {
            let (first, last) = (first.max(from), last.min(to));
            let place = |seq: i64| usize::try_from(seq - from).unwrap_or(0);
            if first <= last {
                for (at, sign) in [(place(first), 1), (place(last) + 1, -1)] {
                    if let Some(count) = steps.get_mut(at) {
                        count.recipients += sign * step.recipients;
                        count.read += sign * step.read;
                    }
                }
            }
        };
        for span in &self.spans {
            let end = span.to_seq.unwrap_or(i64::MAX);
            add(span.from_seq + 1, end, Count { recipients: 1, read: 0 });
            let read_up_to = end.min(span.reading.read_seq());
            add(span.from_seq + 1, read_up_to, Count { recipients: 0, read: 1 });
            for (first, last) in span.hidden.within((span.from_seq + 1).max(from), read_up_to.min(to)) {
                add(first, last, Count { recipients: 0, read: -1 });
            }
            for seq in span.reading.extra_within((span.from_seq + 1).max(from), end.min(to)).filter(|seq| !span.hidden.hides(*seq)) {
                add(seq, seq, Count { recipients: 0, read: 1 });
            }
        }
        let mut of_senders: HashMap<UserId, Vec<&Span>, IdHash> = senders.iter().flatten().map(|sender| (*sender, Vec::new())).collect();
        for span in &self.spans {
            if let Some(of) = span.user.and_then(|user| of_senders.get_mut(&user)) {
                of.push(span);
            }
        }
        let mut sum = Count::default();
        let counts = (from..).zip(senders).zip(&steps).map(|((seq, sender), step)| {
            sum = Count { recipients: sum.recipients + step.recipients, read: sum.read + step.read };
            // The sender is no recipient.
            let own = sender.and_then(|sender| of_senders.get(&sender)?.iter().find(|span| span.covers(seq)));
            let own_read = own.is_some_and(|span| span.has_read(seq));
            Count { recipients: sum.recipients - i64::from(own.is_some()), read: sum.read - i64::from(own_read) }
        });
        counts.collect()
    }

    /// The recipients of a message who have read it, or those who have not, after an ordinal.
    pub fn recipients(&self, seq: i64, sender: UserId, read: bool, after: i64) -> impl Iterator<Item = Recipient> {
        let these = self.covering(seq).filter(move |span| span.ordinal > after && span.user != Some(sender));
        let these = these.filter(move |span| span.has_read(seq) == read);
        these.map(|span| Recipient { user: span.user, ordinal: span.ordinal, left: span.to_seq.is_some() })
    }

    /// How many of a message's memberships have ended, and how many of its members were erased.
    #[must_use]
    pub fn ended(&self, seq: i64) -> i64 {
        self.covering(seq).map(|span| i64::from(span.to_seq.is_some()) + i64::from(span.user.is_none())).sum()
    }

    /// The highest ordinal that there was when a message was sent.
    #[must_use]
    pub fn max_ordinal(&self, seq: i64) -> i64 {
        self.spans.iter().filter(|span| span.from_seq < seq).map(|span| span.ordinal).max().unwrap_or(0)
    }

    /// The ordinals of a message's recipients; None where there are more than `most`.
    #[must_use]
    pub fn ordinals(&self, seq: i64, sender: UserId, most: usize) -> Option<Ordinals> {
        let mut ordinals = Ordinals::default();
        for span in self.covering(seq).filter(|span| span.user != Some(sender)) {
            let these = if span.has_read(seq) { &mut ordinals.read } else { &mut ordinals.unread };
            these.push(span.ordinal);
            if ordinals.read.len() + ordinals.unread.len() > most {
                return None;
            }
        }
        Some(ordinals)
    }

    /// The bitmaps of a message.
    #[must_use]
    pub fn bitmaps(&self, seq: i64, sender: UserId) -> Bitmaps {
        let max_ordinal = self.max_ordinal(seq);
        let bytes = usize::try_from(max_ordinal).unwrap_or(0).div_ceil(8);
        let (mut read, mut there) = (vec![0; bytes], vec![0; bytes]);
        for span in self.covering(seq) {
            set_bit(&mut there, span.ordinal);
            if span.user != Some(sender) && span.has_read(seq) {
                set_bit(&mut read, span.ordinal);
            }
        }
        let mut quit = vec![0; bytes];
        for ordinal in 1..=max_ordinal {
            set_bit(&mut quit, ordinal);
        }
        quit.iter_mut().zip(&there).for_each(|(quit, there)| *quit &= !there);
        Bitmaps { max_ordinal, read, quit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erasure_shows_in_the_progress() {
        let span = |user: Option<UserId>| Span {
            ordinal: 1,
            user,
            from_seq: 0,
            to_seq: Some(4),
            reading: Reading::from_seq(3),
            hidden: Hidden::default(),
        };
        let of = |user| Spans::new(vec![span(user)]).progress();
        assert!(of(None) > of(UserId::try_from(7).ok()), "a tag that names the member is not the newest");
    }
}
