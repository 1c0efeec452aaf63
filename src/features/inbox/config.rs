//! The settings of inboxes.

use clap::Args;

use crate::base::clock::{DAY_MS, UnixMs};

/// How inboxes are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Inbox")]
pub struct InboxConfig {
    /// The retention period of inbox items, in days. Items that a device seen in that time has not
    /// fetched are kept longer.
    #[arg(long, env = "HEADMARK_INBOX_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub inbox_days: u32,
}

impl InboxConfig {
    /// What is older is old.
    pub(super) fn oldest(&self, now: UnixMs) -> UnixMs {
        UnixMs(now.0 - i64::from(self.inbox_days) * DAY_MS)
    }
}
