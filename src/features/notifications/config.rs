//! The settings of notifications.

use clap::Args;

use super::first_id;
use crate::base::clock::{DAY_MS, UnixMs};

/// How notifications are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Notifications")]
pub struct NotificationConfig {
    /// The number of days after which a notification expires and no longer counts as unread. 0:
    /// never.
    #[arg(long, env = "HEADMARK_NOTIFICATION_TTL_DAYS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub notification_ttl_days: u32,
}

impl NotificationConfig {
    /// The lowest id of those that are kept; 0: all are.
    pub(super) fn kept_from(&self, now: UnixMs) -> i64 {
        match i64::from(self.notification_ttl_days) {
            0 => 0,
            days => first_id(UnixMs(now.0 - days * DAY_MS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_begins_with_the_lowest_id_of_its_time() {
        let [never, days] = [0, 2].map(|notification_ttl_days| NotificationConfig { notification_ttl_days });
        let now = UnixMs(1_800_000_000_000);
        assert_eq!(never.kept_from(now), 0);
        let oldest = super::super::candidates(UnixMs(now.0 - 2 * DAY_MS));
        let older = super::super::candidates(UnixMs(now.0 - 2 * DAY_MS - 1));
        assert!(oldest.iter().all(|id| id.get() >= days.kept_from(now)) && older.iter().all(|id| id.get() < days.kept_from(now)));
    }
}
