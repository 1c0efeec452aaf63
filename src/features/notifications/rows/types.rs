//! The numbers of each type in a batch, and how a new type finds room among those that a user has.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::MAX_TYPES;
use super::super::entry::Count;
use super::super::type_store::{self, TypeRow};
use super::{NotificationNeeds, NotificationRows};
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline};

/// Which of a user's types go for a new one: as many as would be too many, of those without anything unread. A type
/// that is not there says the same as one whose numbers are 0. None where too few of them are like that.
fn make_room(types: i64, known: &[(Arc<str>, Count)]) -> Option<Vec<Arc<str>>> {
    let too_many = usize::try_from(types + 1 - MAX_TYPES).unwrap_or(0);
    let empty = known.iter().filter(|(_, count)| count.unread <= 0);
    let gone: Vec<_> = empty.take(too_many).map(|(kind, _)| Arc::clone(kind)).collect();
    (gone.len() == too_many).then_some(gone)
}

impl NotificationRows {
    pub(super) fn take_types(&mut self, rows: Vec<TypeRow>) {
        let kind =
            |(user, kind, unread, seen): TypeRow| Some(((UserId::try_from(user).ok()?, Arc::from(kind)), Some(Count { unread, seen })));
        self.types.insert_loaded(rows.into_iter().filter_map(kind));
    }

    /// The numbers of the types that are asked for, and of what was loaded of entries. Of a user who may come to have
    /// too many, also types that can make room: one for each that is asked for, as each needs room or fills one of them.
    pub(super) async fn load_types(&mut self, pipeline: &Pipeline, needs: &NotificationNeeds) -> DbResult<()> {
        let mut types = needs.types.clone();
        types.extend(self.entries.rows.iter().filter_map(|((user, _), (_, now))| Some((*user, Arc::clone(&now.as_ref()?.kind)))));
        let mut asked: BTreeMap<UserId, i64> = BTreeMap::new();
        for (user, kind, unread, seen, count) in type_store::load(pipeline, &types).await? {
            let Ok(user) = UserId::try_from(user) else { continue };
            *asked.entry(user).or_default() += 1;
            if unread < 0 {
                self.type_counts.insert_loaded([(user, count)]);
            } else {
                self.types.insert_loaded([((user, Arc::from(kind)), Some(Count { unread, seen }))]);
            }
        }
        let full = |(user, asked): (UserId, i64)| {
            let types = self.type_count(user);
            (types + asked > MAX_TYPES).then_some((user, asked + (types - MAX_TYPES).max(0)))
        };
        let full: Vec<_> = asked.into_iter().filter_map(full).collect();
        let empty = type_store::load_empty(pipeline, &full).await?;
        self.take_types(empty);
        Ok(())
    }

    pub(super) async fn save_types(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut saved, mut dropped) = (Vec::new(), Vec::new());
        for (key, count) in self.types.changed() {
            match count {
                Some(count) => saved.push((key, *count)),
                None => dropped.push(key),
            }
        }
        type_store::delete(conn, &dropped).await?;
        type_store::save(conn, &saved).await
    }

    /// The numbers of a type; None where the user has none of it.
    #[must_use]
    pub fn count(&self, user: UserId, kind: &Arc<str>) -> Option<Count> {
        self.types.get(&(user, Arc::clone(kind)))
    }

    /// Sets these.
    pub fn set_count(&mut self, user: UserId, kind: &Arc<str>, count: Count) {
        let key = (user, Arc::clone(kind));
        if self.types.get(&key).is_none() {
            let types = self.type_count(user);
            self.type_counts.set(&user, types + 1);
        }
        self.types.set(&key, Some(count));
    }

    /// Which types must go before these numbers are set: mostly none. None where there is no room for the type.
    #[must_use]
    pub fn room_for(&self, user: UserId, kind: &Arc<str>) -> Option<Vec<Arc<str>>> {
        let types = self.type_count(user);
        if types < MAX_TYPES || self.count(user, kind).is_some() {
            return Some(Vec::new());
        }
        make_room(types, &self.counts_of(user))
    }

    /// Drops a type that the user has.
    pub fn drop_type(&mut self, user: UserId, kind: &Arc<str>) {
        let types = self.type_count(user);
        self.type_counts.set(&user, types - 1);
        self.types.set(&(user, Arc::clone(kind)), None);
    }

    /// How many types a user has; known where one that was asked for would be new.
    #[must_use]
    pub fn type_count(&self, user: UserId) -> i64 {
        self.type_counts.get(&user)
    }

    /// The numbers of a user's types that are here.
    #[must_use]
    pub fn counts_of(&self, user: UserId) -> Vec<(Arc<str>, Count)> {
        let mine = self.types.from(&(user, Arc::from(""))).take_while(move |((of, _), _)| *of == user);
        mine.filter_map(|((_, kind), count)| Some((Arc::clone(kind), (*count)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn types_without_anything_unread_go_and_no_more_than_must(unread in prop::collection::vec(0..3_i64, 0..130)) {
            let numbers = |(at, unread): (i32, &i64)| (Arc::<str>::from(format!("t{at}")), Count { unread: *unread, seen: 0 });
            let known: Vec<_> = (100..).zip(&unread).map(numbers).collect();
            let types = i64::try_from(known.len()).unwrap();
            let full = unread.iter().filter(|unread| **unread > 0).count();
            match make_room(types, &known) {
                None => prop_assert!(full >= 100, "{full} have something"),
                Some(gone) => {
                    let is_empty = |kind: &Arc<str>| known.iter().any(|(of, count)| of == kind && *count == Count::default());
                    prop_assert!(full < 100 && gone.iter().all(is_empty), "{gone:?}");
                    prop_assert_eq!(gone.len(), known.len().saturating_sub(99), "the others and the new one are a hundred");
                }
            }
        }
    }
}
