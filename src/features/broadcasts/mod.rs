//! Broadcasts: notices to everybody, in channels. One row a notice, and nothing for a user but the
//! mark of those who read.
//!
//! A notice raises two heads: that of its channel (its `seq`) and that of the broadcast state (its
//! position, from which the enrolment of each user tells whether it came before or after the user
//! was first seen). Every node holds the broadcast state in memory (`crate::engine::heads`), so a
//! poll asks nobody. `command.rs` has the rules, `http.rs` the routes.

mod command;
pub mod http;
pub mod rows;
pub mod store;
pub mod summary;

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

pub use self::command::{BroadcastCommand, raise_broadcast_state};
use crate::base::clock::UnixMs;
use crate::base::ids::Name;

/// How many channels there may be: each is shown in every unread summary.
pub const MAX_CHANNELS: i64 = 200;

/// How many names of channels may ever be used: one that was deleted leaves its head behind, so that
/// it continues there when it is made again.
pub const MAX_CHANNEL_NAMES: i64 = 10_000;

/// How many notices a channel may have until it is deleted: every node remembers 8 bytes of each.
pub const MAX_NOTICES: i64 = 1_000_000;

/// Which notice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeKey {
    /// In which channel.
    pub channel: Arc<str>,
    /// Its position in the channel.
    pub seq: i64,
}

/// A notice, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The head of the broadcast state when it was sent.
    pub position: i64,
    /// Title, body and data, as one JSON object.
    pub content: Arc<str>,
    /// When it was sent.
    pub created_at: UnixMs,
    /// From when on it is gone by itself; 0: never.
    pub expires_at: UnixMs,
    /// Whether the broadcast was withdrawn.
    pub withdrawn: bool,
    /// The head of the broadcast state at its last change.
    pub changed: i64,
}

/// A channel in the list of channels.
#[derive(Debug, Serialize, ToSchema)]
pub struct BroadcastChannelOut {
    /// The channel.
    pub channel: Name,
    /// The number of broadcasts ever sent in the channel.
    #[schema(minimum = 1, example = 57)]
    pub head: i64,
}

/// A broadcast.
#[derive(Debug, Serialize, ToSchema)]
pub struct NoticeOut {
    /// The channel.
    pub channel: Name,
    /// The position in the channel, from 1.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// Title, body and data.
    #[serde(flatten)]
    #[schema(inline)]
    pub content: ContentOut,
    /// When it was sent.
    pub created_at: UnixMs,
    /// When the broadcast expires for all users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<UnixMs>,
    /// In a user's own list: whether the user has read it. True also if it was sent before the user
    /// was enrolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read: Option<bool>,
}

/// The content of a broadcast.
#[derive(Debug, Clone, Default, Serialize, serde::Deserialize, ToSchema)]
pub struct ContentOut {
    /// The title.
    #[schema(example = "Maintenance tonight")]
    pub title: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub body: Option<String>,
    /// Additional data for clients: a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    pub data: Option<Box<RawValue>>,
}

impl NoticeOut {
    pub(crate) fn new(channel: &Name, seq: i64, notice: &Notice, read: Option<bool>) -> Self {
        let content = serde_json::from_str(&notice.content).unwrap_or_else(|error| {
            tracing::error!(%error, %channel, seq, "a notice's row holds no JSON");
            ContentOut::default()
        });
        let expires_at = Some(notice.expires_at).filter(|at| at.0 > 0);
        Self { channel: channel.clone(), seq, content, created_at: notice.created_at, expires_at, read }
    }
}
