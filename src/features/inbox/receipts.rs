//! Receipts of a direct chat: how far the peer's devices have fetched the user's messages, and how
//! far the peer has read them.
//!
//! Both are places in the peer's inbox: the cursors of its devices, and the chat's read position.
//! Each own message of the user names its number there (`other_seq`), and those numbers rise with
//! the user's own. So the last own message up to a place is found from the end of the chat.

use super::DirectReceiptsOut;
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::http::polling::Version;

/// How far the peer is, in its own inbox: the furthest cursor of its devices, and what it has read of
/// the chat.
static PLACES: Statement = Statement::one(
    "select coalesce((select max(v.seq) from devices v where v.user_id = $1), 0),
        coalesce((select d.read_seq from directs d where d.user_id = $1 and d.peer_id = $2), 0)",
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
);

/// The last own messages that have these numbers, or lower ones, in the peer's inbox.
static LAST_OWN: Statement = Statement::one(
    "select case when $3 > 0 then coalesce((
            select i.seq
            from inbox i
            where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.other_seq > 0 and i.other_seq <= $3 and i.own = 1
            order by i.seq desc
            limit 1
        ), 0) else 0 end,
        case when $4 > 0 then coalesce((
            select i.seq
            from inbox i
            where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.other_seq > 0 and i.other_seq <= $4 and i.own = 1
            order by i.seq desc
            limit 1
        ), 0) else 0 end",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("fetched", Type::Int), ("read", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&PLACES, &LAST_OWN]
}

/// Where a peer is in its own inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    fetched: i64,
    read: i64,
}

impl Places {
    /// What of it the user may see. The one place to ask whether the peer shares receipts.
    fn shared(self) -> Self {
        self
    }
}

/// Reads the receipts of a user's messages to a peer.
pub async fn read(db: &Db, user: UserId, peer: UserId) -> DbResult<DirectReceiptsOut> {
    let numbers = |numbers: &[i64]| numbers.iter().map(|value| Column::Int(vec![*value])).collect::<Vec<_>>();
    let places: Vec<(i64, i64)> = db.fetch(&PLACES, &numbers(&[peer.get(), user.get()])).await?;
    let (fetched, read) = places.first().copied().unwrap_or_default();
    let Places { fetched, read } = Places { fetched, read }.shared();
    let own: Vec<(i64, i64)> = db.fetch(&LAST_OWN, &numbers(&[user.get(), peer.get(), fetched, read])).await?;
    let (delivered_seq, read_seq) = own.first().copied().unwrap_or_default();
    Ok(DirectReceiptsOut { delivered_seq, read_seq })
}

/// The rows of two users decide it, so it is told by what it shows.
#[must_use]
pub fn version(receipts: DirectReceiptsOut) -> Version {
    let mut print = Fingerprint::default();
    print.add(receipts.delivered_seq);
    print.add(receipts.read_seq);
    Version { revision: 0, shared: print.finish() }
}
