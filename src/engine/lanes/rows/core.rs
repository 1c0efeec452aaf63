//! What every feature shares in a batch: users' own rows, their marks, the heads of shared streams,
//! events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join;

use super::super::needs::Needs;
use super::super::table::Table;
use crate::base::clock::UnixMs;
use crate::base::ids::{Name, UserId};
use crate::cache::{Parts, Revision};
use crate::db::{Conn, DbResult, Pipeline};
use crate::engine::erased::Erased;
use crate::engine::events::{self, Event, UnreadEventOut};
use crate::engine::heads::store::SharedCount;
use crate::engine::heads::{self, Batch, Committed};
use crate::engine::marks::parts::{settings_part, shows_same, user_part};
use crate::engine::marks::store;
use crate::engine::marks::users::{self, NOT_ENROLLED, User};
use crate::engine::marks::{FORGOTTEN, Kind, Mark, MarkKey, Stream, StreamKey, UserSettings, is_own};

/// The rows that every feature shares.
#[derive(Debug, Default)]
pub struct Core {
    users: Table<UserId, User>,
    marks: Table<MarkKey, Mark>,
    heads: Table<StreamKey, Stream>,
    /// Users whose rows are taken as they are known, without a lock.
    unlocked: Vec<UserId>,
    /// Whether users' rows get another version also where nothing in them changed.
    writes_all: bool,
    /// Whether rows are as commands say, without a look.
    assumes: bool,
    /// Users who have no row yet, and get one with this batch.
    new: BTreeSet<UserId>,
    /// Users who were erased, as far as their rows do not say so: those that have none any more, and
    /// those that are named without a look at their rows.
    erased: BTreeSet<UserId>,
    /// Of whom that was asked.
    asked: Vec<UserId>,
    /// Users who were erased and have no row: nothing of them is ever written.
    gone: BTreeSet<UserId>,
    /// Whether any user of the batch may be erased.
    has_erased: bool,
    /// Users whose entries in the cache are to be read again.
    outdated: Table<UserId, bool>,
    /// How many channels and dots there were before the batch, where it may make one.
    shared_counts: Vec<SharedCount>,
    /// Users of whom all marks of a kind are to go.
    forgotten: Table<UserId, bool>,
    /// What happened, for those who read along.
    events: events::Written,
    /// Users whose numbers changed without a write to their rows.
    told: Table<UserId, bool>,
    /// Users whose revision the present command has raised.
    revised: BTreeSet<UserId>,
}

/// What is found of heads.
#[derive(Debug)]
pub(super) struct FoundHeads {
    heads: Vec<(StreamKey, Stream)>,
    shared_counts: Vec<SharedCount>,
}

impl FoundHeads {
    /// Locks the heads that may change, and loads those of `seen` that are not among them.
    pub(super) async fn load(pipeline: &Pipeline, needs: &Needs, seen: &BTreeSet<StreamKey>) -> DbResult<Self> {
        let (own, others): (Vec<_>, Vec<_>) = (needs.heads.iter().cloned().collect(), seen.difference(&needs.heads).cloned().collect());
        let locked = async { if own.is_empty() { Ok(Vec::new()) } else { heads::store::lock(pipeline, &own).await } };
        let seen = async { if others.is_empty() { Ok(Vec::new()) } else { heads::store::load(pipeline, &others).await } };
        let (mut heads, seen) = try_join(locked, seen).await?;
        let is_known = |key: &StreamKey| heads.iter().any(|(found, stream)| found == key && stream.is_alive());
        let may_be_new = |key: &StreamKey| matches!(key.kind, Kind::Broadcast | Kind::Dot) && !is_known(key);
        let shared_counts = if own.iter().any(may_be_new) { heads::store::count_shared(pipeline).await? } else { Vec::new() };
        heads.extend(seen);
        Ok(Self { heads, shared_counts })
    }
}

impl Core {
    pub(in crate::engine::lanes) fn assume(&mut self, assumes: bool) {
        self.assumes = assumes;
    }

    /// Whether a set takes rows as commands say that they are ([`Needs::assume`]); else it locks and reads them.
    #[must_use]
    pub fn assumes(&self) -> bool {
        self.assumes
    }

