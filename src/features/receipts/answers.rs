//! What the routes of receipts answer, made from the memberships of a group.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::bitmaps::{ReceiptBitmapsOut, bitmaps};
use super::store::Sent;
use super::{Count, Recipient, Spans};
use crate::base::error::Error;
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::UserId;
use crate::http::pages::{self, PageOut, Position, Wanted};
use crate::http::polling::Version;

/// The recipients to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    /// Those who have read the message.
    Read,
    /// Those who have not.
    Unread,
}

/// Receipt counts of a message. `read_count` and `unread_count` always add up to `recipients`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptsOut {
    /// The message.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// The sender.
    pub sender_id: UserId,
    /// The number of members when the message was sent, without the sender.
    #[schema(minimum = 0, example = 199)]
    pub recipients: i64,
    /// The number of recipients who have read the message.
    #[schema(minimum = 0, example = 120)]
    pub read_count: i64,
    /// The number of recipients who have not read the message.
    #[schema(minimum = 0, example = 79)]
    pub unread_count: i64,
    /// The highest ordinal when the message was sent.
    #[schema(minimum = 1, example = 210)]
    pub max_ordinal: i64,
}

/// A recipient of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecipientOut {
    /// The user; omitted if that user was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub user_id: Option<UserId>,
    /// The member's number in the group.
    #[schema(minimum = 1, example = 7)]
    pub ordinal: i64,
    /// Whether the user has left the group since.
    pub left: bool,
}

/// Receipts of a message: counts, a list of recipients, or bitmaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ReceiptsAnswer {
    /// By default.
    Counts(ReceiptsOut),
    /// With `members`.
    Members(PageOut<RecipientOut>),
    /// With `format=bitmap`.
    Bitmaps(ReceiptBitmapsOut),
}

/// Receipt counts of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScreenfulItemOut {
    /// The message.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// The number of recipients who have read it.
    #[schema(minimum = 0, example = 120)]
    pub read_count: i64,
    /// The number of recipients who have not read it.
    #[schema(minimum = 0, example = 79)]
    pub unread_count: i64,
}

/// Receipt counts of several messages, in order, without recalled messages. Members see only their
/// own messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScreenfulOut {
    /// One item for each message.
    pub items: Vec<ScreenfulItemOut>,
}

/// What is shown of a message's receipts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    Counts,
    Members(Members, Wanted),
    Bitmaps,
}

/// What a message or an erased sender that is no longer shown adds to a revision: more than all who can have read
/// what is shown.
const GONE: i64 = 1 << 40;

/// How new an answer is. Made from what is shown alone, as tags must not tell of more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age {
    /// What its tag is made from. The revision goes up with each member who has read a message, and so tells a node that
    /// is behind. It goes down where a member begins to hide what was read out of order.
    pub(crate) version: Version,
    /// What members can have read at most of what is shown and of what is gone.
    most: i64,
}

impl Age {
    fn new(revision: i64, most: i64, numbers: impl IntoIterator<Item = i64>) -> Self {
        let mut shown = Fingerprint::default();
        numbers.into_iter().for_each(|number| shown.add(number));
        Self { version: Version { revision, shared: shown.finish() }, most }
    }

    /// What a client claims that has seen an answer of this revision; None where this answer is as new, or no answer
    /// can be that new.
    pub(super) fn claim(self, seen: i64) -> Option<Claim> {
        let (revision, reads) = (self.version.revision, seen % GONE);
        if reads > self.most {
            None
        } else if seen > revision {
            Some(Claim::Newer)
        } else {
            (reads > revision % GONE).then_some(Claim::ReadMore)
        }
    }
}

/// In what the answer that a client claims to have seen is ahead of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// In its revision.
    Newer,
    /// In what members have read, though less is gone. Who recalled it may have taken that away, or another node.
    ReadMore,
}

