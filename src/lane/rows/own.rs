//! Users' own rows and their marks in a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Needs, Rows};
use crate::cache::Revision;
use crate::db::{Conn, DbResult};
use crate::ids::{Name, UserId};
use crate::marks::store::{self, NOT_ENROLLED, User};
use crate::marks::{Kind, Mark, MarkKey, StreamKey};
use crate::views;

impl Rows {
    /// Of the users who visit a view for the first time, loads what that may push out. A mark that this batch asks for is in use, and stays.
    pub(super) async fn load_old_visits(&mut self, conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        let mut users: BTreeMap<UserId, i64> = BTreeMap::new();
        for (key, keep) in needs.visits.iter().filter(|(key, _)| !self.marks.rows.contains_key(*key)) {
            *users.entry(key.user).or_insert(i64::from(*keep)) -= 1;
        }
        if users.is_empty() {
            return Ok(());
        }
        let mut old = views::store::load_old_visits(conn, &users).await?;
        old.retain(|(key, _)| !self.marks.rows.contains_key(key));
        for (key, _) in &old {
            self.old_visits.entry(key.user).or_default().push(key.clone());
        }
        self.marks.insert_loaded(old);
        Ok(())
    }

    /// The user visits a view for the first time: those whose last visit is the longest ago make room.
    pub fn forget_old_visits(&mut self, user: UserId) {
        for key in self.old_visits.get(&user).cloned().unwrap_or_default() {
            self.set_mark_at(&key, Mark::default());
        }
    }

    /// Those that were there are updated, or removed where nothing is left of them, and the others inserted; a user whose marks this batch forgets has none that
    /// were there.
    pub(super) async fn save_marks(&self, conn: &mut Conn) -> DbResult<()> {
        let gone = self.marks.rows.iter().filter(|(_, (loaded, now))| loaded != now && *now == Mark::default());
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        if !gone.is_empty() {
            store::delete_marks(conn, &gone).await?;
        }
        let is_there = |key: &MarkKey, loaded: &Mark| *loaded != Mark::default() && !self.forgotten.get(&key.user);
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.marks.rows.iter().filter(|(_, (loaded, now))| loaded != now && *now != Mark::default()) {
            if is_there(key, loaded) { known.push((key, now)) } else { new.push((key, now)) }
        }
        if !known.is_empty() {
            store::update_marks(conn, &known).await?;
        }
        if !new.is_empty() {
            store::insert_marks(conn, &new).await?;
        }
        Ok(())
    }

    /// One mark as it is now.
    #[must_use]
    pub fn mark(&self, user: UserId, kind: Kind, name: &Name) -> Mark {
        self.mark_at(&MarkKey::new(user, kind, name))
    }

    /// One mark by its key, as it is now.
    #[must_use]
    pub fn mark_at(&self, key: &MarkKey) -> Mark {
        self.marks.get(key)
    }

    /// All loaded marks of one kind of a user.
    #[must_use]
    pub fn marks_of(&self, user: UserId, kind: Kind) -> Vec<(MarkKey, Mark)> {
        let first = MarkKey { user, kind, name: Arc::from("") };
        let mine = self.marks.from(&first).take_while(|(key, _)| key.user == user && key.kind == kind);
        mine.map(|(key, mark)| (key.clone(), mark.clone())).collect()
    }

    /// Sets a mark and raises the user's revision, once for each command. A mark that is the same changes nothing.
    pub fn set_mark(&mut self, user: UserId, kind: Kind, name: &Name, mark: Mark) {
        self.set_mark_at(&MarkKey::new(user, kind, name), mark);
    }

    /// The same by the mark's key.
    pub fn set_mark_at(&mut self, key: &MarkKey, mark: Mark) {
        let before = self.marks.get(key);
        if before == mark {
            return;
        }
        let new = key.kind == Kind::Counter && before == Mark::default();
        self.revise(key.user, |row| row.counters += i64::from(new));
        self.marks.set(key, mark);
    }

    /// The user was seen on this day. A user who was not seen before is enrolled: what happens to
    /// channels and dots from here on counts. An enrolment changes the cache entry, so it raises the
    /// revision. A later day is in no entry and raises nothing.
    pub fn see_user(&mut self, user: UserId, day: i64) {
        if !self.users.get(&user).is_enrolled() {
            let enrolled = self.head(&StreamKey::board()).head;
            self.revise(user, |row| row.enrolled = enrolled);
        }
        let mut row = self.users.get(&user);
        row.seen_day = row.seen_day.max(day);
        self.users.set(&user, row);
    }

    /// The user was not seen for long: the marks of what everybody shares are forgotten, the snapshot of the feed among them.
    pub fn forget_user(&mut self, user: UserId) {
        self.revise(user, |row| {
            row.enrolled = NOT_ENROLLED;
            row.feed = 0;
        });
        self.forgotten.set(&user, true);
    }

    /// The list behind the user's feed is another from this revision on.
    pub fn feed_changed(&mut self, user: UserId) {
        self.revise(user, |_| {});
        let mut row = self.users.get(&user);
        row.feed = row.revision;
        self.users.set(&user, row);
    }

    /// Changes the user's own row, and raises its revision, once for each command.
    pub fn revise(&mut self, user: UserId, change: impl FnOnce(&mut User)) {
        let mut row = self.users.get(&user);
        change(&mut row);
        if self.revised.insert(user) {
            row.revision += 1;
        }
        self.users.set(&user, row);
    }

    /// The user's own row as it is now.
    #[must_use]
    pub fn user(&self, user: UserId) -> User {
        self.users.get(&user)
    }

    /// The revision that the user has now.
    #[must_use]
    pub fn revision(&self, user: UserId) -> Revision {
        self.users.get(&user).revision
    }
}