    /// Locks the users, and loads their marks.
    pub(super) async fn load_users(&mut self, pipeline: &Pipeline, needs: &Needs) -> DbResult<()> {
        let (users, marks) = (needs.users(), needs.marks.iter().cloned().collect::<Vec<_>>());
        let users = async { if users.is_empty() { Ok(Vec::new()) } else { users::lock_users(pipeline, &users).await } };
        let marks = async { if marks.is_empty() { Ok(Vec::new()) } else { store::load_marks(pipeline, &marks).await } };
        let (users, marks) = try_join(users, marks).await?;
        self.add_locked(needs, users);
        self.marks.insert_loaded(marks);
        Ok(())
    }

    /// Rows that are locked. The others are made when the batch is written: as they are by then, in one
    /// go, and also where nothing changed, since that keeps out another batch that found none either.
    fn add_locked(&mut self, needs: &Needs, users: Vec<(UserId, User)>) {
        self.has_erased |= users.iter().any(|(_, row)| row.settings.is_erased());
        self.users.insert_loaded(users);
        self.new = needs.users.iter().filter(|user| self.users.look(user).is_none()).copied().collect();
        self.users.insert_loaded(self.new.iter().map(|user| (*user, User::default())));
    }

    /// Users of whom their rows do not say whether they were erased.
    pub(super) fn maybe_erased(&self, needs: &Needs) -> Vec<UserId> {
        self.new.iter().copied().chain(needs.named_alone()).collect()
    }

    /// Takes in which of them were.
    pub(super) fn add_erased(&mut self, asked: Vec<UserId>, found: Vec<Erased>) {
        self.asked = asked;
        for (user, _) in found {
            self.has_erased = true;
            self.erased.insert(user);
            if self.new.remove(&user) {
                self.gone.insert(user);
                self.users.insert_loaded([(user, User { settings: UserSettings::erased(), ..User::default() })]);
            }
        }
    }

    /// Whether a user of the batch may have been erased.
    pub(in crate::engine::lanes) fn has_erased(&self) -> bool {
        self.has_erased
    }

