//! Entries that are polled live on.
//!
//! A longer life is a change of the key: it ends all copies of the entry, of this node too. This node
//! asks whether the entry is still the same, and goes on showing what it had.

use std::sync::Arc;

use deadpool_redis::redis::{Value, cmd};
use tokio::time::Instant;

use super::Redis;
use super::copies::{Life, Reading};
use super::reads::Connection;
use super::scripts::is_yes;
use super::shared::{COMMANDS_PER_PIPELINE, unexpected_reply};
use crate::base::ids::UserId;
use crate::cache::{CacheError, ReadEntry, Revision};

/// A copy that this node had of an entry that lives on.
struct Had {
    user: UserId,
    entry: Arc<ReadEntry>,
    life: Life,
}

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
        let (shared, deadline) = (&self.shared, self.shared.deadline());
        let connection = self.reads.connection(shared, deadline).await?;
        self.still(epoch, ())?;
        let mut extended = 0;
        for chunk in users.chunks(COMMANDS_PER_PIPELINE - 1) {
            let asked = connection.now();
            let lives: Vec<_> = chunk.iter().map(|_| shared.scripts.life_ms()).collect();
            let copy = |&user: &UserId| self.reads.copies.get(user, epoch, connection.number, asked);
            let before: Vec<_> = if connection.tells { chunk.iter().map(copy).collect() } else { Vec::new() };
            let expire = |(&user, life_ms): (&UserId, &u64)| {
                let mut expire = cmd("PEXPIRE");
                expire.arg(shared.key(user)).arg(*life_ms).arg("GT");
                expire
            };
            // With the reply to the last one, this node has heard that its copies have ended.
            let commands = chunk.iter().zip(&lives).map(expire).chain([cmd("PING")]).collect();
            let replies = connection.send(shared, commands, deadline).await?;
            let mut had = Vec::new();
            for ((&user, &life_ms), (at, reply)) in chunk.iter().zip(&lives).zip(replies.iter().enumerate()) {
                if !reply.as_ref().is_ok_and(is_yes) {
                    continue;
                }
                extended += 1;
                if let Some(Some(copy)) = before.get(at) {
                    had.push(Had { user, entry: Arc::clone(&copy.entry), life: self.ending.life(asked, life_ms) });
                }
            }
            self.keep_copies(epoch, had, &connection, deadline).await?;
        }
        Ok(extended)
    }

    /// Goes on showing those of which Redis says that they have not changed.
    async fn keep_copies(&self, epoch: i64, had: Vec<Had>, connection: &Connection, deadline: Instant) -> Result<(), CacheError> {
        if had.is_empty() {
            return Ok(());
        }
        let (shared, copies) = (&self.shared, &self.reads.copies);
        let readings: Vec<Reading> = had.iter().map(|had| copies.begin(had.user, connection.number)).collect();
        let ask = |had: &Had| {
            let mut ask = cmd("HMGET");
            ask.arg(shared.key(had.user)).arg("!r").arg("!e").arg("!d");
            ask
        };
        let replies = connection.send(shared, had.iter().map(ask).collect(), deadline).await?;
        if replies.len() != had.len() {
            return Err(unexpected_reply());
        }
        for ((Had { user, entry, life }, reading), reply) in had.iter().zip(&readings).zip(replies) {
            if reply.is_ok_and(|reply| is_clean_at(&reply, entry.revision, epoch)) {
                copies.put(*user, epoch, reading, entry, *life);
            }
        }
        Ok(())
    }
}

/// Whether an entry is clean at this revision of this epoch, by its fields for that.
fn is_clean_at(reply: &Value, revision: Revision, epoch: i64) -> bool {
    let is = |value: &Value, number: i64| matches!(value, Value::BulkString(bytes) if *bytes == number.to_string().as_bytes());
    match reply {
        Value::Array(fields) => match fields.as_slice() {
            [of, in_epoch, dirt] => is(of, revision) && is(in_epoch, epoch) && *dirt == Value::Nil,
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_the_same_at_its_revision_of_its_epoch_without_dirt() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let reply = |dirt| Value::Array(vec![bulk("8"), bulk("-3"), dirt]);
        assert!(is_clean_at(&reply(Value::Nil), 8, -3));
        assert!(!is_clean_at(&reply(bulk("1")), 8, -3));
        assert!(!is_clean_at(&reply(Value::Nil), 9, -3) && !is_clean_at(&reply(Value::Nil), 8, 3));
        for odd in [Value::Array(vec![Value::Nil; 3]), Value::Array(vec![bulk("8"), bulk("-3")]), Value::Nil] {
            assert!(!is_clean_at(&odd, 8, -3));
        }
    }
}
