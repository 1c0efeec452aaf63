//! What every feature shares in a batch: users' own rows, their marks, the heads of shared streams,
//! events.

mod heads;
mod marks;
mod save;
mod users;

use std::collections::BTreeSet;

use futures_util::future::try_join;

pub(super) use self::heads::FoundHeads;
use super::super::entry_parts::EntryParts;
use super::super::needs::Needs;
use super::super::table::Table;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::db::{DbResult, Pipeline};
use crate::engine::erased::Erased;
use crate::engine::events;
use crate::engine::heads::store::SharedCount;
use crate::engine::heads::{Batch, Committed};
use crate::engine::marks::parts::{settings_part, shows_same, user_part};
use crate::engine::marks::users::{self as user_rows, User};
use crate::engine::marks::{Mark, MarkKey, Stream, StreamKey, UserSettings, store};

/// The rows that every feature shares.
#[derive(Debug, Default)]
pub struct Core {
    users: Table<UserId, User>,
    marks: Table<MarkKey, Mark>,
    heads: Table<StreamKey, Stream>,
    /// Those of them that had no row before the batch.
    made_heads: Vec<StreamKey>,
    /// Users whose rows are taken as they are known, without a lock.
    unlocked: Vec<UserId>,
    /// Whether users' rows get another version also where nothing in them changed.
    writes_all: bool,
    /// Whether rows are as commands say, without a look.
    assumes: bool,
    /// Users who have no row yet, and get one with this batch.
    new: BTreeSet<UserId>,
    /// Those of them who get one only if something of it changes.
    if_changed: BTreeSet<UserId>,
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
        let users = async { if users.is_empty() { Ok(Vec::new()) } else { user_rows::lock_users(pipeline, &users).await } };
        let marks = async { if marks.is_empty() { Ok(Vec::new()) } else { store::load_marks(pipeline, &marks).await } };
        let (users, marks) = try_join(users, marks).await?;
        self.add_locked(needs, users);
        self.marks.insert_loaded(marks);
        Ok(())
    }

    /// Rows that are locked. The others are made when the batch is written: as they are by then, in one
    /// go, and mostly also where nothing changed, since that keeps out another batch that found none either.
    fn add_locked(&mut self, needs: &Needs, users: Vec<(UserId, User)>) {
        self.has_erased |= users.iter().any(|(_, row)| row.settings.is_erased());
        self.users.insert_loaded(users);
        self.new = needs.users.iter().filter(|user| self.users.look(user).is_none()).copied().collect();
        self.if_changed = self.new.intersection(&needs.if_changed).copied().collect();
        self.users.insert_loaded(self.new.iter().map(|user| (*user, User::default())));
    }

    /// Whether the user has a row once this is committed.
    fn has_row(&self, user: UserId, loaded: &User, now: &User) -> bool {
        !self.gone.contains(&user) && (loaded != now || !self.if_changed.contains(&user))
    }

    /// Users who get a row with this batch.
    pub(in crate::engine::lanes) fn made_users(&self) -> Vec<UserId> {
        let is_made = |user: &UserId| self.users.rows.get(user).is_some_and(|(loaded, now)| self.has_row(*user, loaded, now));
        self.new.iter().copied().filter(is_made).collect()
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
        self.users.rows.iter().filter(|(user, (loaded, now))| self.has_row(**user, loaded, now)).map(after).collect()
    }

    fn is_written(&self, loaded: &User, now: &User) -> bool {
        self.writes_all || loaded != now
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
    pub(super) fn parts(&self, parts: &mut EntryParts<'_>) {
        for (user, (loaded, now)) in self.users.rows.iter().filter(|(_, (loaded, now))| loaded.revision != now.revision) {
            if *loaded == User::default() || !shows_same(loaded, now) {
                parts.add(*user, || Some(user_part(now)));
            }
            if loaded.settings != now.settings {
                parts.add(*user, || Some(settings_part(now)));
            }
        }
    }

    /// The user's revision before the batch and after it.
    pub(super) fn revisions(&self, user: UserId) -> (Revision, Revision) {
        let (before, after) = self.users.rows.get(&user).map_or((0, 0), |(loaded, now)| (loaded.revision, now.revision));
        // No entry is at that revision, so the change fits none.
        (if self.outdated.get(&user) { -1 } else { before }, after)
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
}
