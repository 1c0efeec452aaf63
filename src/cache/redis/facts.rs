//! What Redis keeps of users and others: a hash for each user (`{u:42}:r`), by the other's id. A look-up is one read of it, however many others it asks about.
//! Beside it, while somebody writes, who does (`{u:42}:rw`).

use std::sync::atomic::Ordering;

use deadpool_redis::redis::{Cmd, Value, cmd};

use super::scripts::{Form, is_yes, read_token};
use super::{COMMANDS_PER_PIPELINE, Redis, Shared, away, unexpected_reply};
use crate::cache::{CacheError, Facts, FillToken, Writer};
use crate::ids::UserId;

/// Users whose facts are touched before an answer is waited for anew: an import has thousands in a batch, and on a cluster each is a call of its own.
const USERS_PER_TURN: usize = 1024;

/// What a user and so many others are to each other, as far as it is known.
type Codes = Vec<Option<u8>>;

impl Shared {
    fn facts_key(&self, user: UserId) -> String {
        format!("{}:r", self.key(user))
    }

    /// The hashes of these users, then who writes them.
    fn facts_keys(&self, users: impl Iterator<Item = UserId> + Clone) -> Vec<String> {
        let hashes = users.clone().map(|user| self.facts_key(user));
        hashes.chain(users.map(|user| format!("{}:rw", self.key(user)))).collect()
    }

    /// The epoch of a user's facts, and a code for each other.
    fn hmget(&self, (user, others): &(UserId, &[UserId])) -> Cmd {
        let mut get = cmd("HMGET");
        get.arg(self.facts_key(*user)).arg("!e");
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
fn codes(reply: &Value, epoch: i64) -> Option<Codes> {
    let Value::Array(values) = reply else { return None };
    let (of, codes) = values.split_first()?;
    let holds = number(of) == Some(epoch);
    Some(codes.iter().map(|code| if holds { number(code) } else { None }).collect())
}

impl Redis {
    pub(in crate::cache) async fn get_facts(&self, asked: &[(UserId, &[UserId])]) -> Result<Vec<Codes>, CacheError> {
        let shared = &self.shared;
        let deadline = shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        let mut facts = Vec::with_capacity(asked.len());
        for chunk in asked.chunks(COMMANDS_PER_PIPELINE) {
            let commands = chunk.iter().map(|one| shared.hmget(one)).collect();
            for result in shared.send(shared.scripts_wire(), commands, deadline).await? {
                let reply = result.map_err(|error| away(&error))?;
                facts.push(codes(&reply, epoch).ok_or_else(unexpected_reply)?);
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

    pub(in crate::cache) async fn touch_facts(&self, touched: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        let scripts = &self.shared.scripts;
        self.each_turn(touched, |keys, touched, form| scripts.touch_facts(form, keys, touched, writer)).await
    }

    pub(in crate::cache) async fn leave_facts(&self, touched: &[(UserId, Vec<UserId>)], writer: Writer) -> Result<(), CacheError> {
        let scripts = &self.shared.scripts;
        self.each_turn(touched, |keys, touched, form| scripts.leave_facts(form, keys, touched, writer)).await
    }

    /// Each turn has its time.
    async fn each_turn(
        &self,
        touched: &[(UserId, Vec<UserId>)],
        call: impl Fn(&[String], &[(UserId, Vec<UserId>)], Form) -> Cmd,
    ) -> Result<(), CacheError> {
        let shared = &self.shared;
        for turn in touched.chunks(USERS_PER_TURN) {
            shared.run_chunks(turn, |chunk, form| call(&shared.facts_keys(chunk.iter().map(|(user, _)| *user)), chunk, form)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_another_epoch_say_nothing() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let reply = |epoch: Value| Value::Array(vec![epoch, bulk("17"), Value::Nil, bulk("x"), bulk("0")]);
        assert_eq!(codes(&reply(bulk("3")), 3), Some(vec![Some(17), None, None, Some(0)]));
        for epoch in [bulk("4"), bulk(""), Value::Nil] {
            assert_eq!(codes(&reply(epoch), 3), Some(vec![None; 4]));
        }
        for odd in [Value::Array(Vec::new()), Value::Nil, Value::Int(1)] {
            assert_eq!(codes(&odd, 3), None);
        }
    }
}