    /// Whether the batch knows if this user was erased.
    pub(in crate::engine::lanes) fn knows_whether_erased(&self, user: UserId) -> bool {
        self.users.look(&user).is_some() || self.asked.contains(&user)
    }

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
        self.revise(user, |row| row.settings = UserSettings::erased());
    }

    /// Takes in heads.
    pub(super) fn add_heads(&mut self, found: FoundHeads) {
        self.heads.insert_loaded(found.heads);
        self.shared_counts = found.shared_counts;
    }

    /// Rows that are known without a lock. `write_all` writes the unchanged ones, too, so that another
    /// transaction that locks one of them waits for this one.
    pub(in crate::engine::lanes) fn add_users(&mut self, users: Vec<(UserId, User)>, write_all: bool) {
        self.writes_all = write_all;
        self.unlocked = users.iter().map(|(user, _)| *user).collect();
        self.has_erased |= users.iter().any(|(_, row)| row.settings.is_erased());
        self.users.insert_loaded(users);
    }

    /// The rows of users as they are once this is committed.
    pub(in crate::engine::lanes) fn users_after(&self, batch: Batch) -> Vec<(UserId, User)> {
        let after = |(user, (loaded, now)): (&UserId, &(User, User))| {
            (*user, User { version: if self.is_written(loaded, now) { batch.stamp() } else { now.version }, ..now.clone() })
        };
        self.users.rows.iter().filter(|(user, _)| !self.gone.contains(user)).map(after).collect()
    }

    fn is_written(&self, loaded: &User, now: &User) -> bool {
        self.writes_all || loaded != now
    }

    pub(super) async fn save(&self, conn: &mut Conn, batch: Batch) -> DbResult<()> {
        let users = self.users.rows.iter().filter(|(user, _)| !self.gone.contains(user));
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
    pub(super) async fn save_events(&self, conn: &mut Conn, now: UnixMs) -> DbResult<()> {
        let unread = self.changed_with_push().map(|(user_id, revision)| Event::Unread(UnreadEventOut { user_id, revision }));
        self.events.save(conn, now, unread).await
    }

    /// The users with a push device whose numbers may have changed, with their revisions: each once,
    /// however many commands have changed them. The flag is in the row, so for others it is a look at
    /// an empty text.
    fn changed_with_push(&self) -> impl Iterator<Item = (UserId, Revision)> + '_ {
        let rows = self.users.rows.iter().filter(|(_, (_, now))| now.settings.has_push());
        let changed = rows.filter(|(user, (loaded, now))| loaded.revision != now.revision || self.told.get(user));
        changed.map(|(user, (_, now))| (*user, now.revision))
    }

    pub(super) fn settle(&mut self) {
        self.users.settle();
        self.heads.settle();
        self.marks.settle();
        self.forgotten.settle();
        self.events.settle();
        self.told.settle();
        self.outdated.settle();
        self.revised.clear();
    }

    pub(super) fn undo(&mut self) {
        self.users.undo();
        self.heads.undo();
        self.marks.undo();
        self.forgotten.undo();
        self.events.undo();
        self.told.undo();
        self.outdated.undo();
        self.revised.clear();
    }

    pub(super) fn committed(&self) -> Committed {
        let broadcast_state = self.heads.rows.get(&StreamKey::broadcast_state()).filter(|(loaded, now)| loaded != now);
        Committed {
            heads: self.heads.changed().map(|(key, stream)| (key.clone(), stream.clone())).collect(),
            notices: Vec::new(),
            broadcast_state_before: broadcast_state.map(|(loaded, _)| loaded.head),
        }
    }

    /// What changed of users' own rows, as entries in the cache hold it.
    pub(super) fn parts(&self, parts: &mut BTreeMap<UserId, Parts>) {
        for (user, (loaded, now)) in self.users.rows.iter().filter(|(_, (loaded, now))| loaded.revision != now.revision) {
            if *loaded == User::default() || !shows_same(loaded, now) {
                parts.entry(*user).or_default().extend([user_part(now)]);
            }
            if loaded.settings != now.settings {
                parts.entry(*user).or_default().extend([settings_part(now)]);
            }
        }
    }

    /// The user's revision before the batch and after it.
    pub(super) fn revisions(&self, user: UserId) -> (Revision, Revision) {
        let (before, after) = self.users.rows.get(&user).map_or((0, 0), |(loaded, now)| (loaded.revision, now.revision));
        // No entry is at that revision, so the change fits none.
        (if self.outdated.get(&user) { -1 } else { before }, after)
    }

    /// The users of whom marks are forgotten.
    pub fn forgotten(&self) -> impl Iterator<Item = UserId> + '_ {
        self.forgotten.changed().map(|(user, _)| *user)
    }

    /// Whether the batch holds this mark.
    #[must_use]
    pub fn has_mark(&self, key: &MarkKey) -> bool {
        self.marks.rows.contains_key(key)
    }

    /// Marks that a feature has loaded.
    pub fn add_marks(&mut self, marks: Vec<(MarkKey, Mark)>) {
        self.marks.insert_loaded(marks);
    }

    /// The head of a shared stream as it is now.
    #[must_use]
    pub fn head(&self, key: &StreamKey) -> Stream {
        self.heads.get(key)
    }

    /// How many channels, or dots, there are now. Known where a head that was asked for would be a
    /// new one's.
    #[must_use]
    pub fn shared_count(&self, kind: Kind) -> i64 {
        self.count_of(kind, |count| count.there, Stream::is_alive)
    }

    /// How many names of channels, or of dots, were ever used; known as [`Self::shared_count`] is.
    #[must_use]
    pub fn shared_names(&self, kind: Kind) -> i64 {
        self.count_of(kind, |count| count.names, |stream| stream.head > 0)
    }

    fn count_of(&self, kind: Kind, before: fn(&SharedCount) -> i64, counts: fn(&Stream) -> bool) -> i64 {
        let before: i64 = self.shared_counts.iter().filter(|count| count.kind == kind).map(before).sum();
        let change = |(_, (loaded, now)): (&StreamKey, &(Stream, Stream))| i64::from(counts(now)) - i64::from(counts(loaded));
        let of_kind = self.heads.rows.iter().filter(|(key, _)| key.kind == kind);
        before.saturating_add(of_kind.map(change).sum())
    }

    /// Sets the head of a shared stream. No user's revision changes.
    pub fn set_head(&mut self, key: &StreamKey, stream: Stream) {
        self.heads.set(key, stream);
    }

    /// Tells those who read along what happened. Rows that only one may change at a time must be
    /// locked by then: their order is that of the events.
    pub fn event(&mut self, now: UnixMs, event: &events::Event) {
        self.events.add(now, event);
    }

    /// The numbers of this user changed without a write to its rows. With a push device, services
    /// are told.
    pub fn tell_unread(&mut self, user: UserId) {
        self.told.set(&user, true);
    }

    /// Whether anything happened that is told.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || self.changed_with_push().next().is_some()
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

    /// One mark as it is now.
    #[must_use]
    pub fn mark(&self, user: UserId, kind: Kind, name: &Name) -> Mark {
        self.mark_at(&MarkKey::new(user, kind, name))
    }

    /// One mark by its key, as it is now.
    #[must_use]
    pub fn mark_at(&self, key: &MarkKey) -> Mark {
        if !is_own(key.kind) {
            return self.marks.get(key);
        }
        self.users.look(&key.user).map(|row| row.marks.get(key.kind, &key.name)).unwrap_or_default()
    }

    /// The names of all counters of a user, or of its marks of another kind in its own row.
    #[must_use]
    pub fn names_of(&self, user: UserId, kind: Kind) -> Vec<Arc<str>> {
        self.users.look(&user).into_iter().flat_map(|row| row.marks.of_kind(kind)).map(|mark| mark.name.into()).collect()
    }

    /// Sets a mark and raises the user's revision, once for each command. A mark that is the same
    /// changes nothing.
    pub fn set_mark(&mut self, user: UserId, kind: Kind, name: &Name, mark: Mark) {
        self.set_mark_at(&MarkKey::new(user, kind, name), mark);
    }

    /// The same by the mark's key.
    pub fn set_mark_at(&mut self, key: &MarkKey, mark: Mark) {
        if self.mark_at(key) == mark {
            return;
        }
        if is_own(key.kind) {
            self.revise(key.user, |row| row.marks.set(key.kind, &key.name, &mark));
        } else {
            self.revise(key.user, |_| {});
            self.marks.set(key, mark);
        }
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

    /// Deletes a counter of the user, whose head is kept.
    pub fn delete_counter(&mut self, user: UserId, name: &Name) {
        if self.has_counter(user, name) {
            self.revise(user, |row| _ = row.marks.delete_counter(name.as_str()));
        }
    }

    /// Whether the user has this counter now.
    #[must_use]
    pub fn has_counter(&self, user: UserId, name: &Name) -> bool {
        self.users.look(&user).is_some_and(|row| row.marks.has(Kind::Counter, name.as_str()))
    }

    /// Where the user has more marks of channels or dots than this, those go that tell nothing any
    /// more: what they cover was deleted. No number changes by it.
    pub fn bound_marks(&mut self, user: UserId, kind: Kind, most: usize, is_over: impl Fn(&str, i64) -> bool) {
        let has_more = |row: &User| row.marks.of_kind(kind).count() > most;
        if self.users.look(&user).is_some_and(has_more) {
            self.revise(user, |row| row.marks.retain(kind, |name, mark| !is_over(name, mark)));
        }
    }

    /// How many counters the user has now.
    #[must_use]
    pub fn counters(&self, user: UserId) -> usize {
        self.users.look(&user).map_or(0, |row| row.marks.of_kind(Kind::Counter).count())
    }

    /// How large the user's marks of counters, channels and dots are, in bytes.
    #[must_use]
    pub fn marks_bytes(&self, user: UserId) -> usize {
        self.users.look(&user).map_or(0, |row| row.marks.as_str().len())
    }

    /// The revision that the user has now.
    #[must_use]
    pub fn revision(&self, user: UserId) -> Revision {
        self.users.look(&user).map_or(0, |row| row.revision)
    }
}
