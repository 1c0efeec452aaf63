//! Events: what happened, for services that read along.
//!
//! ```text
//!   a lane's transaction: the change, and one row of events ──▶ publisher (one node at a time): numbers what is committed ──▶ GET /v1/events
//!                                                                                      └─ what is numbered and durable ──▶ the stream in Redis
//! ```
//!
//! The row is written in the transaction of the change (a transactional outbox), so there is an
//! event exactly for what happened. Numbers are given afterwards: a number that is drawn before the
//! commit can appear after a higher one, and a reader who goes on after the highest would skip it.
//! The publisher holds the lock of one small row while it numbers rows that are committed, so a
//! number never appears before a lower one is there, and no write waits for it. What concerns one
//! pair, creator, channel or group is written under one lock, later rows have higher keys, and they
//! are numbered in that order.
//!
//! `event.rs` has what events say, `kinds.rs` their types, `publisher.rs` numbers and streams,
//! `store.rs` has the SQL, `features/events.rs` the route. To add an event: a variant of [`Event`]
//! and of [`EventType`], and [`Rows::event`](crate::engine::lanes::Rows::event) in the command,
//! while the lock is held that puts the changes of the thing in order.

pub mod erased;
mod event;
mod kinds;
pub mod publisher;
mod stall;
pub mod store;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::sync::Notify;

pub use self::event::{
    BroadcastEventOut, DirectMessageEventOut, Event, GroupMessageEventOut, MemberEventOut, NotificationChange, NotificationEventOut,
    PostEventOut, RelationEventOut, UnreadEventOut, UserErasedEventOut,
};
pub use self::kinds::{EventType, EventTypeNames, EventTypes, Published};
pub use self::publisher::Publisher;
use crate::base::clock::UnixMs;
use crate::cache::USUAL_PREFIX;
use crate::db::{Conn, Db, DbResult};

/// How events are kept and handed on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Events")]
pub struct EventConfig {
    /// The retention period of events, in hours. Reading from before it gets 410.
    #[arg(long, env = "HEADMARK_EVENT_TTL_HOURS", default_value_t = 168, value_parser = clap::value_parser!(u32).range(1..=876_000))]
    pub event_ttl_hours: u32,

    /// The key of the Redis stream to which events are also appended. Each installation needs its own.
    /// Default: `headmark:events`, or HEADMARK_CACHE_PREFIX and `events` if that prefix is not `hm:`. To
    /// turn the stream off, set HEADMARK_EVENT_STREAM_LENGTH to 0.
    #[arg(long, env = "HEADMARK_EVENT_STREAM")]
    pub event_stream: Option<String>,

    /// The approximate maximum length of that stream. 0: no stream.
    #[arg(long, env = "HEADMARK_EVENT_STREAM_LENGTH", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(0..=100_000_000))]
    pub event_stream_length: u64,
}

impl EventConfig {
    /// For how long events are kept.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        Duration::from_secs(u64::from(self.event_ttl_hours) * 3600)
    }

    /// The key of the stream, beside a cache whose keys have this prefix. Empty: no stream.
    #[must_use]
    pub fn stream_key(&self, cache_prefix: &str) -> String {
        match &self.event_stream {
            Some(key) => key.trim().to_owned(),
            None if cache_prefix == USUAL_PREFIX => "headmark:events".to_owned(),
            None => format!("{cache_prefix}events"),
        }
    }
}

/// An event as its row has it: without its number.
#[derive(Serialize)]
struct Row<'a> {
    at: UnixMs,
    #[serde(flatten)]
    event: &'a Event,
}

/// The most events in a row: a reader holds some rows at once. A batch with more has several rows.
const MAX_ROW_EVENTS: usize = 500;

/// The events of a batch, in order.
#[derive(Debug, Default)]
pub struct Written {
    /// Each as JSON, with its type.
    events: Vec<(EventType, String)>,
    /// How many of them belong to commands that took effect.
    settled: usize,
}

impl Written {
    pub(crate) fn add(&mut self, now: UnixMs, event: &Event) {
        self.events.extend(json(now, event));
    }

    pub(crate) fn settle(&mut self) {
        self.settled = self.events.len();
    }

    pub(crate) fn undo(&mut self) {
        self.events.truncate(self.settled);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Writes them, and after them what the batch as a whole came to.
    pub(crate) async fn save(&self, conn: &mut Conn, now: UnixMs, after: impl Iterator<Item = Event>) -> DbResult<()> {
        let after: Vec<_> = after.filter_map(|event| json(now, &event)).collect();
        let all: Vec<_> = self.events.iter().chain(&after).collect();
        // One after the other, so that their numbers are in their order.
        for row in all.chunks(MAX_ROW_EVENTS) {
            let types: EventTypes = row.iter().map(|(kind, _)| *kind).sum();
            let events: Vec<_> = row.iter().map(|(_, event)| event.as_str()).collect();
            store::insert(conn, now, events.len(), types, &format!("[{}]", events.join(","))).await?;
        }
        Ok(())
    }
}

fn json(at: UnixMs, event: &Event) -> Option<(EventType, String)> {
    match serde_json::to_string(&Row { at, event }) {
        Ok(json) => Some((event.kind(), json)),
        // Of plain fields with plain names; it cannot.
        Err(error) => {
            tracing::error!(%error, "an event has no JSON form");
            None
        }
    }
}

/// Rings where a lane of this node has committed events.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// There are new events.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    async fn rung(&self) {
        self.0.notified().await;
    }
}

/// Removes some events that are kept no longer; returns how many rows. Call again while it returns
/// any.
pub async fn sweep(db: &Db, config: &EventConfig, now: UnixMs) -> DbResult<u64> {
    let ttl_ms = i64::from(config.event_ttl_hours) * 3_600_000;
    store::sweep(db, UnixMs(now.0 - ttl_ms), now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prefix_has_a_stream_of_its_own() {
        let key = |set: Option<&str>, prefix: &str| {
            let event_stream = set.map(str::to_owned);
            EventConfig { event_ttl_hours: 1, event_stream, event_stream_length: 1 }.stream_key(prefix)
        };
        assert_eq!(key(None, USUAL_PREFIX), "headmark:events");
        assert_eq!((key(None, "a:"), key(None, "b:")), ("a:events".to_owned(), "b:events".to_owned()));
        assert_eq!((key(Some(" mine "), "a:"), key(Some(""), "a:")), ("mine".to_owned(), String::new()));
    }
}
