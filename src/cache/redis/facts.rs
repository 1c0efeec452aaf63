//! What Redis keeps of users and others: a hash for each user (`{u:42}:r`), by the other's id. A
//! look-up is one read of it, however many others it asks about.

use std::sync::atomic::Ordering;

use deadpool_redis::redis::{Cmd, Value, cmd};

use super::Redis;
use super::scripts::{is_yes, read_token};
use super::shared::{COMMANDS_PER_PIPELINE, Shared, unexpected_reply};
use super::wire::away;
use crate::base::ids::UserId;
use crate::cache::{CacheError, FillToken};

impl Shared {
    pub(super) fn facts_key(&self, user: UserId) -> String {
        format!("{}:r", self.key(user))
    }

    /// Whether a user's facts are clean, and a number for each other.
    fn hmget(&self, (user, others): &(UserId, &[UserId])) -> Cmd {
        let mut get = cmd("HMGET");
        get.arg(self.facts_key(*user)).arg("!r").arg("!e").arg("!d");
        others.iter().for_each(|other| {
            get.arg(other.get());
        });
        get
    }
}

/// The number in a field.
fn number<T: std::str::FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

/// What a user's hash tells in this epoch: nothing if it is of another, or dirty. None if the reply
/// has another form.
fn told(reply: &Value, epoch: i64) -> Option<Option<Vec<u8>>> {
    let Value::Array(values) = reply else { return None };
    let [revision, of, dirt, codes @ ..] = values.as_slice() else { return None };
    if *revision == Value::Nil || *dirt != Value::Nil || number(of) != Some(epoch) {
        return Some(None);
    }
    let code = |value: &Value| if *value == Value::Nil { Some(0) } else { number(value) };
    codes.iter().map(code).collect::<Option<_>>().map(Some)
}

impl Redis {
    pub(in crate::cache) async fn get_facts(&self, asked: &[(UserId, &[UserId])]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        let shared = &self.shared;
        let deadline = shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        // Which is to a run of Redis whose entries may be read.
        self.reads.connection(shared, deadline).await?;
        let mut facts = Vec::with_capacity(asked.len());
        for chunk in asked.chunks(COMMANDS_PER_PIPELINE) {
            let commands = chunk.iter().map(|one| shared.hmget(one)).collect();
            for result in shared.send(shared.scripts_wire()?, commands, deadline).await? {
                let reply = result.map_err(|error| away(&error))?;
                facts.push(told(&reply, epoch).ok_or_else(unexpected_reply)?);
            }
        }
        self.still(epoch, facts)
    }

    pub(in crate::cache) async fn facts_token(&self, user: UserId) -> Result<Option<FillToken>, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |&user: &UserId, form| shared.scripts.facts_token(form, &shared.facts_key(user), self.nonces.next(), epoch);
        let replies = shared.run(&[user], shared.deadline(), call).await?;
        replies.first().and_then(read_token).ok_or_else(unexpected_reply)
    }

    pub(in crate::cache) async fn fill_facts(&self, user: UserId, token: FillToken, codes: &[(UserId, u8)]) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |&user: &UserId, form| shared.scripts.fill_facts(form, &shared.facts_key(user), token, epoch, codes);
        let replies = shared.run(&[user], shared.deadline(), call).await?;
        Ok(replies.first().is_some_and(is_yes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_are_dirty_or_of_another_epoch_say_nothing() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let reply = |epoch: &str, dirt: Value| Value::Array(vec![bulk("0"), bulk(epoch), dirt, bulk("17"), Value::Nil]);
        assert_eq!(told(&reply("3", Value::Nil), 3), Some(Some(vec![17, 0])), "one who is not there is nothing");
        assert_eq!(told(&reply("3", bulk("1")), 3), Some(None));
        for epoch in ["4", ""] {
            assert_eq!(told(&reply(epoch, Value::Nil), 3), Some(None));
        }
        assert_eq!(told(&Value::Array(vec![Value::Nil; 5]), 3), Some(None), "there is no hash");
        for odd in [Value::Array(Vec::new()), Value::Array(vec![bulk("0"), bulk("3")]), Value::Nil, Value::Int(1)] {
            assert_eq!(told(&odd, 3), None);
        }
    }
}
