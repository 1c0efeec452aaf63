//! Pages of a direct chat's messages, as the user's own inbox has them.

use super::direct_lists::{after, before, kept};
use super::{DirectMessagesOut, ItemOut};
use crate::base::error::{Code, Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Db, in_time};
use crate::failpoint;

/// The place that a page is asked for, by rows of the user's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The oldest messages that are kept.
    Start,
    /// Messages after this row, in ascending order.
    After(i64),
    /// Messages before this row, in descending order.
    Before(i64),
    /// Messages on both sides of this row, in ascending order.
    Around(i64),
}

impl Side {
    /// Whether the row with which the page may begin, in its direction, has expired. Who begins at the end, or
    /// beyond it, did not ask for a row that was there.
    fn has_expired(self, earliest: i64, head: i64) -> bool {
        match self {
            Self::Start => false,
            Self::After(seq) => seq < head && seq.saturating_add(1) < earliest,
            Self::Before(seq) => (2..=head).contains(&seq) && seq - 1 < earliest,
            Self::Around(seq) => seq <= head && seq < earliest,
        }
    }
}

/// What was found on both sides of a place, each with one row more than is shown where there are
/// more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    /// Downwards.
    older: Vec<ItemOut>,
    /// Upwards.
    newer: Vec<ItemOut>,
    head: i64,
}

/// Reads a page.
///
/// # Errors
/// 410 where the row at which it begins has expired, 503 where the database is away.
pub(super) async fn page(db: &Db, user: UserId, peer: UserId, side: Side, limit: i64) -> Result<DirectMessagesOut> {
    let (older_limit, newer_limit) = match side {
        Side::Start | Side::After(_) => (0, limit),
        Side::Before(_) => (limit, 0),
        Side::Around(_) => (limit / 2, limit - limit / 2),
    };
    // Read first: a message that is sent meanwhile is behind the place where the reader goes on.
    let (_, head) = in_time(kept(db, user)).await?;
    let (older, newer) = match side {
        Side::Start => (Vec::new(), in_time(after(db, user, peer, 0, newer_limit + 1)).await?),
        Side::After(seq) => (Vec::new(), in_time(after(db, user, peer, seq, newer_limit + 1)).await?),
        Side::Before(seq) => (in_time(before(db, user, peer, seq, older_limit + 1)).await?, Vec::new()),
        Side::Around(seq) => {
            (in_time(before(db, user, peer, seq, older_limit + 1)).await?, in_time(after(db, user, peer, seq - 1, newer_limit + 1)).await?)
        }
    };
    failpoint("inbox::history_read");
    // Read last: what is kept by then was not missing before.
    let (earliest, _) = in_time(kept(db, user)).await?;
    if side.has_expired(earliest, head) {
        let detail = format!("Inbox items before {earliest} have expired.");
        return Err(Problem::new(Code::CursorExpired, detail).kept_from(earliest).into());
    }
    Ok(Found { older, newer, head }.shown(side, older_limit, newer_limit))
}

impl Found {
    fn shown(self, side: Side, older_limit: i64, newer_limit: i64) -> DirectMessagesOut {
        let Self { mut older, mut newer, head } = self;
        let (has_older, has_newer) = (cut(&mut older, older_limit), cut(&mut newer, newer_limit));
        let [newest, oldest] = [newer.last().or(older.first()), older.last().or(newer.first())].map(|item| item.map(|item| item.seq));
        // Where the next pages begin if this one has no message.
        let (end, begin) = match side {
            Side::Start => (head, None),
            Side::After(seq) => (seq.max(head), None),
            Side::Before(seq) => (seq.saturating_sub(1).min(head), Some(seq)),
            // Messages that come later may be before a place beyond the head, and were not shown.
            Side::Around(seq) => (head, Some(seq)),
        };
        let (next_after, next_before) = (newest.unwrap_or(end), begin.map(|begin| oldest.unwrap_or(begin)));
        let is_before = matches!(side, Side::Before(_));
        let (has_more, has_older) = if is_before { (has_older, None) } else { (has_newer, next_before.map(|_| has_older)) };
        if !is_before {
            older.reverse();
        }
        older.append(&mut newer);
        // A message that was sent since may be among these.
        let head = head.max(newest.unwrap_or(0));
        DirectMessagesOut { items: older, next_after, next_before, has_more, has_older, head }
    }
}

/// Cuts off what is not shown; whether there was anything.
fn cut(found: &mut Vec<ItemOut>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > limit;
    found.truncate(limit);
    has_more
}
