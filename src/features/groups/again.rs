//! Unread again: a member's own view over how far it has read.
//!
//! Marks never go back, and receipts are made of them. So what is unread again is a second
//! [`Reading`] beside the first, which numbers are counted from while it is there. It is the mark as
//! if it stood before a message, with the member's own messages as single ones that are read. Both
//! take every later read, so the second ends when it is at the head or says the same as the first.

use super::members::member;
use super::messages::{no_message, not_there, scattered, step};
use super::rows::GroupRows;
use super::{MAX_MENTION_RUNS, MAX_UNREAD_AGAIN, Membership, TooScattered};
use crate::base::error::{Code, Problem};
use crate::base::ids::{GroupId, UserId};
use crate::engine::lanes::{Answer, Rows};
use crate::engine::marks::StreamKey;

impl Membership {
    /// All up to this message is read. Returns whether anything changed.
    pub fn read_up_to(&mut self, seq: i64, head: i64) -> bool {
        let is_new = self.reading.read_up_to(seq);
        let is_less = self.again.as_mut().is_some_and(|again| again.read_up_to(seq));
        self.settle_again(head);
        is_new || is_less
    }

    /// This message alone is read. Returns whether anything changed.
    ///
    /// # Errors
    /// [`TooScattered`].
    pub fn read_one(&mut self, seq: i64, head: i64) -> Result<bool, TooScattered> {
        let is_new = self.reading.read_one(seq)?;
        let is_less = self.again.as_mut().map_or(Ok(false), |again| again.read_one(seq))?;
        self.settle_again(head);
        Ok(is_new || is_less)
    }

    /// A message mentions the member by name.
    pub fn mention(&mut self, seq: i64) {
        self.mentions.insert(seq, seq);
        while self.mentions.runs() > MAX_MENTION_RUNS {
            self.mentions.drop_first();
        }
    }

    /// Messages from this one on show as unread, aside from the member's own. Those that name the
    /// member mention it again. Returns whether anything changed.
    ///
    /// # Errors
    /// [`TooScattered`].
    pub fn unread_from(
        &mut self,
        from: i64,
        own: impl IntoIterator<Item = i64>,
        naming: impl IntoIterator<Item = i64>,
        head: i64,
    ) -> Result<bool, TooScattered> {
        let again = Some(self.shown().unread_from(from, own)?);
        let before = std::mem::replace(&mut self.again, again);
        for seq in naming {
            self.mention(seq);
        }
        self.settle_again(head);
        Ok(self.again != before)
    }

    /// Ends what is unread again where nothing is, and forgets the mentions that were read.
    fn settle_again(&mut self, head: i64) {
        self.again.take_if(|again| again.read_seq() >= head || *again == self.reading);
        let mark = self.shown().read_seq();
        self.mentions.drop_up_to(mark);
    }
}

/// The messages of others from `from` on are unread again to a member.
pub(super) fn unread_again(rows: &mut Rows, user: UserId, id: GroupId, from: i64) -> Result<Answer, Problem> {
    let (span, mut of) = member(rows, id, user)?;
    if from <= of.from_seq {
        return Err(no_message(id, from));
    }
    rows.get::<GroupRows>().message(id, from).ok_or_else(|| not_there(rows, id, from))?;
    if of.reading.read_seq() - from >= MAX_UNREAD_AGAIN {
        let detail = format!("At most {MAX_UNREAD_AGAIN} messages that were read can be unread again.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    let head = rows.head(&StreamKey::group(id)).head;
    let own: Vec<_> = rows.get::<GroupRows>().own_from(id, user, from).collect();
    let naming: Vec<_> = rows.get::<GroupRows>().naming_from(id, user, from).collect();
    if of.unread_from(from, own, naming, head).map_err(scattered)? {
        rows.get_mut::<GroupRows>().set_membership(user, id, span, of.clone());
        rows.revise(user, |_| {});
    }
    Ok(Answer::ok(step(rows, id, user, &of)))
}
