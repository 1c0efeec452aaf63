//! Whether this node's clock agrees with the database's. What is old is removed for good, and keys of writes are not looked
//! for when they are old: a node whose clock is wrong must not decide what is.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::app::config::Config;
use crate::base::clock::{Clock, DAY_MS, MAX_SKEW_MS, UnixMs, ahead_of};
use crate::db::{Db, in_time};
use crate::engine::lanes::{self, NOT_KNOWN, NOTHING_WRITTEN};

/// Beyond this a node does not start. Keys of writes are kept for a day, so that a repeated write would be done again.
const MAX_SKEW_AT_START_MS: i64 = DAY_MS / 2;

/// Nor does one that is behind by more than this part of the shortest time for which anything is kept: what it writes looks
/// that much older to the others, and they remove it as much too early.
const PART_OF_KEPT: i64 = 2;

/// SQLite knows no time but that of the last write. Where that was longer ago, the machine was off, or its clock is wrong:
/// a node removes nothing at first, while the machine may still learn the time. So it does where it sees the clock jump so
/// far. A file in the data folder says that the wait is not over, as what is written meanwhile has the wrong time.
const LONG_AGO_MS: i64 = DAY_MS;
const WAITS: Duration = Duration::from_secs(60 * 60);
const WAITS_FILE: &str = "clock-in-doubt";

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// The shortest time for which anything is kept, by the settings that go below a day.
fn shortest_kept_ms(config: &Config) -> i64 {
    HOUR_MS * i64::from(config.events.event_ttl_hours.min(config.operations.operation_ttl_hours))
}

/// Why a node must not start whose clock is so far ahead of the database's, or behind it.
fn refusal(ahead_ms: i64, shortest_kept_ms: i64) -> Option<String> {
    let (way, most) = match ahead_ms {
        0.. => ("ahead of", MAX_SKEW_AT_START_MS),
        _ => ("behind", MAX_SKEW_AT_START_MS.min(shortest_kept_ms / PART_OF_KEPT)),
    };
    let apart = ahead_ms.saturating_abs();
    let rounded = |unit: i64| (apart + unit / 2) / unit;
    let apart_by = if apart < 2 * HOUR_MS { format!("{} minutes", rounded(MINUTE_MS)) } else { format!("{} hours", rounded(HOUR_MS)) };
    let told = || format!("this machine's clock is {apart_by} {way} the database's: set both right (with NTP), then start again");
    (apart > most).then(told)
}

/// What is known of this node's clock.
#[derive(Debug)]
pub(super) struct ClockCheck {
    db: Db,
    clock: Clock,
    /// The file that says that this node waits.
    file: PathBuf,
    /// Until when it removes nothing.
    waits: Option<Instant>,
    /// When it looked last, by this clock and by one that nobody sets.
    looked: (UnixMs, Instant),
}

impl ClockCheck {
    /// At the start, before anything is written.
    ///
    /// # Errors
    /// A sentence for the operator: the clocks are too far apart.
    pub(super) async fn begin(db: Db, config: &Config, clock: Clock) -> Result<Self, String> {
        let looked = (clock.now(), Instant::now());
        let mut this = Self { db, clock, file: config.stores.data_dir.join(WAITS_FILE), waits: None, looked };
        let ahead_ms = this.ahead_ms().await.unwrap_or_default();
        if this.db.is_shared() {
            refusal(ahead_ms, shortest_kept_ms(config)).map_or(Ok(()), Err)?;
        }
        if !this.db.is_shared() && (ahead_ms.abs() > LONG_AGO_MS || this.file.exists()) {
            tracing::warn!("this clock may be wrong: the last write was more than a day ago. For an hour nothing is removed for its age");
            this.begin_wait().map_err(|error| format!("cannot write {}: {error}", this.file.display()))?;
        }
        Ok(this)
    }

    fn begin_wait(&mut self) -> std::io::Result<()> {
        self.waits = Some(Instant::now() + WAITS);
        std::fs::write(&self.file, "")
    }

    /// How far this clock was set since the last look.
    fn jumped_ms(&mut self) -> i64 {
        let (at, instant) = std::mem::replace(&mut self.looked, (self.clock.now(), Instant::now()));
        let took = i64::try_from(self.looked.1.duration_since(instant).as_millis()).unwrap_or(i64::MAX);
        if matches!(self.clock, Clock::Manual(_)) { 0 } else { self.looked.0.0 - at.0 - took }
    }

