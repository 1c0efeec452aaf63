//! Marking many entries as read: the rule over the rows of a batch.

use serde::{Deserialize, Serialize};

use super::Unread;
use super::entry::{Count, Entry};
use super::out::{CountsOut, NotificationCountOut};
use super::rows::NotificationRows;
use super::rules::{moment, set};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, NotificationId, UserId};
use crate::engine::lanes::Rows;
use crate::features::summary_part::Cap;

/// Which entries are marked as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    Named(Vec<NotificationId>),
    /// So many of those that are unread, the oldest first, of a type or of all.
    Oldest(Option<Name>, i64),
}

/// What one transaction of marking many answers inside; the route answers with the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) changed: i64,
    pub(super) revision: i64,
    pub(super) counts: CountsOut,
    /// Up to which seq to go on, where there may be more.
    pub(super) more_up_to: Option<i64>,
}

/// An entry with its id.
type Found = (NotificationId, Entry);

/// Marks entries as read, up to a seq.
pub(super) fn mark_many(rows: &mut Rows, user: UserId, which: &Which, up_to: i64, kept_from: i64, now: UnixMs) -> Result<Step, Problem> {
    let (these, more) = match which {
        Which::Named(ids) => (named(rows, user, ids, kept_from)?, false),
        Which::Oldest(kind, limit) => {
            let asked = Unread { user, kind: kind.clone(), up_to, rows: *limit };
            let of = rows.get::<NotificationRows>();
            let is_meant = |entry: &Entry| entry.is_unread() && kind.as_ref().is_none_or(|kind| kind.as_str() == &*entry.kind);
            let mine = of.of_user(user).filter(|(_, entry)| is_meant(entry)).map(|(id, entry)| (id, entry.clone()));
            (mine.collect(), of.is_unfinished(&asked))
        }
    };
    // Seqs that are given later are not meant by this request, which would else have no end.
    let up_to = up_to.min(rows.user(user).notification_seq);
    let mut changed = 0;
    for (id, before) in these.into_iter().filter(|(_, before)| before.seq <= up_to && before.is_unread()) {
        set(rows, user, id, Some(&before), Entry { read_at: moment(now), ..before.clone() });
        changed += 1;
    }
    let counted = |count: Count| NotificationCountOut::new(count, Cap::default());
    let counts = rows.get::<NotificationRows>().counts_of(user).into_iter().map(|(kind, count)| ((*kind).to_owned(), counted(count)));
    Ok(Step { changed, revision: rows.revision(user), counts: counts.collect(), more_up_to: more.then_some(up_to) })
}

/// These entries of a user; a problem names each that the user does not have.
fn named(rows: &Rows, user: UserId, ids: &[NotificationId], kept_from: i64) -> Result<Vec<Found>, Problem> {
    let (mut found, mut missing, mut deleted) = (Vec::with_capacity(ids.len()), Vec::new(), Vec::new());
    for (at, id) in ids.iter().enumerate() {
        match rows.get::<NotificationRows>().entry(user, *id) {
            None if id.get() < kept_from => deleted.push(at),
            None => missing.push(at),
            Some(entry) if entry.gone => deleted.push(at),
            Some(entry) => found.push((*id, entry)),
        }
    }
    let named = |code, faults: &[usize], detail: &'static str| {
        faults.iter().fold(Problem::new(code, "One or more notifications are unavailable. See errors."), |problem, at| {
            problem.at(format!("/ids/{at}"), detail)
        })
    };
    if !missing.is_empty() {
        return Err(named(Code::NotFound, &missing, "does not exist for this user"));
    }
    if !deleted.is_empty() {
        return Err(named(Code::Gone, &deleted, "was deleted or withdrawn, or has expired"));
    }
    Ok(found)
}