/// The answer about a message, and how new it is.
pub(super) fn answer(spans: &Spans, seq: i64, sender: UserId, shown: Shown, most: i64) -> Result<(ReceiptsAnswer, Age), Error> {
    let count = spans.counts(seq, &[Some(sender)]).first().copied().unwrap_or_default();
    match shown {
        Shown::Counts => {
            let unread_count = count.recipients - count.read;
            let max_ordinal = spans.max_ordinal(seq);
            let (recipients, read_count) = (count.recipients, count.read);
            let out = ReceiptsOut { seq, sender_id: sender, recipients, read_count, unread_count, max_ordinal };
            Ok((ReceiptsAnswer::Counts(out), Age::new(read_count, recipients, [recipients, read_count])))
        }
        Shown::Members(members, wanted) => {
            let rows = usize::try_from(wanted.rows()).unwrap_or(usize::MAX);
            let recipients = spans.recipients(seq, sender, members == Members::Read, wanted.after_id());
            let recipients: Vec<_> = recipients.take(rows).collect();
            let position = |of: &Recipient| Position { at: 0, id: of.ordinal };
            let out = |of: &Recipient| RecipientOut { user_id: of.user, ordinal: of.ordinal, left: of.left };
            let page = pages::page(wanted, &recipients, position, out);
            let numbers = page.items.iter().flat_map(|of| [of.ordinal, i64::from(of.left), i64::from(of.user_id.is_some())]);
            let numbers = numbers.chain([i64::from(page.next_cursor.is_some())]);
            // A membership ends, and its member is erased: the sender's, too.
            let age = Age::new(count.read + spans.ended(seq), 3 * (count.recipients + 1), numbers);
            Ok((ReceiptsAnswer::Members(page), age))
        }
        Shown::Bitmaps => {
            let out = bitmaps(spans, seq, sender, most)?;
            let age = Age::new(count.read, count.recipients, out.numbers());
            Ok((ReceiptsAnswer::Bitmaps(out), age))
        }
    }
}

/// The answer about a screenful of these messages, and how new it is. A user is shown the own ones.
pub(crate) fn screenful(spans: &Spans, from: i64, to: i64, sent: &[Sent], user: Option<UserId>) -> (ScreenfulOut, Age) {
    let mut by_seq = vec![None; usize::try_from(to - from + 1).unwrap_or(0)];
    let mut gone = Vec::new();
    for (seq, sender, recalled) in sent.iter().filter(|(_, sender, _)| user.is_none() || user == *sender) {
        let Ok(at) = usize::try_from(seq - from) else { continue };
        if *recalled || sender.is_none() {
            gone.push(at);
        } else if let Some(place) = by_seq.get_mut(at) {
            *place = *sender;
        }
    }
    let counts = spans.counts(from, &by_seq);
    let read_of_gone: i64 = gone.iter().filter_map(|at| counts.get(*at)).map(|count| count.recipients).sum();
    let shown = (from..).zip(by_seq).zip(counts).filter(|((_, sender), _)| sender.is_some());
    let item = |((seq, _), count): ((i64, Option<UserId>), Count)| ScreenfulItemOut {
        seq,
        read_count: count.read,
        unread_count: count.recipients - count.read,
    };
    let items: Vec<_> = shown.map(item).collect();
    let [read, unread] = items.iter().fold([0, 0], |[read, unread], of| [read + of.read_count, unread + of.unread_count]);
    let revision = GONE.saturating_mul(i64::try_from(gone.len()).unwrap_or(i64::MAX)).saturating_add(read);
    let age = Age::new(revision, read + unread + read_of_gone, items.iter().flat_map(|of| [of.seq, of.read_count, of.unread_count]));
    (ScreenfulOut { items }, age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recall_hides_no_claim_to_have_seen_more() {
        let age = |gone: i64, reads| Age::new(gone * GONE + reads, 5, []);
        let claims = [0, 3, 4, 5, 6, GONE + 3, GONE + 4, GONE + 6].map(|seen| age(1, 3).claim(seen));
        let (newer, more) = (Some(Claim::Newer), Some(Claim::ReadMore));
        assert_eq!(claims, [None, None, more, more, None, None, newer, None]);
        assert_eq!([age(0, 3).claim(3), age(0, 3).claim(GONE)], [None, newer]);
    }
}
