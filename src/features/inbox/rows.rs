//! The rows of `inbox` and `directs` in a batch. All of them belong to one user, whose own row is
//! locked, so they are locked with it.

use std::collections::HashMap;

use futures_util::future::try_join4;

use super::needs::ChatKey;
use super::{Direct, InboxNeeds, Item, Of, Oldest, Sent, SentKey, store};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};

#[derive(Debug, Default)]
pub struct InboxRows {
    /// Those that the batch makes: no other is loaded.
    rows: Table<(UserId, i64), Option<(Item, UnixMs)>>,
    sent: Table<SentKey, Option<Sent>>,
    directs: Table<ChatKey, Direct>,
    /// Whether the user blocks the peer, where the chat is loaded. The row is that of `blocks`,
    /// which is written elsewhere.
    blocked: Table<ChatKey, bool>,
    empty_chats: Table<UserId, i64>,
    /// Up to which seq rows are to go.
    gone: Table<UserId, i64>,
    places: HashMap<(UserId, UserId, i64), i64>,
    oldest: HashMap<UserId, Vec<Oldest>>,
}

impl InboxRows {
    /// Puts a row into an inbox.
    pub(super) fn put(&mut self, user: UserId, seq: i64, item: Item, now: UnixMs) {
        if let Of::Direct { peer, client, sent_at, .. } = &item.of {
            self.sent.set(&(user, *peer, item.own, client.clone()), Some(Sent { seq, at: *sent_at }));
        }
        self.rows.set(&(user, seq), Some((item, now)));
    }

    /// Where a message with this id is, if it was sent before.
    #[must_use]
    pub fn sent(&self, key: &SentKey) -> Option<Sent> {
        self.sent.get(key)
    }

    /// A user's side of a direct chat.
    #[must_use]
    pub fn direct(&self, user: UserId, peer: UserId) -> Direct {
        self.directs.get(&(user, peer))
    }

    pub(super) fn set_direct(&mut self, user: UserId, peer: UserId, direct: Direct) {
        self.directs.set(&(user, peer), direct);
    }

    pub(super) fn set_blocked(&mut self, user: UserId, peer: UserId, blocked: bool) {
        self.blocked.set(&(user, peer), blocked);
    }

    /// Whether the user blocks the peer.
    #[must_use]
    pub fn is_blocked(&self, user: UserId, peer: UserId) -> bool {
        self.blocked.get(&(user, peer))
    }

    /// Whether a chat counts in no sum: it is muted, or the user blocks the peer.
    #[must_use]
    pub fn is_silent(&self, user: UserId, peer: UserId) -> bool {
        self.is_blocked(user, peer) || self.direct(user, peer).muted
    }

    /// How many unread messages of a chat count in sums.
    pub(super) fn counted(&self, user: UserId, peer: UserId) -> i64 {
        if self.is_silent(user, peer) { 0 } else { self.direct(user, peer).unread() }
    }

    /// How many messages the peer had sent by this row of the user's inbox; None where nothing of
    /// the chat is kept up to there.
    #[must_use]
    pub fn place(&self, user: UserId, peer: UserId, up_to: i64) -> Option<i64> {
        // What the batch itself has made is looked at first, as it comes after all that is stored.
        let new = self.rows.from(&(user, 0)).take_while(|((of, seq), _)| *of == user && *seq <= up_to);
        let of_peer = new.filter_map(|(_, row)| match &row.as_ref()?.0.of {
            Of::Direct { peer: of, peer_seq, .. } if *of == peer => Some(*peer_seq),
            _ => None,
        });
        of_peer.last().or_else(|| self.places.get(&(user, peer, up_to)).copied().filter(|place| *place >= 0))
    }

    /// How many chats a user has a row for, but nothing in it.
    #[must_use]
    pub fn empty_chats(&self, user: UserId) -> i64 {
        self.empty_chats.get(&user)
    }

    /// So many more of those, or fewer.
    pub fn add_empty_chats(&mut self, user: UserId, more: i64) {
        let count = self.empty_chats(user);
        self.empty_chats.set(&user, count + more);
    }

    /// The direct messages of a user that may go, in the order of seq.
    #[must_use]
    pub fn oldest(&self, user: UserId) -> &[Oldest] {
        self.oldest.get(&user).map_or(&[], Vec::as_slice)
    }

    /// A user's rows up to this seq go.
    pub fn remove(&mut self, user: UserId, up_to: i64) {
        self.gone.set(&user, up_to.max(self.gone.get(&user)));
    }
}

impl RowSet for InboxRows {
    type Needs = InboxNeeds;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &InboxNeeds) -> DbResult<()> {
        // With the chats that the oldest rows are of.
        let directs = async {
            let oldest = store::load_oldest(pipeline, needs).await?;
            let of_oldest = oldest.iter().flat_map(|(user, rows)| rows.iter().map(|row| (*user, row.peer)));
            let directs = store::load_directs(pipeline, &needs.directs.iter().copied().chain(of_oldest).collect()).await?;
            Ok((oldest, directs))
        };
        let (sent, (oldest, directs), places, empty_chats) = try_join4(
            store::load_sent(pipeline, needs),
            directs,
            store::load_places(pipeline, needs),
            store::count_empty_chats(pipeline, needs),
        )
        .await?;
        let sent = sent.into_iter().filter_map(|(user, peer, own, client, seq, at)| {
            let key = (UserId::try_from(user).ok()?, UserId::try_from(peer).ok()?, own == 1, client.parse().ok()?);
            Some((key, Some(Sent { seq, at: UnixMs(at) })))
        });
        self.sent.insert_loaded(sent);
        self.oldest = oldest;
        for (chat, direct, blocked) in directs.into_iter().filter_map(store::direct_of_row) {
            self.directs.insert_loaded([(chat, direct)]);
            self.blocked.insert_loaded([(chat, blocked)]);
        }
        for (user, peer, up_to, place) in places {
            let (Ok(user), Ok(peer)) = (UserId::try_from(user), UserId::try_from(peer)) else { continue };
            self.places.insert((user, peer, up_to), place);
        }
        self.empty_chats.insert_loaded(empty_chats.into_iter().filter_map(|(user, count)| Some((UserId::try_from(user).ok()?, count))));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        let gone: Vec<_> = self.gone.changed().collect();
        if !gone.is_empty() {
            store::delete_oldest(conn, &gone).await?;
        }
        let rows: Vec<_> = self.rows.changed().filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
        if !rows.is_empty() {
            store::insert_rows(conn, &rows).await?;
        }
        let (empty, directs): (Vec<_>, Vec<_>) = self.directs.changed().partition(|(_, direct)| **direct == Direct::default());
        if !empty.is_empty() {
            store::delete_directs(conn, &empty).await?;
        }
        if !directs.is_empty() {
            store::save_directs(conn, &directs).await?;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.rows.settle();
        self.sent.settle();
        self.directs.settle();
        self.blocked.settle();
        self.empty_chats.settle();
        self.gone.settle();
    }

    fn undo(&mut self) {
        self.rows.undo();
        self.sent.undo();
        self.directs.undo();
        self.blocked.undo();
        self.empty_chats.undo();
        self.gone.undo();
    }
}
