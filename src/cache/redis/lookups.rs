//! How a poll finds a user's entry: a copy under the lease, else what Redis has, else the right to fill
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deadpool_redis::redis::Value;
use tokio::time::Instant;

use super::Redis;
use super::copies::{Copy, Life, Reading};
use super::reads::Connection;
use super::scripts::{is_yes, read_hash, read_lookup};
use super::shared::{COMMANDS_PER_PIPELINE, entry_and_life, unexpected_reply};
use super::wire::away;
use crate::base::ids::UserId;
use crate::cache::{CacheError, Derived, Entry, FillToken, Lookup, ReadEntry};

impl Redis {
    pub(in crate::cache) async fn get(&self, user: UserId) -> Result<Lookup, CacheError> {
        let epoch = self.epoch.load(Ordering::Acquire);
        let outcome = self.look(user, epoch).await.and_then(|lookup| self.still(epoch, lookup));
        self.shared.meters.read(outcome.as_ref());
        outcome
    }

    async fn look(&self, user: UserId, epoch: i64) -> Result<Lookup, CacheError> {
        self.shared.breaker.check()?;
        let deadline = self.shared.deadline();
        let connection = self.reads.connection(&self.shared, deadline).await?;
        // Nearly all polls end here: so without the lists that `copies` makes.
        if let Some(now) = connection.leased_at()
            && let Some(copy) = self.reads.copies.get(user, epoch, connection.number, now)
        {
            self.shared.meters.copies_shown(1);
            return Ok(Lookup::Hit(self.shown(user, copy, now)));
        }
        // Boxed, so that those need not carry its room.
        Box::pin(self.look_beyond(user, epoch, &connection, deadline)).await
    }

    /// A copy that is shown now. One that ends soon is to live on, as it is polled.
    fn shown(&self, user: UserId, Copy { entry, ends_soon }: Copy, now: u64) -> Arc<ReadEntry> {
        if ends_soon <= now {
            self.ending.add(user, entry.revision);
            self.reads.copies.ends_soon(user, self.ending.again(now));
        }
        entry
    }

    /// What a user's entry is where no copy of it can be shown at once.
    async fn look_beyond(&self, user: UserId, epoch: i64, connection: &Connection, deadline: Instant) -> Result<Lookup, CacheError> {
        if let Some(copy) = self.copies(&[user], epoch, connection, deadline).await.pop().flatten() {
            return Ok(Lookup::Hit(copy));
        }
        if let Some(entry) = self.ask(&[user], epoch, connection, deadline).await?.pop().flatten() {
            return Ok(Lookup::Hit(entry));
        }
        self.look_again(&[user], epoch, deadline).await?.pop().ok_or_else(unexpected_reply)
    }

    /// The copies of users' entries that this node may show.
    async fn copies(&self, users: &[UserId], epoch: i64, connection: &Connection, deadline: Instant) -> Vec<Option<Arc<ReadEntry>>> {
        let reads = &self.reads;
        let is_leased = connection.leased_at().is_some();
        let copies = || {
            let now = connection.now();
            let copy = |&user: &UserId| Some(self.shown(user, reads.copies.get(user, epoch, connection.number, now)?, now));
            users.iter().map(copy).collect::<Vec<_>>()
        };
        let found = if connection.tells { copies() } else { vec![None; users.len()] };
        let found = match found.iter().all(Option::is_none) {
            false if !is_leased => match reads.renewed(deadline).await {
                Some(renewed) if renewed == connection.number => copies(),
                // Redis is asked for them.
                _ => vec![None; users.len()],
            },
            _ => found,
        };
        self.shared.meters.copies_shown(found.iter().flatten().count());
        found
    }

    /// What Redis has of users, where that is a hit. Over a new connection if this one was closed.
    async fn ask(
        &self,
        users: &[UserId],
        epoch: i64,
        connection: &Connection,
        deadline: Instant,
    ) -> Result<Vec<Option<Arc<ReadEntry>>>, CacheError> {
        match self.ask_over(users, epoch, connection, deadline).await {
            Err(_) if connection.was_dropped() && Instant::now() < deadline => {
                let another = self.reads.connection(&self.shared, deadline).await?;
                self.ask_over(users, epoch, &another, deadline).await
            }
            asked => asked,
        }
    }

