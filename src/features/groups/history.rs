//! Which messages a page of a group's history holds. The rule is pure: it says which stretches to
//! read ([`Window`]), and makes the page of what was found there.
//!
//! What is kept of a group is one run up to its head. So a message of a stretch that was not found
//! has expired.

use super::Message;

/// The place that a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The oldest messages that are kept.
    Start,
    /// Messages after this number, in ascending order.
    After(i64),
    /// Messages before this number, in descending order.
    Before(i64),
    /// Messages on both sides of this number, in ascending order.
    Around(i64),
}

/// A stretch of messages to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The number before the first one.
    pub above: i64,
    /// The number of the last one.
    pub up_to: i64,
    /// How many to show.
    pub limit: i64,
}

impl Stretch {
    /// How many rows to read: one more than is shown tells whether there are more.
    #[must_use]
    pub fn rows(&self) -> i64 {
        self.limit + 1
    }
}

/// The stretches of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    place: Place,
    head: i64,
    /// To be read downwards from its end.
    pub older: Option<Stretch>,
    /// To be read upwards from its beginning.
    pub newer: Option<Stretch>,
}

/// Messages with their numbers.
pub type FoundMessages = Vec<(i64, Message)>;

/// A page of a group's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPage {
    /// In the order of the place that was asked for.
    pub messages: FoundMessages,
    /// Where newer messages go on.
    pub next_after: i64,
    /// Where older messages go on; None where they were not asked for.
    pub next_before: Option<i64>,
    /// Whether there are older messages; None where they were not asked for.
    pub has_older: Option<bool>,
    /// Whether there are newer messages than `next_after`.
    pub has_newer: bool,
    pub head: i64,
}

/// The page begins with a message that has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryExpired;

impl Window {
    /// The window of a reader who sees what comes after `since`, in a group with this head.
    #[must_use]
    pub fn new(place: Place, limit: u32, since: i64, head: i64) -> Self {
        let limit = i64::from(limit);
        let newer = |above: i64, limit| Some(Stretch { above: above.max(since), up_to: head, limit });
        let older = |before: i64, limit| Some(Stretch { above: since, up_to: (before - 1).min(head), limit });
        let (older, newer) = match place {
            Place::Start => (None, newer(0, limit)),
            Place::After(after) => (None, newer(after, limit)),
            Place::Before(before) => (older(before, limit), None),
            Place::Around(seq) => {
                let seq = seq.min(head + 1).max(since + 1);
                (older(seq, limit / 2), newer(seq - 1, limit - limit / 2))
            }
        };
        Self { place, head, older, newer }
    }

    /// The page of what was found: older messages downwards, newer ones upwards, each with one row
    /// more than is shown where there are more.
    ///
    /// # Errors
    /// Where the page would begin with a message that has expired.
    pub fn page(self, mut older: FoundMessages, mut newer: FoundMessages) -> Result<HistoryPage, HistoryExpired> {
        if self.has_expired(&older, &newer) {
            return Err(HistoryExpired);
        }
        let has_older = self.older.map(|stretch| cut(&mut older, stretch.limit));
        let has_newer = self.newer.map(|stretch| cut(&mut newer, stretch.limit));
        // A stretch that ends at the head leaves no gap to what is sent later.
        let edge = match (self.newer, self.older) {
            (Some(stretch), _) => stretch.above.max(stretch.up_to),
            (None, Some(stretch)) => stretch.above.max(stretch.up_to),
            (None, None) => self.head,
        };
        let next_after = newer.last().or_else(|| older.first().filter(|_| self.newer.is_none())).map_or(edge, |(seq, _)| *seq);
        let oldest = older.last().or_else(|| newer.first()).map(|(seq, _)| *seq);
        let next_before = self.older.map(|stretch| oldest.unwrap_or(stretch.up_to.max(stretch.above) + 1));
        if self.newer.is_some() {
            older.reverse();
        }
        older.append(&mut newer);
        let has_newer = has_newer.unwrap_or(next_after < self.head);
        Ok(HistoryPage { messages: older, next_after, next_before, has_older, has_newer, head: self.head })
    }

