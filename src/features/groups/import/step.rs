//! The lines of chat logs.

use std::sync::Arc;

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};

/// What a log says that somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Joined.
    Join,
    /// Left.
    Leave,
    /// Sent a message.
    Send {
        /// Its id.
        client: ClientId,
        content: String,
    },
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStep {
    /// In which group; made if need be.
    pub group: GroupId,
    /// The name of the channel, where the group must be that channel's.
    pub channel: Option<Arc<str>>,
    pub user: UserId,
    pub at: UnixMs,
    /// Stands for the joins and leaves of that user in that second and group so far, this one
    /// included; 0 where there is none.
    pub events: u64,
    pub what: What,
}

impl LogStep {
    /// The second in which it happened: times within a second are not compared.
    pub(super) fn second(&self) -> i64 {
        second(self.at)
    }
}

pub(crate) fn second(at: UnixMs) -> i64 {
    at.0.div_euclid(1000)
}
