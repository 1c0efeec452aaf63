//! Whose receipts a caller may see, and what a poll that waits remembers of that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Watch;
use super::store::{self, Terms};
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::db::Db;
use crate::features::groups::http::GroupPath;
use crate::features::groups::{expired, lists, no_member, unknown};

fn disabled(group: GroupId) -> Problem {
    Problem::new(Code::ReceiptsDisabled, format!("Receipts are disabled in group {group}."))
}

/// What a request found out about its messages. A poll that waits asks again only where that may be
/// otherwise by now.
pub(super) struct Checked<T> {
    /// Tells of changes; None for a request that does not wait.
    watch: Option<Watch>,
    found: Mutex<Option<(Terms, Arc<T>)>>,
}

impl<T> Checked<T> {
    pub(super) fn new(watch: Option<Watch>) -> Self {
        Self { watch, found: Mutex::default() }
    }

    pub(super) fn changes(&self) -> Option<watch::Receiver<()>> {
        self.watch.as_ref().map(|watch| watch.changes.clone())
    }

    fn found(&self) -> MutexGuard<'_, Option<(Terms, Arc<T>)>> {
        // Every change is one step, so a poisoned lock guards whole data.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found before, where it still holds.
    pub(super) fn known(&self) -> Option<Arc<T>> {
        let now = self.watch.as_ref()?.terms()?;
        self.found().as_ref().filter(|(terms, _)| now.allow_as(terms)).map(|(_, found)| Arc::clone(found))
    }

    /// Asks. The terms come first: what changes after them is found out later.
    pub(super) async fn ask(&self, db: &Db, group: GroupId, check: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        let terms = if self.watch.is_some() { store::terms(db, group).await? } else { None };
        let found = Arc::new(check.await?);
        *self.found() = terms.map(|terms| (terms, Arc::clone(&found)));
        Ok(found)
    }
}

/// Who sent a message whose receipts the caller may see (its sender, also one who has left since,
/// or a service), and how many messages there are.
pub(super) async fn sender_of(db: &Db, path: &GroupPath, seq: i64) -> Result<(UserId, i64)> {
    let user = path.user();
    let view = lists::view(db, path.group, user).await?.ok_or_else(|| unknown(path.group))?;
    let sent = store::senders(db, path.group, seq, seq).await?.first().copied();
    let is_own = |sender: UserId| user.is_none_or(|user| user == sender);
    let found = match (user, sent) {
        (_, Some((_, sender, false))) if is_own(sender) => sender,
        // Its sender knows of it, also after leaving.
        (_, Some((_, sender, true))) if is_own(sender) => return Err(no_message(path.group, seq)),
        (Some(user), _) if view.since.is_none() => return Err(no_member(path.group, user).into()),
        (Some(_), Some((.., false))) if view.since.is_some_and(|since| seq > since) => {
            return Err(Problem::new(Code::Forbidden, "Only the sender of a message and services can read its receipts.").into());
        }
        // Up to the head nothing is left out but what has expired.
        (_, None) if seq <= view.head && view.since.is_none_or(|since| seq > since) => {
            return Err(expired(path.group, lists::earliest(db, path.group).await?).into());
        }
        _ => return Err(no_message(path.group, seq)),
    };
    if view.group.receipts { Ok((found, view.head.max(seq))) } else { Err(disabled(path.group).into()) }
}

fn no_message(group: GroupId, seq: i64) -> Error {
    Problem::new(Code::NotFound, format!("Message {seq} of group {group} does not exist or was recalled.")).into()
}

/// Who sent each message of a screenful that is still there, and how many messages there are.
pub(super) async fn senders_of(db: &Db, path: &GroupPath, from: i64, to: i64) -> Result<(Vec<(i64, UserId)>, i64)> {
    let view = path.view(db).await?;
    if !view.group.receipts {
        return Err(disabled(path.group).into());
    }
    let sent = store::senders(db, path.group, from, to).await?;
    if from <= view.head && sent.first().is_none_or(|(seq, ..)| *seq > from) {
        return Err(expired(path.group, lists::earliest(db, path.group).await?).into());
    }
    let head = view.head.max(sent.last().map_or(0, |(seq, ..)| *seq));
    Ok((sent.into_iter().filter(|(.., recalled)| !recalled).map(|(seq, sender, _)| (seq, sender)).collect(), head))
}
