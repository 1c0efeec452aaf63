//! The rows of `inbox` and `directs` in a batch. All of them belong to one user, whose own row is
//! locked, so they are locked with it.

use std::collections::HashMap;

use futures_util::future::{try_join, try_join5};

use super::needs::{ChatKey, Message};
use super::{Direct, GroupRun, InboxNeeds, Item, Of, Oldest, Place, Sent, SentKey, recall_store, store, timed};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, EntryParts, RowSet, Table};
use crate::features::level::{Level, LevelUntil};
use crate::features::silence::Silence;

#[derive(Debug, Default)]
pub struct InboxRows {
    /// Those that the batch makes: no other is loaded.
    rows: Table<(UserId, i64), Option<(Item, UnixMs)>>,
    /// The same of groups, by the number that they follow.
    runs: Table<(UserId, i64), Option<(GroupRun, UnixMs)>>,
    sent: Table<SentKey, Option<Sent>>,
    directs: Table<ChatKey, Direct>,
    /// Whether the user blocks or mutes the peer, where the chat is loaded. The rows of that are
    /// written elsewhere.
    silences: Table<ChatKey, Silence>,
    empty_chats: Table<UserId, i64>,
    /// Up to which seq rows are to go.
    gone: Table<UserId, i64>,
    /// Stored rows that were recalled: the other side, and whether it is the owner's own.
    recalled: Table<(UserId, i64), Option<(UserId, bool)>>,
    /// Chats with peers that are erased: up to which seq rows become tombstones.
    forgotten: Table<ChatKey, i64>,
    places: HashMap<(UserId, UserId, i64), Place>,
    messages: HashMap<(UserId, i64), Message>,
    earliest: HashMap<UserId, i64>,
    oldest: HashMap<UserId, Vec<Oldest>>,
}

impl InboxRows {
    /// Puts a row into an inbox.
    pub(super) fn put(&mut self, user: UserId, seq: i64, item: Item, now: UnixMs) {
        if let Of::Direct { peer, peer_seq, client, sent_at, .. } = &item.of {
            let sent = Sent { seq, at: *sent_at, peer_seq: *peer_seq, recalled: false };
            self.sent.set(&(user, *peer, item.own, client.clone()), Some(sent));
        }
        self.rows.set(&(user, seq), Some((item, now)));
    }

    /// Puts messages of a group into an inbox, behind this number.
    pub(super) fn put_run(&mut self, user: UserId, after: i64, run: GroupRun, now: UnixMs) {
        self.runs.set(&(user, after), Some((run, now)));
    }

    /// Where a message with this id is, if it was sent before and its row is kept.
    #[must_use]
    pub fn sent(&self, key: &SentKey) -> Option<Sent> {
        self.sent.get(key).filter(|sent| sent.seq > self.gone.get(&key.0))
    }

    /// A user's side of a direct chat.
    #[must_use]
    pub fn direct(&self, user: UserId, peer: UserId) -> Direct {
        self.directs.get(&(user, peer))
    }

    pub(super) fn set_direct(&mut self, user: UserId, peer: UserId, direct: Direct) {
        self.directs.set(&(user, peer), direct);
    }

    pub(super) fn set_silence(&mut self, user: UserId, peer: UserId, change: impl Fn(&mut Silence)) {
        let mut silence = self.silences.get(&(user, peer));
        change(&mut silence);
        self.silences.set(&(user, peer), silence);
    }

    /// Whether the user blocks the peer.
    #[must_use]
    pub fn is_blocked(&self, user: UserId, peer: UserId) -> bool {
        self.silences.get(&(user, peer)).blocked
    }

    /// How many unread messages of a chat the sums count. A level that has ended counts as it was
    /// until the next write to the chat.
    pub(super) fn counted(&self, user: UserId, peer: UserId) -> i64 {
        if self.counted_level(user, peer) == LevelUntil::default() { self.direct(user, peer).unread() } else { 0 }
    }

    /// The level by which the chat counts: the one that was set, or that of a block or a mute.
    fn counted_level(&self, user: UserId, peer: UserId) -> LevelUntil {
        self.silences.get(&(user, peer)).over(self.direct(user, peer).level)
    }

