//! Receipts of a direct chat: how far the peer's devices have fetched the user's messages, and how
//! far the peer has read them.
//!
//! Both are places in the peer's inbox: the cursors of its devices, and the chat's read position.
//! Each own message of the user names its number there (`other_seq`), and those numbers rise with
//! the user's own. So the last own message up to a place is found from the end of the chat.
//!
//! Rows that the peer hides are passed over. A switch between sharing and hiding is one write to the
//! peer's settings, however many chats the peer has. Each chat follows it when its read position
//! rises ([`Hidden::follow`]), and here. Until then the position has been the same since before the
//! switch, so it says where hiding begins.

use super::DirectReceiptsOut;
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::{MAX_HEAD, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::{Hidden, UserSettings};
use crate::http::polling::Version;

/// How far the peer is, in its own inbox: the furthest cursor of its devices, what it has read of the
/// chat, and what of that it hides: the rows of the chat, and the peer's settings.
static PLACES: Statement = Statement::one(
    "select coalesce((select max(v.seq) from devices v where v.user_id = $1 and v.seq >= 0), 0),
        coalesce((select d.read_seq from directs d where d.user_id = $1 and d.peer_id = $2), 0),
        coalesce((select d.hidden from directs d where d.user_id = $1 and d.peer_id = $2), ''),
        coalesce((select u.settings from users u where u.user_id = $1), '')",
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
);

/// The last own messages before a row that have these numbers, or lower ones, in the peer's inbox: for
/// what the peer's devices have fetched, and for what the peer has read. With their own numbers.
static LAST_OWN: Statement = Statement::one(
    "select 0, f.seq, f.other_seq
    from (
        select i.seq, i.other_seq
        from inbox i
        where $3 > 0 and i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.other_seq > 0 and i.other_seq <= $3 and i.own = 1
            and i.seq < $5
        order by i.seq desc
        limit 1
    ) f
    union all
    select 1, r.seq, r.other_seq
    from (
        select i.seq, i.other_seq
        from inbox i
        where $4 > 0 and i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.other_seq > 0 and i.other_seq <= $4 and i.own = 1
            and i.seq < $5
        order by i.seq desc
        limit 1
    ) r",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("fetched", Type::Int), ("read", Type::Int), ("before", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&PLACES, &LAST_OWN]
}

/// A message as both sides number it; zeros where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Own {
    seq: i64,
    /// In the peer's inbox.
    other_seq: i64,
}

/// The last own messages before a row that the peer's devices have fetched and the peer has read, by
/// the numbers in the peer's inbox.
async fn last_own(db: &Db, user: UserId, peer: UserId, [fetched, read]: [i64; 2], before: i64) -> DbResult<[Own; 2]> {
    let columns = [user.get(), peer.get(), fetched, read, before].map(|value| Column::Int(vec![value]));
    let mut found = [Own::default(); 2];
    for (which, seq, other_seq) in db.fetch::<(i32, i64, i64)>(&LAST_OWN, &columns).await? {
        let [of_fetched, of_read] = &mut found;
        *(if which == 0 { of_fetched } else { of_read }) = Own { seq, other_seq };
    }
    Ok(found)
}

/// Reads the receipts of a user's messages to a peer. What the peer has read is the last own message
/// that it has read and does not hide.
pub async fn read(db: &Db, user: UserId, peer: UserId) -> DbResult<DirectReceiptsOut> {
    let columns = [peer.get(), user.get()].map(|value| Column::Int(vec![value]));
    let places: Vec<(i64, i64, String, String)> = db.fetch(&PLACES, &columns).await?;
    let (fetched, read, hidden, settings) = places.into_iter().next().unwrap_or_default();
    let mut hidden = Hidden::from_row(&hidden);
    hidden.follow(UserSettings::from_row(&settings).switches(), read);
    let [delivered, mut last] = last_own(db, user, peer, [fetched, hidden.last_shown(read)], MAX_HEAD).await?;
    // Each round passes one run of hidden rows, which has a bound.
    while hidden.hides(last.other_seq) {
        [_, last] = last_own(db, user, peer, [0, hidden.last_shown(last.other_seq)], last.seq).await?;
    }
    Ok(DirectReceiptsOut { delivered_seq: delivered.seq, read_seq: last.seq })
}

/// The rows of two users decide it, so it is told by what it shows.
#[must_use]
pub fn version(receipts: DirectReceiptsOut) -> Version {
    let mut print = Fingerprint::default();
    print.add(receipts.delivered_seq);
    print.add(receipts.read_seq);
    Version { revision: 0, shared: print.finish() }
}
