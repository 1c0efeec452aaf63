//! What an inbox may show at any moment, known from the requests alone.
//!
//! Before a request the caller takes the *floor*: all that was acknowledged by then. An answer must
//! show at least that, and at most what has been sent by the time it is judged. Polls that run
//! while writes are under way are checked without stopping anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One badge of one user, as an answer showed it. Signed, so that a negative number is seen and not
/// a parse error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) unread: i64,
    pub(crate) head: i64,
    /// Every poll has one; the answer to a write may.
    pub(crate) revision: Option<i64>,
}

/// What a poll showed last, and the tag to ask with whether it still holds.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) view: View,
    pub(crate) etag: String,
}

/// What was acknowledged before a request went out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    head: i64,
    mark: i64,
    revision: i64,
}

/// One inbox and everything that was asked of it.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The user on the server.
    pub(crate) user: u64,
    /// The id in the file.
    pub(crate) channel: u64,
    sent: AtomicI64,
    acked: AtomicI64,
    mark_sent: AtomicI64,
    mark_acked: AtomicI64,
    revision: AtomicI64,
    seen: Mutex<Option<Seen>>,
}

impl Inbox {
    pub(crate) fn new(user: u64, channel: u64) -> Self {
        Self {
            user,
            channel,
            sent: AtomicI64::new(0),
            acked: AtomicI64::new(0),
            mark_sent: AtomicI64::new(0),
            mark_acked: AtomicI64::new(0),
            revision: AtomicI64::new(0),
            seen: Mutex::new(None),
        }
    }

    pub(crate) fn floor(&self) -> Floor {
        Floor { head: self.acked.load(SeqCst), mark: self.mark_acked.load(SeqCst), revision: self.revision.load(SeqCst) }
    }

    /// A message is about to be sent; says which of this inbox it is, from 1.
    pub(crate) fn sending(&self) -> i64 {
        self.sent.fetch_add(1, SeqCst) + 1
    }

    pub(crate) fn was_sent(&self, head: i64) {
        self.acked.fetch_max(head, SeqCst);
    }

    /// A mark is about to be sent.
    pub(crate) fn marking(&self, up_to: i64) {
        self.mark_sent.fetch_max(up_to, SeqCst);
    }

    pub(crate) fn was_marked(&self, up_to: i64) {
        self.mark_acked.fetch_max(up_to, SeqCst);
    }

    /// The highest `up_to` that the server acknowledged.
    pub(crate) fn mark(&self) -> i64 {
        self.mark_acked.load(SeqCst)
    }

    pub(crate) fn seen(&self) -> Option<Seen> {
        self.seen_lock().clone()
    }

    /// Remembers a poll, unless another showed a later state meanwhile (as a client drops an answer
    /// with a lower revision).
    pub(crate) fn remember(&self, seen: Seen) {
        let mut last = self.seen_lock();
        if last.as_ref().is_none_or(|last| last.view.revision <= seen.view.revision) {
            *last = Some(seen);
        }
    }

    /// Whether an answer to a request that went out at `floor` can be right; if so it becomes what
    /// later answers may not go behind.
    pub(crate) fn judge(&self, floor: Floor, view: View) -> Result<(), String> {
        let View { unread, head, revision } = view;
        let read = head - unread;
        let (sent, mark_sent) = (self.sent.load(SeqCst), self.mark_sent.load(SeqCst));
        if unread < 0 || unread > head {
            return Err(format!("unread {unread} with head {head}"));
        }
        if head < floor.head || head > sent {
            return Err(format!("head {head}, though {} messages were acknowledged and {sent} sent", floor.head));
        }
        if read < floor.mark || read > mark_sent {
            return Err(format!("{read} of {head} read, though the mark is between {} and {mark_sent}", floor.mark));
        }
        if let Some(revision) = revision {
            if revision < floor.revision {
                return Err(format!("revision {revision} after revision {}", floor.revision));
            }
            self.revision.fetch_max(revision, SeqCst);
        }
        Ok(())
    }

    fn seen_lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that was not as it must be: all counted, the first ones kept in words.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    count: u64,
    lines: Vec<String>,
    /// How often each inbox was found wrong: one lost message shows in every later answer.
    of_inbox: HashMap<u64, usize>,
}

impl Differences {
    /// How many are kept in words.
    const MAX_KEPT: usize = 20;
    /// And of one inbox.
    const MAX_KEPT_OF_INBOX: usize = 2;

    pub(crate) fn add(&self, inbox: &Inbox, when: &str, what: &str) {
        let mut found = self.found();
        let times = found.of_inbox.entry(inbox.channel).or_default();
        *times += 1;
        let is_kept = *times <= Self::MAX_KEPT_OF_INBOX;
        found.add(is_kept, || format!("inbox {} (user {}), {when}: {what}", inbox.channel, inbox.user));
    }

    pub(crate) fn add_line(&self, line: String) {
        self.found().add(true, || line);
    }

    pub(crate) fn count(&self) -> u64 {
        self.found().count
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.found().lines.clone()
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn add(&mut self, is_kept: bool, line: impl FnOnce() -> String) {
        self.count += 1;
        if is_kept && self.lines.len() < Differences::MAX_KEPT {
            self.lines.push(line());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(unread: i64, head: i64, revision: i64) -> View {
        View { unread, head, revision: Some(revision) }
    }

    /// Five sent of which four are acknowledged, marked up to 2 and perhaps to 3, last seen at
    /// revision 7.
    fn busy() -> Inbox {
        let inbox = Inbox::new(1, 1);
        for _ in 0..5 {
            inbox.sending();
        }
        inbox.was_sent(4);
        inbox.marking(2);
        inbox.was_marked(2);
        inbox.marking(3);
        inbox.judge(Floor { head: 0, mark: 0, revision: 0 }, view(2, 4, 7)).expect("right");
        inbox
    }

    #[test]
    fn what_is_under_way_may_show_or_not() {
        let inbox = busy();
        for right in [view(2, 4, 7), view(1, 4, 8), view(3, 5, 8), view(2, 5, 9)] {
            assert_eq!(inbox.judge(inbox.floor(), right), Ok(()), "{right:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_seen() {
        let inbox = busy();
        let wrong = [
            (view(-1, 4, 8), "negative"),
            (view(5, 4, 8), "more unread than there are"),
            (view(1, 3, 8), "an acknowledged message is missing"),
            (view(4, 6, 8), "a message counted twice"),
            (view(3, 4, 8), "an acknowledged mark is missing"),
            (view(0, 4, 8), "a message that came after the mark is lost"),
            (view(2, 4, 6), "the revision went back"),
        ];
        for (view, why) in wrong {
            assert!(inbox.judge(inbox.floor(), view).is_err(), "{why}");
        }
    }

    #[test]
    fn a_late_answer_does_not_replace_a_newer_one() {
        let inbox = busy();
        inbox.remember(Seen { view: view(2, 5, 9), etag: "new".into() });
        inbox.remember(Seen { view: view(2, 4, 7), etag: "old".into() });
        assert_eq!(inbox.seen().expect("seen").etag, "new");
    }

    #[test]
    fn differences_are_all_counted_and_bounded_in_words() {
        let differences = Differences::default();
        for n in 0..100 {
            differences.add_line(n.to_string());
        }
        assert_eq!((differences.count(), differences.lines().len()), (100, Differences::MAX_KEPT));

        let (differences, inbox) = (Differences::default(), busy());
        for n in 0..100 {
            differences.add(&inbox, "poll", &n.to_string());
        }
        assert_eq!((differences.count(), differences.lines().len()), (100, Differences::MAX_KEPT_OF_INBOX));
    }
}
