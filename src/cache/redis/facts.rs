//! What Redis keeps of users and others: a hash for each user (`{u:42}:r`), by the other's id. A
//! look-up is one read of it, however many others it asks about. Beside it, while somebody writes,
//! who does (`{u:42}:rw`).

use std::sync::atomic::Ordering;

use deadpool_redis::redis::{Cmd, Value, cmd};

use super::Redis;
use super::scripts::{Form, is_yes, read_token};
use super::shared::{COMMANDS_PER_PIPELINE, Shared, unexpected_reply};
use super::wire::away;
use crate::base::ids::UserId;
use crate::cache::{CacheError, Facts, FillToken, Told, Writer};

impl Shared {
    fn facts_key(&self, user: UserId) -> String {
        format!("{}:r", self.key(user))
    }

    /// The hashes of these users, then who writes them.
    fn facts_keys(&self, users: impl Iterator<Item = UserId> + Clone) -> Vec<String> {
        let hashes = users.clone().map(|user| self.facts_key(user));
        hashes.chain(users.map(|user| format!("{}:rw", self.key(user)))).collect()
    }

    /// The epoch of a user's facts, whether they are complete, and a code for each other.
    fn hmget(&self, (user, others): &(UserId, &[UserId])) -> Cmd {
        let mut get = cmd("HMGET");
        get.arg(self.facts_key(*user)).arg("!e").arg("!c");
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

/// What a user's hash tells in this epoch: one of another says nothing.
fn told(reply: &Value, epoch: i64) -> Option<Told> {
    let Value::Array(values) = reply else { return None };
    let [of, complete, codes @ ..] = values.as_slice() else { return None };
    let holds = number(of) == Some(epoch);
    let complete = holds && number(complete) == Some(1);
    let code = |value: &Value| match value {
        Value::Nil if complete => Some(0),
        value => number(value).filter(|_| holds),
    };
    Some(Told { complete, codes: codes.iter().map(code).collect() })
}

impl Redis {
    pub(in crate::cache) async fn get_facts(&self, asked: &[(UserId, &[UserId])]) -> Result<Vec<Told>, CacheError> {
        let shared = &self.shared;
        let deadline = shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        let mut facts = Vec::with_capacity(asked.len());
        for chunk in asked.chunks(COMMANDS_PER_PIPELINE) {
            let commands = chunk.iter().map(|one| shared.hmget(one)).collect();
            for result in shared.send(shared.scripts_wire(), commands, deadline).await? {
                let reply = result.map_err(|error| away(&error))?;
                facts.push(told(&reply, epoch).ok_or_else(unexpected_reply)?);
            }
        }
        Ok(facts)
    }

    pub(in crate::cache) async fn facts_tokens(&self, users: &[UserId]) -> Result<Vec<Option<FillToken>>, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call =
            |user: &UserId, form| shared.scripts.facts_token(form, &shared.facts_keys([*user].into_iter()), self.nonces.next(), epoch);
        let replies = shared.run(users, shared.deadline(), call).await?;
        replies.iter().map(|reply| read_token(reply).ok_or_else(unexpected_reply)).collect()
    }

    pub(in crate::cache) async fn fill_facts(&self, facts: &[Facts]) -> Result<usize, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |facts: &Facts, form| shared.scripts.fill_facts(form, &shared.facts_keys([facts.user].into_iter()), epoch, facts);
        let replies = shared.run(facts, shared.deadline(), call).await?;
        Ok(replies.iter().filter(|reply| is_yes(reply)).count())
    }

    pub(in crate::cache) async fn begin_facts_write(&self, written: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        let scripts = &self.shared.scripts;
        self.for_facts(written, |keys, written, form| scripts.begin_facts_write(form, keys, written, writer)).await
    }

    pub(in crate::cache) async fn end_facts_write(&self, written: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        let scripts = &self.shared.scripts;
        self.for_facts(written, |keys, written, form| scripts.end_facts_write(form, keys, written, writer)).await
    }

    async fn for_facts(
        &self,
        written: &[(UserId, Vec<UserId>)],
        call: impl Fn(&[String], &[(UserId, Vec<UserId>)], Form) -> Cmd,
    ) -> Result<(), CacheError> {
        let shared = &self.shared;
        let call = |chunk: &[(UserId, Vec<UserId>)], form| call(&shared.facts_keys(chunk.iter().map(|(user, _)| *user)), chunk, form);
        shared.run_chunks(written, call).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_another_epoch_say_nothing() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let reply = |epoch: Value, complete| Value::Array(vec![epoch, complete, bulk("17"), Value::Nil, bulk("?"), bulk("0")]);
        let codes = vec![Some(17), None, None, Some(0)];
        assert_eq!(told(&reply(bulk("3"), Value::Nil), 3), Some(Told { complete: false, codes }));
        let codes = vec![Some(17), Some(0), None, Some(0)];
        assert_eq!(told(&reply(bulk("3"), bulk("1")), 3), Some(Told { complete: true, codes }), "one who is not there is nothing");
        for epoch in [bulk("4"), bulk(""), Value::Nil] {
            assert_eq!(told(&reply(epoch, bulk("1")), 3), Some(Told { complete: false, codes: vec![None; 4] }));
        }
        for odd in [Value::Array(Vec::new()), Value::Array(vec![bulk("3")]), Value::Nil, Value::Int(1)] {
            assert_eq!(told(&odd, 3), None);
        }
    }
}
