//! The feed of a sheet for somebody who loads it: its number, and which posts were counted.

use super::parts::{enrolled, feed};
use super::whole::{FeedCount, Sheet};
use super::{Sheets, store_away};
use crate::clock::UnixMs;
use crate::error::Error;
use crate::feed::Horizon;
use crate::marks::store::NOT_ENROLLED;

impl Sheets {
    /// Counts the feed of a sheet again, so that it is known which posts were counted.
    ///
    /// # Errors
    /// When a store is away.
    pub async fn load_feed(&self, sheet: &mut Sheet, now: UnixMs) -> Result<Horizon, Error> {
        let entry = sheet.entry.as_ref().ok_or_else(store_away)?;
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
