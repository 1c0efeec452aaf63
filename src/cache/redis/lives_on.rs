//! Entries that are polled live on.
//!
//! A longer life is a change of the key: it ends all copies of the entry, of this node too. So this
//! node reads them again, many at once, and goes on with what was kept with those that say the same.

use deadpool_redis::redis::cmd;
use tokio::time::Instant;

use super::Redis;
use super::reads::Connection;
use super::scripts::is_yes;
use super::shared::COMMANDS_PER_PIPELINE;
use crate::base::ids::UserId;
use crate::cache::{CacheError, Revision};

impl Redis {
    /// Users who are polled while their entries end soon, with the revisions that these show; once
    /// there are any.
    pub(in crate::cache) async fn ending(&self) -> Vec<(UserId, Revision)> {
        self.ending.take().await
    }

    /// Lets entries live on that SQL has shown to be as new as it, in this epoch. How many do.
    ///
    /// Whatever changed one meanwhile has given it a new life too. So it is not looked at again here.
    pub(in crate::cache) async fn extend(&self, epoch: i64, users: &[UserId]) -> Result<usize, CacheError> {
        let deadline = self.shared.deadline();
        let connection = self.reads.connection(&self.shared, deadline).await?;
        self.still(epoch, ())?;
        let mut extended = 0;
        for chunk in users.chunks(COMMANDS_PER_PIPELINE / 2) {
            extended += self.extend_some(epoch, chunk, &connection, deadline).await?;
        }
        Ok(extended)
    }

    async fn extend_some(&self, epoch: i64, users: &[UserId], connection: &Connection, deadline: Instant) -> Result<usize, CacheError> {
        let (shared, copies) = (&self.shared, &self.reads.copies);
        let now = connection.now();
        let had: Vec<_> = users.iter().map(|&user| copies.get(user, epoch, connection.number, now)).collect();
        let expire = |&user: &UserId| {
            let mut expire = cmd("PEXPIRE");
            expire.arg(shared.key(user)).arg(shared.scripts.life_ms()).arg("GT");
            expire
        };
        // With the reply to the last one, this node has heard that its copies have ended.
        let fence = connection.tells.then(|| cmd("PING"));
        let replies = connection.send(shared, users.iter().map(expire).chain(fence).collect(), deadline).await?;
        let extended = |(at, user): (usize, &UserId)| replies.get(at)?.as_ref().is_ok_and(is_yes).then_some((*user, at));
        let extended: Vec<_> = users.iter().enumerate().filter_map(extended).collect();
        if connection.tells {
            let read: Vec<_> = extended.iter().filter(|(_, at)| had.get(*at).is_some_and(Option::is_some)).copied().collect();
            let users: Vec<_> = read.iter().map(|(user, _)| *user).collect();
            let entries = self.ask_over(&users, epoch, connection, deadline).await?;
            for ((user, at), entry) in read.into_iter().zip(entries) {
                if let (Some(entry), Some(Some(copy))) = (entry, had.get(at))
                    && **entry == **copy.entry
                    && let Some(derived) = copy.entry.all_derived()
                {
                    copies.keep(user, &entry, derived);
                }
            }
        }
        Ok(extended.len())
    }
}