    /// What this row of the user's inbox is in a chat.
    #[must_use]
    pub fn place(&self, user: UserId, peer: UserId, up_to: i64) -> Place {
        let direct = self.direct(user, peer);
        // What was loaded counts rows that the batch has removed since. All that are kept come later, and
        // count as unread if they may be read by this.
        if up_to < self.gone.get(&user) {
            return direct.place_of_expired(up_to, direct.recalled);
        }
        let stored = self.places.get(&(user, peer, up_to)).copied().unwrap_or(Place { peer_seq: -1, ..Place::default() });
        let recalled_after = stored.recalled_after + self.recalled_in_batch(user, peer, up_to);
        // What the batch itself has made is looked at first, as it comes after all that is stored.
        let new = self.rows.from(&(user, 0)).take_while(|((of, seq), _)| *of == user && *seq <= up_to);
        let of_peer = new.filter_map(|((_, seq), row)| match &row.as_ref()?.0.of {
            Of::Direct { peer: of, peer_seq, .. } if *of == peer => Some(Place { peer_seq: *peer_seq, seq: *seq, recalled_after }),
            _ => None,
        });
        match of_peer.last() {
            Some(place) => place,
            None if stored.peer_seq >= 0 => Place { recalled_after, ..stored },
            None => direct.place_of_expired(up_to, recalled_after),
        }
    }

    /// How many of the peer's messages after a row the batch has recalled.
    fn recalled_in_batch(&self, user: UserId, peer: UserId, after: i64) -> i64 {
        let first = (user, after.saturating_add(1));
        let stored = self.recalled.from(&first).take_while(|((of, _), _)| *of == user);
        let stored = stored.filter(|(_, row)| **row == Some((peer, false))).count();
        let new = self.rows.from(&first).take_while(|((of, _), _)| *of == user);
        let is_recalled = |row: &Option<(Item, UnixMs)>| {
            row.as_ref()
                .is_some_and(|(item, _)| !item.own && matches!(&item.of, Of::Direct { peer: of, recalled: true, .. } if *of == peer))
        };
        i64::try_from(stored + new.filter(|(_, row)| is_recalled(row)).count()).unwrap_or(i64::MAX)
    }

    /// A message by its place in the user's inbox.
    pub(super) fn message(&self, user: UserId, seq: i64) -> Option<Message> {
        if let Some((item, _)) = self.rows.look(&(user, seq)).and_then(Option::as_ref) {
            let Of::Direct { peer, client, other_seq, recalled, .. } = &item.of else { return None };
            let (client, own) = (client.clone(), item.own);
            return Some(Message { peer: *peer, own, client, other_seq: *other_seq, recalled: *recalled });
        }
        let mut message = self.messages.get(&(user, seq)).filter(|_| self.gone.get(&user) < seq).cloned()?;
        message.recalled |= self.recalled.look(&(user, seq)).is_some_and(Option::is_some);
        Some(message)
    }

    /// Takes the content out of a message that was found.
    pub(super) fn recall(&mut self, user: UserId, seq: i64, message: &Message) {
        let key = (user, message.peer, message.own, message.client.clone());
        if let Some(sent) = self.sent.get(&key).filter(|sent| sent.seq == seq) {
            self.sent.set(&key, Some(Sent { recalled: true, ..sent }));
        }
        let Some(Some((mut item, at))) = self.rows.look(&(user, seq)).cloned() else {
            return self.recalled.set(&(user, seq), Some((message.peer, message.own)));
        };
        if let Of::Direct { content, recalled, .. } = &mut item.of {
            (*content, *recalled) = ("".into(), true);
        }
        self.rows.set(&(user, seq), Some((item, at)));
    }

    /// The first row of a user that is kept; one beyond the head where none is.
    pub(super) fn earliest(&self, user: UserId, head: i64) -> i64 {
        let stored = self.earliest.get(&user).copied().filter(|seq| *seq > 0);
        let row = self.rows.from(&(user, 0)).take_while(|((of, _), _)| *of == user).map(|((_, seq), _)| *seq).next();
        let run = self.runs.from(&(user, 0)).take_while(|((of, _), _)| *of == user).map(|((_, after), _)| after + 1).next();
        stored.or(row.into_iter().chain(run).min()).unwrap_or(head + 1).max(self.gone.get(&user) + 1)
    }

    /// The user's chats in the batch whose level ends, or has ended without a write since.
    pub(super) fn timed(&self, user: UserId) -> Vec<UserId> {
        let Ok(lowest) = UserId::try_from(1) else { return Vec::new() };
        let mine = self.directs.from(&(user, lowest)).take_while(|((of, _), _)| *of == user);
        mine.filter(|(_, direct)| direct.level.until().is_some()).map(|((_, peer), _)| *peer).collect()
    }

