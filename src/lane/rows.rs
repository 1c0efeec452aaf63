//! The rows that a batch works on: loaded together, changed by pure functions, written back together.
//!
//! To add a table: a [`Table`] here, its needs in [`Needs`], and one line each in [`Rows::load`], [`Rows::save`], `settle` and `undo`. Tables are
//! loaded and written in the order in which they stand here, rows in the order of their keys: the one lock order of the program.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::{Change, Parts, Revision};
use crate::db::{Conn, DbResult};
use crate::ids::{Name, UserId};
use crate::marks::store::{self, User};
use crate::marks::{Kind, Mark, MarkKey};
use crate::relations::{self, Fans, Follow, Pair};

/// Which rows the commands of a batch need.
#[derive(Debug, Default)]
pub struct Needs {
    users: BTreeSet<UserId>,
    marks: BTreeSet<MarkKey>,
    all_marks: BTreeSet<(UserId, Kind)>,
    /// Both directions of each pair.
    follows: BTreeSet<Pair>,
    stripes: BTreeSet<i64>,
}

impl Needs {
    /// One mark, and with it the user's own row.
    pub fn mark(&mut self, user: UserId, kind: Kind, name: &Name) {
        self.users.insert(user);
        self.marks.insert(MarkKey { user, kind, name: name.clone() });
    }

    /// All marks of one kind of a user.
    pub fn all_marks(&mut self, user: UserId, kind: Kind) {
        self.users.insert(user);
        self.all_marks.insert((user, kind));
    }

    /// Whether one follows another, and the other way round; with it the follower's own row, and the lock of the pair.
    pub fn follow(&mut self, pair: Pair) {
        self.users.insert(pair.follower);
        self.follows.extend([pair, pair.reversed()]);
        self.stripes.insert(pair.stripe());
    }

    /// The users whose own rows may change: those whose cache entries must be touched.
    #[must_use]
    pub fn users(&self) -> Vec<UserId> {
        self.users.iter().copied().collect()
    }
}

/// Rows of one table: as loaded, and as they are now. A row that is not there counts as its default.
#[derive(Debug)]
pub struct Table<K, V> {
    rows: BTreeMap<K, (V, V)>,
    undo: Vec<(K, V)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), undo: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone + Default + PartialEq> Table<K, V> {
    fn insert_loaded(&mut self, rows: impl IntoIterator<Item = (K, V)>) {
        self.rows.extend(rows.into_iter().map(|(key, row)| (key, (row.clone(), row))));
    }

    /// The row as it is now.
    #[must_use]
    pub fn get(&self, key: &K) -> V {
        self.rows.get(key).map(|(_, now)| now.clone()).unwrap_or_default()
    }

    /// Sets the row, so that [`Rows::undo`] can take it back.
    pub fn set(&mut self, key: &K, row: V) {
        let entry = self.rows.entry(key.clone()).or_default();
        self.undo.push((key.clone(), std::mem::replace(&mut entry.1, row)));
    }

    /// The rows that differ from what was loaded.
    pub fn changed(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter().filter(|(_, (loaded, now))| loaded != now).map(|(key, (_, now))| (key, now))
    }

    /// The keys from this one on with their rows, as they are now.
    fn from(&self, first: &K) -> impl Iterator<Item = (&K, &V)> {
        self.rows.range(first..).map(|(key, (_, now))| (key, now))
    }

    fn undo(&mut self) {
        for (key, before) in self.undo.drain(..).rev() {
            if let Some(row) = self.rows.get_mut(&key) {
                row.1 = before;
            }
        }
    }
}

/// All rows of a batch.
#[derive(Debug, Default)]
pub struct Rows {
    users: Table<UserId, User>,
    marks: Table<MarkKey, Mark>,
    follows: Table<Pair, Option<Follow>>,
    /// What is to be added to the counts of those who are followed: these rows are never loaded.
    fans: Table<UserId, Fans>,
    /// Users whose revision the present command has raised.
    revised: BTreeSet<UserId>,
}

