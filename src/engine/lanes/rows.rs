//! The rows that a batch works on: loaded together, changed by pure functions, written back
//! together.
//!
//! [`Core`] has what every feature shares: users, marks, heads, events. What a feature adds is its
//! [`RowSet`].

mod core;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::ops::{Deref, DerefMut};

use futures_util::future::{try_join_all, try_join3};

pub use self::core::Core;
use self::core::FoundHeads;
use super::entry_parts::EntryParts;
use super::needs::Needs;
use super::row_set::{AnyRowSet, NewRowSet, RowSet};
use crate::base::ids::UserId;
use crate::cache::{Change, FactsChange, Parts};
use crate::db::{Conn, DbResult, Pipeline};
use crate::engine::erased;
use crate::engine::heads::{self, Batch, Committed};
use crate::engine::marks::StreamKey;
use crate::engine::marks::users::User;

/// All rows of a batch.
#[derive(Debug)]
pub struct Rows {
    core: Core,
    /// In the order in which they are locked.
    sets: Vec<Box<dyn AnyRowSet>>,
}

impl Deref for Rows {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Rows {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Rows {
    /// With nothing loaded.
    #[must_use]
    pub fn new(sets: &[NewRowSet]) -> Self {
        Self { core: Core::default(), sets: sets.iter().map(|set| set.make()).collect() }
    }

    /// A feature's rows.
    #[must_use]
    pub fn get<R: RowSet>(&self) -> &R {
        let found = self.sets.iter().find_map(|set| (&**set as &dyn Any).downcast_ref());
        found.unwrap_or_else(|| unreachable!("{} is not in the list of row sets", std::any::type_name::<R>()))
    }

    /// A feature's rows, to change them.
    pub fn get_mut<R: RowSet>(&mut self) -> &mut R {
        let found = self.sets.iter_mut().find_map(|set| (&mut **set as &mut dyn Any).downcast_mut());
        found.unwrap_or_else(|| unreachable!("{} is not in the list of row sets", std::any::type_name::<R>()))
    }

    /// Takes the locks that must come before everything else of a transaction.
    pub async fn lock(&self, conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        for set in &self.sets {
            if let Some(lock) = set.lock(conn, needs) {
                lock.await?;
            }
        }
        Ok(())
    }

    /// Locks the users, then the heads that may change, and loads what is needed. Users first and
    /// alone: what is needed further may depend on who has no row yet.
    pub async fn load(&mut self, pipeline: &Pipeline, needs: &Needs) -> DbResult<()> {
        self.core.load_users(pipeline, needs).await?;
        let mut seen = needs.seen_heads.clone();
        self.sets.iter().for_each(|set| set.seen_heads(needs, &self.core, &mut seen));
        let core = &self.core;
        let sets = self.sets.iter_mut().filter_map(|set| set.load(pipeline, core, needs));
        // Both joins go in the order of what they join, which is the order of the locks.
        let asked = core.maybe_erased(needs);
        let (heads, _, erased) =
            try_join3(FoundHeads::load(pipeline, needs, &seen), try_join_all(sets), erased::find(pipeline, &asked)).await?;
        self.core.add_heads(heads);
        self.core.add_erased(asked, erased);
        self.sets.iter_mut().for_each(|set| self.core.add_marks(set.take_marks()));
        Ok(())
    }

    /// Takes these users' rows as they are known, without a lock, and loads what is only looked at.
    pub(super) async fn load_known(
        &mut self,
        pipeline: &Pipeline,
        needs: &Needs,
        users: Vec<(UserId, User)>,
        write_all: bool,
    ) -> DbResult<()> {
        self.core.add_users(users, write_all);
        self.core.add_heads(FoundHeads::load(pipeline, needs, &needs.seen_heads).await?);
        Ok(())
    }

