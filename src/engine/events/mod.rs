//! Events: what happened to relations, broadcasts, posts and the members of groups, for services
//! that read along.
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
//! `publisher.rs` numbers and streams, `store.rs` has the SQL, `features/events.rs` the route. To
//! add an event: a variant of [`Event`], and [`Rows::event`](crate::engine::lanes::Rows::event) in
//! the command, while the lock is held that puts the changes of the thing in order.

pub mod publisher;
mod stall;
pub mod store;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

pub use self::publisher::Publisher;
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, Name, UserId};
use crate::db::{Conn, Db, DbResult};

/// How events are kept and handed on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Events")]
pub struct EventConfig {
    /// The retention period of events, in hours. Reading from before it gets 410.
    #[arg(long, env = "HEADMARK_EVENT_TTL_HOURS", default_value_t = 168, value_parser = clap::value_parser!(u32).range(1..=876_000))]
    pub event_ttl_hours: u32,

    /// The key of the Redis stream to which events are also appended. Empty: no stream.
    #[arg(long, env = "HEADMARK_EVENT_STREAM", default_value = "headmark:events")]
    pub event_stream: String,

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
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// The relation of one user to another changed.
    Relation(RelationEventOut),
    /// A broadcast was sent or withdrawn.
    Broadcast(BroadcastEventOut),
    /// A post was created or deleted.
    Post(PostEventOut),
    /// A user joined or left a group.
    Member(MemberEventOut),
}

/// The relation of one user to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationEventOut {
    /// The user.
    pub user_id: UserId,
    /// The other user.
    pub target_id: UserId,
    /// Whether the user follows the other user.
    pub following: bool,
    /// Whether the follow is secret.
    pub secret: bool,
    /// Whether the other user is special to the user.
    pub special: bool,
    /// Whether the user blocks the other user.
    pub blocking: bool,
}

/// A broadcast of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BroadcastEventOut {
    /// The channel.
    pub channel: Name,
    /// The position in the channel.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// Whether the broadcast was withdrawn.
    pub withdrawn: bool,
}

/// A post of a creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PostEventOut {
    /// The creator.
    pub user_id: UserId,
    /// The post.
    pub post_id: ClientId,
    /// Whether the post was deleted.
    pub deleted: bool,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MemberEventOut {
    /// The group.
    pub group_id: GroupId,
    /// The user.
    pub user_id: UserId,
    /// Whether the user is a member now.
    pub member: bool,
}

/// An event as its row has it: without its number.
#[derive(Serialize)]
struct Row<'a> {
    at: UnixMs,
    #[serde(flatten)]
    event: &'a Event,
}

/// The events of a batch, in order.
#[derive(Debug, Default)]
pub struct Written {
    /// Each as JSON.
    events: Vec<String>,
    /// How many of them belong to commands that took effect.
    settled: usize,
    at: UnixMs,
}

impl Written {
    pub(crate) fn add(&mut self, now: UnixMs, event: &Event) {
        match serde_json::to_string(&Row { at: now, event }) {
            Ok(json) => self.events.push(json),
            // Of plain fields with plain names; it cannot.
            Err(error) => tracing::error!(%error, "an event has no JSON form"),
        }
        self.at = now;
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

    pub(crate) async fn save(&self, conn: &mut Conn) -> DbResult<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        store::insert(conn, self.at, self.events.len(), &format!("[{}]", self.events.join(","))).await
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
    store::sweep(db, UnixMs(now.0 - ttl_ms)).await
}
