//! What commands read and change of users' own rows.

use super::Core;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::marks::users::{NOT_ENROLLED, User};
use crate::engine::marks::{FORGOTTEN, StreamKey, UserSettings};

impl Core {
    /// Whether the user was erased. Known of users whose rows are asked for, and who are named
    /// ([`crate::engine::pairs::need_named`]).
    #[must_use]
    pub fn is_erased(&self, user: UserId) -> bool {
        self.erased.contains(&user) || self.users.look(&user).is_some_and(|row| row.settings.is_erased())
    }

    /// The user's entry in the cache is not to be changed but read again: what it shows cannot be taken
    /// back part by part.
    pub fn read_entry_again(&mut self, user: UserId) {
        self.outdated.set(&user, true);
    }

    /// The user is erased from now on: every later write that names it is refused.
    pub fn erase(&mut self, user: UserId) {
        self.has_erased = true;
        self.revise(user, |row| row.settings.erase());
    }

    /// The users of whom marks are forgotten.
    pub fn forgotten(&self) -> impl Iterator<Item = UserId> + '_ {
        self.forgotten.changed().map(|(user, _)| *user)
    }

    /// The user was seen on this day. A user who was not seen before is enrolled: what happens to
    /// channels and dots from here on counts. An enrolment changes the cache entry, so it raises
    /// the revision. A later day is in no entry and raises nothing.
    pub fn see_user(&mut self, user: UserId, day: i64) {
        if !self.users.look(&user).is_some_and(User::is_enrolled) {
            let enrolled = self.head(&StreamKey::broadcast_state()).head;
            self.revise(user, |row| row.enrolled = enrolled);
        }
        let mut row = self.users.get(&user);
        row.seen_day = row.seen_day.max(day);
        self.users.set(&user, row);
    }

    /// The user was not seen for long: the marks of what everybody shares are forgotten, the
    /// snapshot of the feed among them.
    pub fn forget_user(&mut self, user: UserId) {
        self.revise(user, |row| {
            row.enrolled = NOT_ENROLLED;
            row.feed = 0;
            row.marks.remove(&FORGOTTEN);
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

    /// The list of those whom the user follows is another from this revision on.
    pub fn following_changed(&mut self, user: UserId) {
        self.revise(user, |_| {});
        let mut row = self.users.get(&user);
        row.following_version = row.revision;
        self.users.set(&user, row);
    }

    /// Changes the user's own row, and raises its revision, once for each command.
    pub fn revise(&mut self, user: UserId, change: impl FnOnce(&mut User)) {
        if self.gone.contains(&user) {
            return;
        }
        let mut row = self.users.get(&user);
        change(&mut row);
        if self.revised.insert(user) {
            row.revision += 1;
        }
        self.users.set(&user, row);
    }

    /// Users who changed who may see their lists of follows.
    pub fn lists_changed(&self) -> impl Iterator<Item = UserId> + '_ {
        let is_changed = |loaded: &UserSettings, now: &UserSettings| loaded != now && loaded.lists() != now.lists();
        let changed = self.users.rows.iter().filter(move |(_, (loaded, now))| is_changed(&loaded.settings, &now.settings));
        changed.map(|(user, _)| *user)
    }

    /// Whether the user had no row before this batch.
    #[must_use]
    pub fn is_new(&self, user: UserId) -> bool {
        self.new.contains(&user)
    }

    /// The user's own row as it is now.
    #[must_use]
    pub fn user(&self, user: UserId) -> User {
        self.users.get(&user)
    }

    /// The revision that the user has now.
    #[must_use]
    pub fn revision(&self, user: UserId) -> Revision {
        self.users.look(&user).map_or(0, |row| row.revision)
    }
}