    pub async fn save(&self, conn: &mut Conn, batch: Batch) -> DbResult<()> {
        self.core.save(conn, batch).await?;
        for set in &self.sets {
            set.save(conn, &self.core, batch).await?;
        }
        let is_free = |head: &StreamKey| self.sets.iter().all(|set| !set.are_under(head));
        let unset: Vec<_> = self.core.unset_heads().filter(is_free).collect();
        if !unset.is_empty() {
            heads::store::unmake(conn, &unset).await?;
        }
        self.core.save_events(conn, batch.now).await
    }

    /// The command took effect: what it did stays.
    pub fn settle(&mut self) {
        self.core.settle();
        self.sets.iter_mut().for_each(|set| set.settle());
    }

    /// The command was refused: everything is as before it.
    pub fn undo(&mut self) {
        self.core.undo();
        self.sets.iter_mut().for_each(|set| set.undo());
    }

    /// What the batch changed of what users share.
    #[must_use]
    pub fn committed(&self) -> Committed {
        Committed { notices: self.sets.iter().flat_map(|set| set.notices()).collect(), ..self.core.committed() }
    }

    /// The users whose facts in the cache the batch may change.
    #[must_use]
    pub fn facts(&self, needs: &Needs) -> Vec<UserId> {
        self.sets.iter().flat_map(|set| set.facts(needs)).collect()
    }

    /// These users' facts as the batch leaves them: one change for each, also where nothing changed.
    #[must_use]
    pub fn facts_changes(&self, needs: &Needs, users: &[UserId], absent: &HashSet<UserId>) -> Vec<FactsChange> {
        let mut codes: BTreeMap<UserId, Vec<(UserId, u8)>> = BTreeMap::new();
        if users.len() > absent.len() {
            let all = self.sets.iter().flat_map(|set| set.facts_now(needs));
            all.for_each(|(user, other, code)| codes.entry(user).or_default().push((other, code)));
        }
        let mut codes = |user: &UserId| (!absent.contains(user)).then(|| codes.remove(user).unwrap_or_default());
        users.iter().map(|user| FactsChange { user: *user, codes: codes(user) }).collect()
    }

    /// What the batch did, for the cache: one change for each user that was needed, also where
    /// nothing changed.
    #[must_use]
    pub fn changes(&self, needs: &Needs, absent: &HashSet<UserId>) -> Vec<Change> {
        let mut parts = EntryParts::new(absent);
        self.core.parts(&mut parts);
        self.sets.iter().for_each(|set| set.parts(&mut parts));
        let change = |user: &UserId| {
            let (before, after) = self.core.revisions(*user);
            let parts = parts.take(*user);
            // The cache tells states apart by the revision alone.
            debug_assert!(after > before || parts.as_ref().is_none_or(Parts::is_empty), "user {user} at {before}: {parts:?}");
            Change { user: *user, before, after, parts }
        };
        needs.users.iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Name;
    use crate::engine::marks::{Kind, Mark, UserMarks};

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
        let mut rows = Rows::new(&[]);
        rows.set_mark(user, Kind::Counter, &like, advanced(&Mark::default(), 3));
        rows.settle();
        assert_eq!(rows.user(user), User { revision: 1, marks: UserMarks::from_row("c:like 3 3"), ..User::default() });

        let more = advanced(&rows.mark(user, Kind::Counter, &like), 2);
        rows.set_mark(user, Kind::Counter, &like, more);
        rows.set_mark(user, Kind::Counter, &follow, advanced(&Mark::default(), 1));
        assert_eq!(
            rows.user(user),
            User { revision: 2, marks: UserMarks::from_row("c:follow 1 1;c:like 5 5"), ..User::default() },
            "one revision for the whole command"
        );
        rows.undo();
        assert_eq!(rows.user(user), User { revision: 1, marks: UserMarks::from_row("c:like 3 3"), ..User::default() });
        assert_eq!(rows.mark(user, Kind::Counter, &like).head(), 3);
        assert_eq!(rows.mark(user, Kind::Counter, &follow).head(), 0);

        let same = rows.mark(user, Kind::Counter, &like);
        rows.set_mark(user, Kind::Counter, &like, same);
        rows.settle();
        assert_eq!(rows.revision(user), 1, "what changes nothing is no new revision");
    }
}
