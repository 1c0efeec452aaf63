//! A direct chat as one of its sides has it, and the rules of what is unread in it.

use super::needs::Oldest;
use crate::base::clock::UnixMs;
use crate::engine::marks::{Hidden, Intervals};
use crate::features::level::LevelUntil;

/// How many runs of expired messages are kept for each direct chat that had not been read; below
/// those any `up_to` clears.
const MAX_GONE_RUNS: usize = 100;

/// A direct chat as one of its sides has it.
///
/// Unread are the peer's messages above the mark, without those that were recalled. *Unread again*
/// counts as if the mark were lower; it ends when the user reads up to the mark.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Direct {
    /// The number of messages that the peer ever sent.
    pub head: i64,
    /// The number of those messages that the user has read. It also passes messages that were
    /// recalled before the user read them, once they expire.
    pub mark: i64,
    /// How many messages below the mark are unread again.
    pub again: i64,
    /// With `again`, or while expired messages are unread: from which row of the inbox on. 0: after `read_seq`.
    pub unread_from: i64,
    /// How many of the peer's messages above the mark, or unread again, were recalled and are kept.
    pub recalled: i64,
    /// The chat's last row in the user's inbox that the user has read. It never goes back.
    pub read_seq: i64,
    /// The chat's last message in the user's inbox; 0: there never was one.
    pub last_seq: i64,
    /// When it came.
    pub last_at: UnixMs,
    /// Whether sums count the chat. They never do while the user blocks the peer.
    pub level: LevelUntil,
    /// How many of the peer's messages have expired.
    pub gone: i64,
    /// Where in the inbox those of them were that are unread; of more than so many runs, not the lowest.
    pub gone_seqs: Intervals,
    /// The rows of the user's inbox of which the peer does not see whether they are read. As of the
    /// last time when `read_seq` rose.
    pub hidden: Hidden,
}

/// What a row of the user's inbox is in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// How many messages the peer had sent by then.
    pub peer_seq: i64,
    /// The chat's last message up to there.
    pub seq: i64,
    /// How many of the peer's later messages were recalled and are kept.
    pub recalled_after: i64,
}

impl Direct {
    /// The number of unread messages from the peer.
    #[must_use]
    pub fn unread(&self) -> i64 {
        (self.head - self.counted_from() - self.recalled).max(0)
    }

    /// The mark that counts: messages up to it are not unread.
    #[must_use]
    pub fn counted_from(&self) -> i64 {
        self.mark - self.again
    }

    /// The place of everything that is there.
    pub(super) fn end(&self) -> Place {
        Place { peer_seq: self.head, seq: self.last_seq, recalled_after: 0 }
    }

    /// The place of a row before which nothing of the chat is kept. Of what has expired it is known
    /// where that was which had not been read.
    pub(super) fn place_of_expired(&self, up_to: i64, recalled_after: i64) -> Place {
        let peer_seq = self.gone - self.gone_seqs.count_within(up_to, i64::MAX);
        let seq = if self.gone > 0 { up_to.min(self.last_seq) } else { 0 };
        Place { peer_seq, seq, recalled_after }
    }

    /// The user has read up to a row.
    pub(super) fn read(&mut self, place: Place, up_to: i64) {
        self.read_seq = self.read_seq.max(place.seq);
        if place.peer_seq <= self.counted_from() {
            return;
        }
        let to = place.peer_seq.min(self.head);
        self.recalled = place.recalled_after;
        if to < self.mark {
            (self.again, self.unread_from) = (self.mark - to, up_to.saturating_add(1));
        } else {
            (self.mark, self.again, self.unread_from) = (to, 0, 0);
        }
        if to >= self.gone {
            self.gone_seqs = Intervals::default();
        } else {
            self.gone_seqs.drop_up_to(up_to);
            // The messages that were left out of the runs are read, too, wherever they were.
            self.unread_from = self.gone_seqs.first().unwrap_or(self.unread_from);
        }
    }

    /// Nothing is unread any more, although the user has not read it.
    pub(super) fn end_unread(&mut self) {
        (self.mark, self.again, self.unread_from, self.recalled) = (self.head, 0, 0, 0);
        self.gone_seqs = Intervals::default();
    }

    /// Messages from a row on are unread again; `before` is the place of the row before it. What is
    /// unread already stays so.
    pub(super) fn unread_again(&mut self, before: Place, from: i64) {
        if before.peer_seq >= self.counted_from() {
            return;
        }
        (self.again, self.unread_from) = (self.mark - before.peer_seq, from);
        self.recalled = before.recalled_after;
        // The row is kept, so nothing that has expired counts.
        self.gone_seqs = Intervals::default();
    }

    /// A message of the peer was recalled whose row is kept.
    pub(super) fn recall(&mut self, peer_seq: i64) {
        self.recalled += i64::from(peer_seq > self.counted_from());
    }

    /// A message of the peer was recalled whose row has expired. It may still count as unread.
    pub(super) fn recall_expired(&mut self, seq: i64) {
        if self.gone_seqs.remove(seq) || self.is_left_out(seq) {
            self.pass_one();
            self.bound_gone();
        }
    }

    /// Whether an expired message is one of those that count as unread and were left out of the runs. No message is
    /// recalled twice, so all others below the runs were read.
    fn is_left_out(&self, seq: i64) -> bool {
        let left_out = self.gone - self.counted_from() - self.gone_seqs.len();
        left_out > 0 && self.gone_seqs.first().is_none_or(|first| seq < first) && seq > self.unread_after()
    }

    /// A row of the chat expires. A message that counts as unread stays so until its number is
    /// read, but not one that was recalled.
    pub(super) fn expire(&mut self, row: &Oldest) {
        let is_first = self.gone <= self.counted_from();
        self.gone = self.gone.max(row.peer_seq);
        if row.own || row.peer_seq <= self.counted_from() {
            return;
        }
        if row.recalled {
            self.recalled -= 1;
            self.pass_one();
            return;
        }
        if is_first {
            self.unread_from = row.seq;
        }
        self.gone_seqs.insert(row.seq, row.seq);
        self.bound_gone();
    }

    /// Whether a row is shown with the chat in lists, as the last message or as the first unread one.
    pub(super) fn shows(&self, row: &Oldest) -> bool {
        let is_unread = !row.own && !row.recalled && row.peer_seq > self.counted_from();
        row.seq == self.last_seq || is_unread
    }

    /// The lowest message above the mark is no longer unread.
    fn pass_one(&mut self) {
        if self.again > 0 {
            self.again -= 1;
        } else {
            self.mark += 1;
        }
        if self.again == 0 && self.gone <= self.counted_from() {
            self.unread_from = 0;
        }
    }

    /// Of those that are left out it is known only how many they are, and that they are the lowest.
    fn bound_gone(&mut self) {
        while self.gone_seqs.runs() > MAX_GONE_RUNS {
            self.gone_seqs.drop_first();
        }
    }

    /// No message up to this row of the inbox is unread.
    fn unread_after(&self) -> i64 {
        if self.unread_from > 0 { self.unread_from - 1 } else { self.read_seq }
    }
}

#[cfg(test)]
mod tests;