impl Rows {
    /// Takes the locks that must come before everything else of a transaction.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn lock(conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        let stripes: Vec<_> = needs.stripes.iter().copied().collect();
        relations::store::lock_stripes(conn, &stripes).await
    }

    /// Locks the users and loads what is needed.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn load(conn: &mut Conn, needs: &Needs) -> DbResult<Self> {
        let mut rows = Self::default();
        if needs.users.is_empty() {
            return Ok(rows);
        }
        if needs.marks.is_empty() {
            rows.users.insert_loaded(store::lock_users(conn, &needs.users()).await?);
        } else {
            let keys: Vec<_> = needs.marks.iter().cloned().collect();
            let (users, marks) = store::lock_users_and_load_marks(conn, &needs.users(), &keys).await?;
            rows.users.insert_loaded(users);
            rows.marks.insert_loaded(marks);
        }
        if !needs.all_marks.is_empty() {
            let users: Vec<_> = needs.all_marks.iter().copied().collect();
            rows.marks.insert_loaded(store::load_marks_of_users(conn, &users).await?);
        }
        if !needs.follows.is_empty() {
            let pairs: Vec<_> = needs.follows.iter().copied().collect();
            rows.follows.insert_loaded(relations::store::load(conn, &pairs).await?);
        }
        Ok(rows)
    }

    /// Writes what changed. `slot`: to which slot of counts that are spread out this lane adds.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn save(&self, conn: &mut Conn, slot: i64) -> DbResult<()> {
        let users: Vec<_> = self.users.changed().map(|(user, row)| (*user, *row)).collect();
        if !users.is_empty() {
            store::save_users(conn, &users).await?;
        }
        let marks: Vec<_> = self.marks.changed().collect();
        if !marks.is_empty() {
            store::save_marks(conn, &marks).await?;
        }
        self.save_follows(conn, slot).await
    }

    /// A follow that changed is one removed and one made.
    async fn save_follows(&self, conn: &mut Conn, slot: i64) -> DbResult<()> {
        let (mut gone, mut made) = (Vec::new(), Vec::new());
        for (pair, (loaded, now)) in self.follows.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            gone.extend(loaded.map(|follow| (*pair, follow)));
            made.extend(now.map(|follow| (*pair, follow)));
        }
        if !gone.is_empty() {
            relations::store::delete(conn, &gone).await?;
        }
        if !made.is_empty() {
            relations::store::insert(conn, &made).await?;
        }
        let fans: Vec<_> = self.fans.changed().map(|(user, fans)| (*user, *fans)).collect();
        if !fans.is_empty() {
            relations::store::add_counts(conn, slot, &fans).await?;
        }
        Ok(())
    }

    /// One mark as it is now.
    #[must_use]
    pub fn mark(&self, user: UserId, kind: Kind, name: &Name) -> Mark {
        self.marks.get(&MarkKey { user, kind, name: name.clone() })
    }

    /// All loaded marks of one kind of a user.
    #[must_use]
    pub fn marks_of(&self, user: UserId, kind: Kind) -> Vec<(Name, Mark)> {
        let first = MarkKey { user, kind, name: Name::lowest() };
        let mine = self.marks.from(&first).take_while(|(key, _)| key.user == user && key.kind == kind);
        mine.map(|(key, mark)| (key.name.clone(), mark.clone())).collect()
    }

    /// Sets a mark and raises the user's revision, once for each command. A mark that is the same changes nothing.
    pub fn set_mark(&mut self, user: UserId, kind: Kind, name: &Name, mark: Mark) {
        let key = MarkKey { user, kind, name: name.clone() };
        let before = self.marks.get(&key);
        if before == mark {
            return;
        }
        let new = kind == Kind::Counter && before == Mark::default();
        self.revise(user, |row| row.counters += i64::from(new));
        self.marks.set(&key, mark);
    }

    /// One follow as it is now.
    #[must_use]
    pub fn follow(&self, pair: Pair) -> Option<Follow> {
        self.follows.get(&pair)
    }

    /// Sets or removes a follow, takes every count along, and raises the follower's revision. One that is the same changes nothing.
    pub fn set_follow(&mut self, pair: Pair, follow: Option<Follow>) {
        let before = self.follow(pair);
        if before == follow {
            return;
        }
        let step = i64::from(follow.is_some()) - i64::from(before.is_some());
        let mutual = if self.follow(pair.reversed()).is_some() { step } else { 0 };
        self.revise(pair.follower, |row| row.following += step);
        self.add_fans(pair.followee, Fans { followers: step, mutuals: mutual });
        self.add_fans(pair.follower, Fans { followers: 0, mutuals: mutual });
        self.follows.set(&pair, follow);
    }

    /// What this batch adds to the counts of a user whom others follow.
    #[must_use]
    pub fn fans(&self, user: UserId) -> Fans {
        self.fans.get(&user)
    }

    fn add_fans(&mut self, user: UserId, more: Fans) {
        let fans = self.fans(user);
        self.fans.set(&user, Fans { followers: fans.followers + more.followers, mutuals: fans.mutuals + more.mutuals });
    }

    /// Changes the user's own row, and raises its revision, once for each command.
    fn revise(&mut self, user: UserId, change: impl FnOnce(&mut User)) {
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

    /// The command took effect: what it did stays.
    pub fn settle(&mut self) {
        self.users.undo.clear();
        self.marks.undo.clear();
        self.follows.undo.clear();
        self.fans.undo.clear();
        self.revised.clear();
    }

    /// The command was refused: everything is as before it.
    pub fn undo(&mut self) {
        self.users.undo();
        self.marks.undo();
        self.follows.undo();
        self.fans.undo();
        self.revised.clear();
    }

    /// What the batch did, for the cache: one change for each user that was needed, also where nothing changed.
    #[must_use]
    pub fn changes(&self, needs: &Needs) -> Vec<Change> {
        let mut parts: BTreeMap<UserId, Parts> = BTreeMap::new();
        for (key, mark) in self.marks.changed() {
            let (field, value) = crate::sheet::part(key, mark);
            parts.entry(key.user).or_default().insert(field, value);
        }
        let change = |user: &UserId| {
            let (before, after) = self.users.rows.get(user).map_or((0, 0), |(loaded, now)| (loaded.revision, now.revision));
            Change { user: *user, before, after, parts: parts.remove(user).unwrap_or_default() }
        };
        needs.users.iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn advanced(mark: &Mark, by: i64) -> Mark {
        let mut mark = mark.clone();
        mark.advance(by).unwrap();
        mark
    }

    #[test]
    fn a_refused_command_leaves_no_trace() {
        let (user, like, follow) = (UserId::try_from(1).unwrap(), name("like"), name("follow"));
        let mut rows = Rows::default();
        rows.set_mark(user, Kind::Counter, &like, advanced(&Mark::default(), 3));
        rows.settle();
        assert_eq!(rows.user(user), User { revision: 1, counters: 1, following: 0 });

        let more = advanced(&rows.mark(user, Kind::Counter, &like), 2);
        rows.set_mark(user, Kind::Counter, &like, more);
        rows.set_mark(user, Kind::Counter, &follow, advanced(&Mark::default(), 1));
        assert_eq!(rows.user(user), User { revision: 2, counters: 2, following: 0 }, "one revision for the whole command");
        rows.undo();
        assert_eq!(rows.user(user), User { revision: 1, counters: 1, following: 0 });
        assert_eq!(rows.mark(user, Kind::Counter, &like).head(), 3);
        assert_eq!(rows.mark(user, Kind::Counter, &follow).head(), 0);

        let same = rows.mark(user, Kind::Counter, &like);
        rows.set_mark(user, Kind::Counter, &like, same);
        rows.settle();
        assert_eq!(rows.revision(user), 1, "what changes nothing is no new revision");
    }
}
