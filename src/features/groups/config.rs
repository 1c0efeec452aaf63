//! The settings of groups.

use clap::Args;

use crate::base::clock::{DAY_MS, UnixMs};

/// Messages go hour by hour: a group's head is written once for all that go together.
const HOUR_MS: i64 = 3_600_000;

/// How groups are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Groups")]
pub struct GroupConfig {
    /// The number of days after which a group message expires, within an hour. It no longer counts
    /// as unread, and reading from before it gets 410. 0: never.
    #[arg(long, env = "HEADMARK_GROUP_MESSAGE_DAYS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub group_message_days: u32,
}

impl GroupConfig {
    /// What was sent earlier is old; None: nothing ever is.
    pub(super) fn oldest(&self, now: UnixMs) -> Option<UnixMs> {
        let days = i64::from(self.group_message_days);
        (days > 0).then(|| UnixMs((now.0 - days * DAY_MS).div_euclid(HOUR_MS) * HOUR_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_kept_for_all_of_its_days_and_less_than_an_hour_more() {
        let [never, days] = [0, 2].map(|group_message_days| GroupConfig { group_message_days });
        let now = UnixMs(500_000 * HOUR_MS + 5);
        assert_eq!(never.oldest(now), None);
        assert_eq!(days.oldest(now), Some(UnixMs(now.0 - 2 * DAY_MS - 5)));
        assert_eq!(days.oldest(UnixMs(now.0 - 5)), days.oldest(now));
        assert_eq!(days.oldest(UnixMs(now.0 - 6)), days.oldest(now).map(|oldest| UnixMs(oldest.0 - HOUR_MS)));
    }
}
