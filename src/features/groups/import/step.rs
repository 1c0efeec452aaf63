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

    /// The memory that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let text = match &self.what {
            What::Send { client, content } => client.as_str().len() + content.len(),
            _ => 0,
        };
        size_of::<Self>() + text
    }

    pub(crate) fn trace(&self) -> Trace {
        let events = (!matches!(self.what, What::Send { .. })).then_some(self.events);
        Trace { user: self.user, second: self.second(), events }
    }
}

/// What is enough of a line to find it again where it was the last of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(super) user: UserId,
    pub(super) second: i64,
    /// The [`LogStep::events`] of a join or leave.
    pub(super) events: Option<u64>,
}

pub(crate) fn second(at: UnixMs) -> i64 {
    at.0.div_euclid(1000)
}