    fn has_expired(&self, older: &FoundMessages, newer: &FoundMessages) -> bool {
        // Without a row, the whole stretch has expired.
        let misses_first = |stretch: Stretch| newer.first().map_or(stretch.up_to + 1, |(seq, _)| *seq) > stretch.above + 1;
        match (self.place, self.older, self.newer) {
            (Place::After(_) | Place::Around(_), _, Some(newer)) => misses_first(newer),
            // Who begins at the end did not ask for a message that was there.
            (Place::Before(before), Some(stretch), _) => before <= self.head && older.is_empty() && stretch.up_to > stretch.above,
            _ => false,
        }
    }
}

/// Cuts off what is not shown; whether there was anything.
fn cut(found: &mut FoundMessages, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > limit;
    found.truncate(limit);
    has_more
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::clock::UnixMs;

    fn message(seq: i64) -> (i64, Message) {
        let (sender, client_id) = (1.try_into().unwrap(), "a".parse().unwrap());
        (seq, Message { sender: Some(sender), client_id, content: String::new(), sent_at: UnixMs(0), recalled: false, written: false })
    }

    fn place() -> impl Strategy<Value = Place> {
        let seq = 0..14_i64;
        prop_oneof![
            Just(Place::Start),
            seq.clone().prop_map(Place::After),
            (1..14_i64).prop_map(Place::Before),
            (1..14_i64).prop_map(Place::Around)
        ]
    }

    proptest! {
        #[test]
        fn a_page_is_a_part_of_what_is_kept(place in place(), limit in 1..6_u32, since in 0..12_i64, kept in 1..12_i64, head in 0..11_i64) {
            let (since, kept) = (since.min(head), kept.min(head + 1));
            let window = Window::new(place, limit, since, head);
            // What the statements read.
            let all = |stretch: Option<Stretch>| stretch.map_or(Vec::new(), |of| (of.above + 1..=of.up_to).filter(|seq| *seq >= kept).collect::<Vec<_>>());
            let take = |seqs: Vec<i64>, stretch: Option<Stretch>| seqs.into_iter().take(stretch.map_or(0, |of| usize::try_from(of.rows()).unwrap())).map(message).collect();
            let mut down = all(window.older);
            down.reverse();
            let page = window.page(take(down, window.older), take(all(window.newer), window.newer));

            let visible: Vec<i64> = (since + 1..=head).filter(|seq| *seq >= kept).collect();
            let first = |seqs: Vec<i64>| seqs.into_iter().take(limit as usize).collect::<Vec<_>>();
            let half = limit as usize / 2;
            let (wanted, begins_at) = match place {
                Place::Start => (first(visible.clone()), None),
                Place::After(after) => (first(visible.iter().copied().filter(|seq| *seq > after).collect()), Some(after.max(since) + 1)),
                Place::Before(before) => {
                    (first(visible.iter().rev().copied().filter(|seq| *seq < before).collect()), Some(before - 1).filter(|_| before <= head))
                }
                Place::Around(seq) => {
                    let at = visible.partition_point(|of| *of < seq);
                    let to = (at + limit as usize - half).min(visible.len());
                    (visible[at.saturating_sub(half)..to].to_vec(), Some(seq.max(since + 1)))
                }
            };
            let expired = begins_at.is_some_and(|seq| seq > since && seq <= head && seq < kept);
            prop_assert_eq!(page.is_err(), expired);
            let Ok(page) = page else { return Ok(()) };
            let seqs: Vec<_> = page.messages.iter().map(|(seq, _)| *seq).collect();
            prop_assert_eq!(&seqs, &wanted);
            let (lowest, highest) = (seqs.iter().min().copied(), seqs.iter().max().copied());
            prop_assert_eq!(page.has_newer, page.next_after < head);
            if let Some(highest) = highest {
                prop_assert_eq!(page.next_after, highest);
            }
            // Nothing visible lies between the page and where it says to go on.
            let next_before = page.next_before.unwrap_or(lowest.unwrap_or(0));
            for seq in visible.iter().copied().filter(|seq| !seqs.contains(seq)) {
                let skipped = seq <= page.next_after && seq >= next_before && !matches!(place, Place::Start | Place::After(_));
                prop_assert!(!skipped, "{} of {:?}", seq, page);
            }
            let older = lowest.or(page.next_before).is_some_and(|lowest| visible.iter().any(|seq| *seq < lowest));
            prop_assert_eq!(page.has_older.unwrap_or(older), older);
        }
    }
}