    pub(super) async fn ask_over(
        &self,
        users: &[UserId],
        epoch: i64,
        connection: &Connection,
        deadline: Instant,
    ) -> Result<Vec<Option<Arc<ReadEntry>>>, CacheError> {
        let (shared, copies) = (&self.shared, &self.reads.copies);
        let mut found = Vec::with_capacity(users.len());
        for chunk in users.chunks(COMMANDS_PER_PIPELINE / 2) {
            let readings: Vec<_> = chunk.iter().map(|&user| copies.begin(user, connection.number)).collect();
            let asked = connection.now();
            let commands = chunk.iter().flat_map(|&user| entry_and_life(&shared.key(user))).collect();
            let mut replies = connection.send(shared, commands, deadline).await?.into_iter();
            for (&user, reading) in chunk.iter().zip(readings) {
                let mut reply = || replies.next().ok_or_else(unexpected_reply)?.map_err(|error| away(&error));
                let (entry, life) = (read_hash(&reply()?).and_then(|found| found.clean(epoch)), read_life(&reply()?));
                found.push(match entry {
                    Some(entry) => Some(self.take(user, epoch, reading, entry, self.ending.life(asked, life), asked)),
                    None => {
                        copies.remove(user);
                        None
                    }
                });
            }
        }
        Ok(found)
    }

    /// A hit with such a life. One that ends soon is to live on, as it is polled.
    fn take(&self, user: UserId, epoch: i64, reading: Reading, entry: Entry, mut life: Life, asked: u64) -> Arc<ReadEntry> {
        if life.soon <= asked {
            self.ending.add(user, entry.revision);
            life.soon = self.ending.again(asked);
        }
        self.reads.copies.take(user, epoch, reading, entry, life)
    }

    pub(in crate::cache) fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        self.reads.copies.keep(user, entry, derived);
    }

    /// For users whose plain read was no hit: the same decided atomically, with fill tokens.
    async fn look_again(&self, users: &[UserId], epoch: i64, deadline: Instant) -> Result<Vec<Lookup>, CacheError> {
        let shared = &self.shared;
        let call = |&user: &UserId, form| shared.scripts.get(form, &shared.key(user), self.nonces.next(), epoch);
        let values = shared.run(users, deadline, call).await?;
        values.into_iter().map(|value| read_lookup(value, epoch).ok_or_else(unexpected_reply)).collect()
    }

    pub(in crate::cache) async fn get_many(&self, users: &[UserId]) -> Result<Vec<Lookup>, CacheError> {
        let epoch = self.epoch.load(Ordering::Acquire);
        let outcome = self.look_many(users, epoch).await.and_then(|lookups| self.still(epoch, lookups));
        match &outcome {
            Ok(lookups) => lookups.iter().for_each(|lookup| self.shared.meters.read(Ok(lookup))),
            Err(error) => self.shared.meters.read(Err(error)),
        }
        outcome
    }

    async fn look_many(&self, users: &[UserId], epoch: i64) -> Result<Vec<Lookup>, CacheError> {
        self.shared.breaker.check()?;
        let deadline = self.shared.deadline();
        let connection = self.reads.connection(&self.shared, deadline).await?;
        let copies = self.copies(users, epoch, &connection, deadline).await;
        let rest = missing(users, &copies);
        let read = self.ask(&rest, epoch, &connection, deadline).await?;
        let missed = missing(&rest, &read);
        let mut again = self.look_again(&missed, epoch, deadline).await?.into_iter();
        let mut read = read.into_iter().map(|entry| entry.map(Lookup::Hit).or_else(|| again.next()));
        let lookups = copies.into_iter().map(|copy| copy.map(Lookup::Hit).or_else(|| read.next().flatten()));
        lookups.map(|lookup| lookup.ok_or_else(unexpected_reply)).collect()
    }

    pub(in crate::cache) async fn fill(&self, user: UserId, token: FillToken, entry: &Entry) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |&user: &UserId, form| shared.scripts.fill(form, &shared.key(user), token, epoch, entry);
        let values = shared.run(&[user], shared.deadline(), call).await?;
        let kept = values.first().is_some_and(is_yes);
        shared.meters.fill(kept);
        Ok(kept)
    }
}

/// For how many milliseconds a key lives on: 0 where that is not known.
fn read_life(reply: &Value) -> u64 {
    match reply {
        Value::Int(life_ms) => u64::try_from(*life_ms).unwrap_or(0),
        _ => 0,
    }
}

/// The users of whom nothing was found.
fn missing(users: &[UserId], found: &[Option<Arc<ReadEntry>>]) -> Vec<UserId> {
    users.iter().zip(found).filter(|(_, entry)| entry.is_none()).map(|(&user, _)| user).collect()
}
