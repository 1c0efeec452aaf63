//! The feed of a sheet for somebody who loads it: its number, and which posts were counted.

use super::Sheets;
use super::whole::{MAX_READS_AGAIN, Sheet};
use crate::base::clock::UnixMs;
use crate::base::error::Error;
use crate::engine::marks::parts::{enrolled, feed};
use crate::engine::marks::store::NOT_ENROLLED;
use crate::features::feed::{FeedCount, Horizon};

impl Sheets {
    /// Counts the feed of a sheet again, so that it is known which posts were counted.
    ///
    /// # Errors
    /// When a store is away.
    pub async fn load_feed(&self, sheet: &mut Sheet, now: UnixMs) -> Result<Horizon, Error> {
        for _ in 0..MAX_READS_AGAIN {
            let horizon = self.count_up_to_horizon(sheet, now).await?;
            if !sheet.feed_is_ahead() {
                return Ok(horizon);
            }
            self.read_again(sheet).await;
        }
        Err(Error::store_unavailable())
    }

    async fn count_up_to_horizon(&self, sheet: &mut Sheet, now: UnixMs) -> Result<Horizon, Error> {
        let entry = sheet.entry.as_ref().ok_or_else(Error::store_unavailable)?;
        let version = feed(&entry.parts);
        if version == 0 || enrolled(&entry.parts) <= NOT_ENROLLED {
            // Nothing is counted.
            sheet.feed = Some(FeedCount::default());
            return Ok(Horizon { at: now, ..Horizon::default() });
        }
        let (count, horizon) = self.feeds.count_up_to_horizon(sheet.user, version, now).await?;
        sheet.feed = Some(count);
        Ok(horizon)
    }
}
