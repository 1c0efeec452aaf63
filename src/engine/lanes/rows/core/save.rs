//! How what a batch changed of shared rows, and its events, are written.

use super::Core;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::db::{Conn, DbResult};
use crate::engine::events::{Event, UnreadEventOut};
use crate::engine::heads::{self, Batch};
use crate::engine::marks::store;
use crate::engine::marks::{Mark, users};

impl Core {
    pub(in super::super) async fn save(&self, conn: &mut Conn, batch: Batch) -> DbResult<()> {
        let users = self.users.rows.iter().filter(|(user, (loaded, now))| self.has_row(**user, loaded, now));
        let users = users.map(|(user, (loaded, now))| (*user, loaded, now));
        let (new, known): (Vec<_>, Vec<_>) = users.partition(|(user, ..)| self.new.contains(user));
        let changed: Vec<_> = known.into_iter().filter(|(_, loaded, now)| self.is_written(loaded, now)).collect();
        users::save_users(conn, &changed, batch.stamp()).await?;
        users::insert_users(conn, &new, batch.stamp()).await?;
        // An answer also says what a command did not change.
        let row = |user: &UserId| {
            self.users.rows.get(user).filter(|(loaded, now)| !self.is_written(loaded, now)).map(|(row, _)| (*user, row.version))
        };
        let same: Vec<_> = self.unlocked.iter().filter_map(row).collect();
        if !same.is_empty() {
            users::check_users(conn, &same).await?;
        }
        let heads: Vec<_> = self.heads.changed().collect();
        if !heads.is_empty() {
            heads::store::save(conn, &heads, batch).await?;
        }
        self.save_marks(conn).await
    }

    /// Last, under all locks of the batch: so the events of a user are in the order of its revisions.
    pub(in super::super) async fn save_events(&self, conn: &mut Conn, now: UnixMs) -> DbResult<()> {
        let unread = self.changed_with_push().map(|(user_id, revision)| Event::Unread(UnreadEventOut { user_id, revision }));
        self.events.save(conn, now, unread).await
    }

    /// The users with a push device whose numbers may have changed, with their revisions: each once,
    /// however many commands have changed them. The flag is in the row, so for others it is a look at
    /// an empty text.
    pub(super) fn changed_with_push(&self) -> impl Iterator<Item = (UserId, Revision)> + '_ {
        let rows = self.users.rows.iter().filter(|(_, (_, now))| now.settings.has_push());
        let changed = rows.filter(|(user, (loaded, now))| loaded.revision != now.revision || self.told.get(user));
        changed.map(|(user, (_, now))| (*user, now.revision))
    }

    /// Those that were there are updated, or removed where nothing is left of them, and the others
    /// inserted.
    async fn save_marks(&self, conn: &mut Conn) -> DbResult<()> {
        let gone = self.marks.rows.iter().filter(|(_, (loaded, now))| loaded != now && *now == Mark::default());
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        if !gone.is_empty() {
            store::delete_marks(conn, &gone).await?;
        }
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.marks.rows.iter().filter(|(_, (loaded, now))| loaded != now && *now != Mark::default()) {
            if *loaded == Mark::default() { new.push((key, now)) } else { known.push((key, now)) }
        }
        if !known.is_empty() {
            store::update_marks(conn, &known).await?;
        }
        if !new.is_empty() {
            store::insert_marks(conn, &new).await?;
        }
        Ok(())
    }
}