    /// The level of a chat as its user sees it, and when it ends.
    #[must_use]
    pub fn level(&self, user: UserId, peer: UserId, now: UnixMs) -> (Level, Option<UnixMs>) {
        let level = self.counted_level(user, peer);
        (level.at(now), level.ends_at(now))
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

    /// The direct messages of a user that may go, in the order of seq. Those that the batch has made tombstones of are
    /// of no chat any more.
    #[must_use]
    pub fn oldest(&self, user: UserId) -> Vec<Oldest> {
        let is_recalled = |seq: i64| self.recalled.look(&(user, seq)).is_some_and(Option::is_some);
        let rows = self.oldest.get(&user).into_iter().flatten();
        let rows = rows.filter(|row| row.seq > self.forgotten.get(&(user, row.peer)));
        rows.map(|row| Oldest { recalled: row.recalled || is_recalled(row.seq), ..*row }).collect()
    }

    /// The user's rows of a chat with a peer that is erased become tombstones, up to this seq.
    pub(super) fn forget_peer(&mut self, user: UserId, peer: UserId, up_to: i64) {
        self.forgotten.set(&(user, peer), up_to.max(self.forgotten.get(&(user, peer))));
    }

    /// A user's rows up to this seq go.
    pub fn remove(&mut self, user: UserId, up_to: i64) {
        self.gone.set(&user, up_to.max(self.gone.get(&user)));
    }
}

impl RowSet for InboxRows {
    const ENTRY_ROWS: Option<EntryRows> = Some(timed::ENTRY_ROWS);

    type Needs = InboxNeeds;

    fn statements() -> Vec<&'static Statement> {
        [store::statements().as_slice(), &recall_store::statements(), &timed::statements()].concat()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &InboxNeeds) -> DbResult<()> {
        // With the chats that the oldest rows are of, and those whose level ends.
        let directs = async {
            let (oldest, timed) = try_join(store::load_oldest(pipeline, needs), timed::load(pipeline, &needs.timed)).await?;
            let of_oldest = oldest.iter().flat_map(|(user, rows)| rows.iter().map(|row| (*user, row.peer)));
            let timed = timed.into_iter().filter_map(|(user, peer)| Some((user.try_into().ok()?, peer.try_into().ok()?)));
            let directs = needs.directs.iter().copied().chain(of_oldest).chain(timed).collect();
            Ok((oldest, store::load_directs(pipeline, &directs).await?))
        };
        // With both sides of the messages that are named by their place.
        let sent = async {
            let messages = recall_store::load_messages(pipeline, &needs.messages).await?;
            let sides = messages.iter().flat_map(|((user, _), message)| message.sides(*user));
            let sent = store::load_sent(pipeline, &needs.sent.iter().cloned().chain(sides).collect()).await?;
            Ok((messages, sent))
        };
        let ((messages, sent), (oldest, directs), places, empty_chats, earliest) = try_join5(
            sent,
            directs,
            store::load_places(pipeline, needs),
            store::count_empty_chats(pipeline, needs),
            store::load_earliest(pipeline, needs),
        )
        .await?;
        self.messages = messages;
        self.earliest = earliest.into_iter().filter_map(|(user, seq)| Some((UserId::try_from(user).ok()?, seq))).collect();
        self.sent.insert_loaded(sent.into_iter().filter_map(store::sent_of_row));
        self.oldest = oldest;
        for (chat, direct, silence) in directs.into_iter().filter_map(store::direct_of_row) {
            self.directs.insert_loaded([(chat, direct)]);
            self.silences.insert_loaded([(chat, silence)]);
        }
        for (user, peer, up_to, peer_seq, seq, recalled_after) in places {
            let (Ok(user), Ok(peer)) = (UserId::try_from(user), UserId::try_from(peer)) else { continue };
            self.places.insert((user, peer, up_to), Place { peer_seq, seq, recalled_after });
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
        let runs: Vec<_> = self.runs.changed().filter_map(|(key, run)| Some((key, run.as_ref()?))).collect();
        if !runs.is_empty() {
            store::insert_runs(conn, &runs).await?;
        }
        let forgotten: Vec<_> = self.forgotten.changed().map(|((user, peer), up_to)| (*user, *peer, *up_to)).collect();
        if !forgotten.is_empty() {
            recall_store::forget_peers(conn, &forgotten).await?;
        }
        let recalled: Vec<_> = self.recalled.changed().map(|((user, seq), _)| (*user, *seq)).collect();
        if !recalled.is_empty() {
            recall_store::save(conn, &recalled).await?;
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
        self.runs.settle();
        self.sent.settle();
        self.directs.settle();
        self.silences.settle();
        self.empty_chats.settle();
        self.gone.settle();
        self.recalled.settle();
        self.forgotten.settle();
    }

    fn undo(&mut self) {
        self.rows.undo();
        self.runs.undo();
        self.sent.undo();
        self.directs.undo();
        self.silences.undo();
        self.empty_chats.undo();
        self.gone.undo();
        self.recalled.undo();
        self.forgotten.undo();
    }

    fn parts(&self, parts: &mut EntryParts<'_>) {
        for (key, (loaded, now)) in &self.directs.rows {
            let (was, is) = self.silences.rows.get(key).copied().unwrap_or_default();
            let (before, after) = (timed::timed(loaded, was), timed::timed(now, is));
            if before != after {
                parts.add(key.0, || Some(timed::part(key.1, after)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