    /// Whether this node may decide what is old.
    pub(super) async fn agrees(&mut self) -> bool {
        if !self.db.is_shared() {
            return self.is_settled();
        }
        let Some(ahead_ms) = self.ahead_ms().await else { return false };
        #[expect(clippy::cast_precision_loss, reason = "a time of some years in milliseconds has fewer than 53 bits")]
        metrics::gauge!("headmark_clock_ahead_seconds").set(ahead_ms as f64 / 1000.0);
        if ahead_ms.abs() > MAX_SKEW_MS {
            tracing::warn!(ahead_ms, "this clock and the database's are far apart: nothing is removed because of its age");
        }
        ahead_ms.abs() <= MAX_SKEW_MS
    }

    /// The same on SQLite: nothing says that this clock is wrong.
    fn is_settled(&mut self) -> bool {
        if self.jumped_ms().abs() > LONG_AGO_MS {
            tracing::warn!("this clock was set by more than a day. For an hour nothing is removed for its age");
            if let Err(error) = self.begin_wait() {
                tracing::warn!(%error, "cannot write the file that makes the next start wait, too");
            }
        }
        if self.waits.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        if self.waits.take().is_some() {
            // One that stays makes the next start wait.
            let _ = std::fs::remove_file(&self.file);
        }
        true
    }

    /// How far this clock is ahead of what the database knows, by the least that it may be; None where that cannot be told.
    /// A clock that is set by hand agrees.
    async fn ahead_ms(&self) -> Option<i64> {
        if matches!(self.clock, Clock::Manual(_)) {
            return Some(0);
        }
        let before = self.clock.now().0;
        let told = in_time(lanes::time_of(&self.db, UnixMs(before)))
            .await
            .inspect_err(|error| tracing::debug!(?error, "cannot compare clocks yet"))
            .ok()?;
        let after = self.clock.now().0;
        match told {
            NOTHING_WRITTEN => Some(0),
            // On SQLite, and then as far as can be.
            NOT_KNOWN => Some(i64::MAX),
            told => Some(ahead_of(told, before, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::app::cli::Cli;

    #[test]
    fn a_node_that_is_behind_by_half_of_what_is_kept_does_not_start() {
        let told = |ahead_ms, shortest_ms| refusal(ahead_ms, shortest_ms).unwrap();
        assert_eq!(
            [refusal(12 * HOUR_MS, HOUR_MS), refusal(-HOUR_MS / 2, HOUR_MS), refusal(-12 * HOUR_MS, 168 * HOUR_MS)],
            [None, None, None]
        );
        assert!(
            told(13 * HOUR_MS, HOUR_MS).contains("13 hours ahead of") && told(-13 * HOUR_MS, 168 * HOUR_MS).contains("13 hours behind")
        );
        assert!(told(-31 * MINUTE_MS, HOUR_MS).contains("31 minutes behind"));
        let config = |option, hours| Cli::parse_from(["headmark", option, hours]).into_config().unwrap();
        let shortest = ["--event-ttl-hours", "--operation-ttl-hours"].map(|option| shortest_kept_ms(&config(option, "3")));
        assert_eq!(shortest, [3 * HOUR_MS; 2]);
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "failpoints"), ignore = "it sets the clock by a failpoint")]
    async fn a_clock_that_is_set_by_more_than_a_day_makes_a_node_on_sqlite_wait() {
        let dir = std::env::temp_dir().join(format!("headmark-clock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let config = Cli::parse_from(["headmark", "--data-dir", dir.to_str().unwrap()]).into_config().unwrap();
        let (db, lock) = Db::open(&config.stores).await.unwrap();
        db.prepare(&config.stores).await.unwrap();
        let begin = async || ClockCheck::begin(db.clone(), &config, Clock::System).await.unwrap();
        for (hours, agrees) in [(1, true), (30, false), (-30, false)] {
            let mut check = begin().await;
            assert!(check.agrees().await);
            fail::cfg("clock::ahead_ms", &format!("return({})", hours * HOUR_MS)).unwrap();
            assert_eq!([check.agrees().await, check.agrees().await], [agrees; 2], "{hours}");
            fail::remove("clock::ahead_ms");
            assert_eq!(begin().await.agrees().await, agrees, "the next start waits, too");
            let _ = std::fs::remove_file(dir.join(WAITS_FILE));
        }
        db.close().await;
        drop(lock);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
