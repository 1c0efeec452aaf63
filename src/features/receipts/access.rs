//! Whose receipts a caller may see.

use super::store::{self, Sent};
use super::{Known, Receipts};
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::features::groups::http::GroupPath;
use crate::features::groups::{expired, lists, no_member};

fn disabled(group: GroupId) -> Problem {
    Problem::new(Code::ReceiptsDisabled, format!("Receipts are disabled in group {group}."))
}

/// Refuses a user who is no member, and has not sent this message, before the memberships of the group are read: they
/// are many rows. Where they are kept, what comes later refuses the same.
pub(super) async fn admit(receipts: &Receipts, path: &GroupPath, seq: Option<i64>) -> Result<()> {
    let Some(user) = path.user().filter(|_| !receipts.has(path.group)) else { return Ok(()) };
    if membership(receipts, path.group, user).await?.is_some() {
        return Ok(());
    }
    let sent = match seq {
        Some(seq) => receipts.turns.read(store::senders(&receipts.db, path.group, seq, seq)).await?,
        None => Vec::new(),
    };
    let is_own = sent.iter().any(|(_, sender, _)| *sender == Some(user));
    if is_own { Ok(()) } else { Err(no_member(path.group, user).into()) }
}

/// The head at which a user's membership began, by the database; None where there is none.
async fn membership(receipts: &Receipts, group: GroupId, user: UserId) -> Result<Option<i64>> {
    let _turn = receipts.turns.take().await?;
    Ok(lists::view_known(&receipts.db, group, Some(user)).await?.since)
}

/// The same by what is known. Who has joined just now, through another node, is found in the database.
async fn member_since(receipts: &Receipts, known: &Known, group: GroupId, user: UserId) -> Result<Option<i64>> {
    match known.spans.member_since(user) {
        Some(since) => Ok(Some(since)),
        None => membership(receipts, group, user).await,
    }
}

/// Who sent a message whose receipts the caller may see: its sender, also one who has left since,
/// or a service.
pub(super) async fn sender_of(receipts: &Receipts, known: &Known, path: &GroupPath, seq: i64) -> Result<UserId> {
    let (group, user) = (path.group, path.user());
    let sent = receipts.senders(group, known, seq, seq).await?.first().copied();
    let is_own = |sender: Option<UserId>| user.is_none_or(|user| Some(user) == sender);
    let found = match sent {
        Some((_, Some(sender), false)) if is_own(Some(sender)) => sender,
        // Its sender knows of it, also after leaving.
        Some((_, sender, true)) if is_own(sender) => return Err(no_message(group, seq)),
        _ => return Err(refused(receipts, known, path, seq, sent).await?),
    };
    if known.terms.receipts { Ok(found) } else { Err(disabled(group).into()) }
}

/// Why a caller does not see the receipts of a message that is not their own or not there.
async fn refused(receipts: &Receipts, known: &Known, path: &GroupPath, seq: i64, sent: Option<Sent>) -> Result<Error> {
    let (group, user) = (path.group, path.user());
    let since = match user {
        Some(user) => match member_since(receipts, known, group, user).await? {
            Some(since) => since,
            None => return Ok(no_member(group, user).into()),
        },
        None => 0,
    };
    Ok(match sent {
        Some((.., false)) if seq > since => {
            Problem::new(Code::Forbidden, "Only the sender of a message and services can read its receipts.").into()
        }
        // Up to the head nothing is left out but what has expired.
        None if seq <= known.terms.head && seq > since => expired(group, lists::earliest(&receipts.db, group).await?).into(),
        _ => no_message(group, seq),
    })
}

fn no_message(group: GroupId, seq: i64) -> Error {
    Problem::new(Code::NotFound, format!("Message {seq} of group {group} does not exist or was recalled.")).into()
}

/// Who sent each message of a screenful.
pub(super) async fn senders_of(receipts: &Receipts, known: &Known, path: &GroupPath, from: i64, to: i64) -> Result<Vec<Sent>> {
    let group = path.group;
    if let Some(user) = path.user()
        && member_since(receipts, known, group, user).await?.is_none()
    {
        return Err(no_member(group, user).into());
    }
    if !known.terms.receipts {
        return Err(disabled(group).into());
    }
    let sent = receipts.senders(group, known, from, to).await?;
    if from <= known.terms.head && sent.first().is_none_or(|(seq, ..)| *seq > from) {
        return Err(expired(group, lists::earliest(&receipts.db, group).await?).into());
    }
    Ok(sent)
}
