//! What of the cache a batch may change: the entries of its users, and the facts of its pairs. Touched before the commit, left after it.

use crate::cache::{Cache, CacheError, Change, Writer};
use crate::ids::UserId;

use super::Needs;

/// What a batch may change.
#[derive(Debug)]
pub(super) struct Touched {
    users: Vec<UserId>,
    /// For each user the others of the user's pairs.
    facts: Vec<(UserId, Vec<UserId>)>,
}

impl Touched {
    /// Facts are kept in a shared cache only.
    pub(super) fn new(needs: &Needs, shared: bool) -> Self {
        let mut facts: Vec<(UserId, Vec<UserId>)> = Vec::new();
        // Both directions of each pair are there, in order: so each of the two is a user whose facts it changes.
        for pair in needs.follows.iter().filter(|_| shared) {
            match facts.last_mut() {
                Some((user, others)) if *user == pair.follower => others.push(pair.followee),
                _ => facts.push((pair.follower, vec![pair.followee])),
            }
        }
        Self { users: needs.users(), facts }
    }

    /// Puts the writer in; doing it again renews the lease.
    pub(super) async fn touch(&self, cache: &Cache, writer: Writer) -> Result<(), CacheError> {
        if self.facts.is_empty() {
            return cache.touch(&self.users, writer).await;
        }
        let (entries, facts) = tokio::join!(cache.touch(&self.users, writer), cache.touch_facts(&self.facts, writer));
        entries.and(facts)
    }

    /// After the commit.
    pub(super) async fn publish(&self, cache: &Cache, writer: Writer, changes: &[Change]) -> Result<(), CacheError> {
        if self.facts.is_empty() {
            return cache.publish(writer, changes).await;
        }
        let (entries, facts) = tokio::join!(cache.publish(writer, changes), cache.leave_facts(&self.facts, writer));
        entries.and(facts)
    }

    /// After the transaction was undone.
    pub(super) async fn leave(&self, cache: &Cache, writer: Writer) -> Result<(), CacheError> {
        let (entries, facts) = tokio::join!(cache.leave(&self.users, writer), cache.leave_facts(&self.facts, writer));
        entries.and(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relations::Pair;

    #[test]
    fn a_pair_is_among_the_facts_of_both() {
        let user = |id: i64| UserId::try_from(id).unwrap();
        let mut needs = Needs::default();
        for (a, b) in [(1, 9), (1, 2), (5, 1)] {
            needs.follow(Pair { follower: user(a), followee: user(b) });
        }
        needs.seen_block(Pair { follower: user(7), followee: user(8) });
        let touched = Touched::new(&needs, true);
        assert_eq!(touched.users, [user(1), user(5)]);
        let facts = [(1, vec![2, 5, 9]), (2, vec![1]), (5, vec![1]), (9, vec![1])];
        assert_eq!(touched.facts, facts.map(|(of, others)| (user(of), others.into_iter().map(user).collect::<Vec<_>>())));
        assert_eq!(Touched::new(&needs, false).facts, []);
    }
}
