//! Entries that are polled live on.
//!
//! Whatever ends a key's life later is a change of the key. After a change Redis tells nobody of the
//! next one who has not read the key again, and this node is to go on showing its copy. So it reads
//! the key in the same step.

use deadpool_redis::redis::{Cmd, Value, cmd};

use super::Redis;
use super::reads::nanos;
use super::shared::{COMMANDS_PER_PIPELINE, Replies};
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
        let (shared, deadline) = (&self.shared, self.shared.deadline());
        let connection = self.reads.connection(shared, deadline).await?;
        self.still(epoch, ())?;
        let mut extended = 0;
        for chunk in users.chunks(COMMANDS_PER_PIPELINE / 2) {
            let lives: Vec<_> = chunk.iter().map(|_| shared.scripts.life_ms()).collect();
            let keys: Vec<_> = chunk.iter().map(|&user| shared.key(user)).collect();
            let commands = if connection.tells { live_on_together(&keys, &lives) } else { live_on(&keys, &lives).collect() };
            let replies = connection.send(shared, commands, deadline).await;
            let done = replies.map(|replies| if connection.tells { done_together(replies) } else { done(replies) });
            let now = connection.now();
            for (at, (&user, &life_ms)) in chunk.iter().zip(&lives).enumerate() {
                if done.as_ref().is_ok_and(|done| done.get(at) == Some(&true)) {
                    extended += 1;
                    self.reads.copies.ends_soon(user, now.saturating_add(nanos(self.ending.wait(life_ms))));
                } else {
                    // Should it have ended by this question, this node was not told.
                    self.reads.copies.remove(user);
                }
            }
            done?;
        }
        Ok(extended)
    }
}

fn on(name: &str, key: &str) -> Cmd {
    let mut command = cmd(name);
    command.arg(key);
    command
}

/// Each of these keys lives on for so many milliseconds, if it is there and would end earlier.
fn live_on(keys: &[String], lives_ms: &[u64]) -> impl Iterator<Item = Cmd> {
    keys.iter().zip(lives_ms).map(|(key, life_ms)| {
        let mut expire = on("PEXPIRE", key);
        expire.arg(*life_ms).arg("GT");
        expire
    })
}

/// The same in one step, with which they are read.
fn live_on_together(keys: &[String], lives_ms: &[u64]) -> Vec<Cmd> {
    let each = live_on(keys, lives_ms).zip(keys).flat_map(|(expire, key)| [expire, on("HLEN", key)]);
    std::iter::once(cmd("MULTI")).chain(each).chain([cmd("EXEC")]).collect()
}

/// Which keys do, by the replies to [`live_on`].
fn done(replies: Replies) -> Vec<bool> {
    replies.into_iter().map(|reply| reply == Ok(Value::Int(1))).collect()
}

/// Which keys do, by the replies to [`live_on_together`]: the last one has all.
fn done_together(mut replies: Replies) -> Vec<bool> {
    match replies.pop() {
        Some(Ok(Value::Array(answers))) => answers.chunks(2).map(|answer| answer.first() == Some(&Value::Int(1))).collect(),
        _ => Vec::new(),
    }
}
