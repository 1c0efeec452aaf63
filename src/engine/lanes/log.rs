//! How long SQLite's log may grow before a lane puts it into the file.
//!
//! The longer it is, the more writes of a page are put there as one; but the lane waits for it, and
//! so do those whose writes come meanwhile. So it is as long as the disk can take in a moment.

use std::time::Duration;

/// In pages of 2 KiB, as a new file has them: 64 MiB and 4 MiB.
const MAX_PAGES: i64 = 32_000;
const MIN_PAGES: i64 = 2000;

/// With what a lane begins.
const FIRST_PAGES: i64 = 8000;

/// What took longer makes the next log half as long …
const SLOW: Duration = Duration::from_millis(250);

/// … and what took less, longer by a part of it.
const QUICK: Duration = Duration::from_millis(125);
const GROWTH: i64 = 4;

/// After how many changes a lane looks how long the log is, which costs as much as a statement. Each
/// writes a page or a few.
const LOOK: u32 = 250;

/// The bound on the log.
#[derive(Debug)]
pub(super) struct Log {
    pages: i64,
    /// Changes since the last look.
    changes: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { pages: FIRST_PAGES, changes: 0 }
    }
}

impl Log {
    /// So many changes more. From how many pages on it is put into the file, where it is time to look.
    pub(super) fn look_after(&mut self, changes: u32) -> Option<i64> {
        self.changes = self.changes.saturating_add(changes);
        if self.changes < LOOK {
            return None;
        }
        self.changes = 0;
        Some(self.pages)
    }

    /// So many pages of it were, and that took so long. A reader may have held up the others: a few
    /// tell nothing of the disk.
    pub(super) fn moved(&mut self, moved: i64, time: Duration) {
        if moved < self.pages / 2 {
            return;
        }
        let pages = match time {
            time if time > SLOW => self.pages / 2,
            time if time < QUICK => self.pages + self.pages / GROWTH,
            _ => self.pages,
        };
        self.pages = pages.clamp(MIN_PAGES, MAX_PAGES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_the_disk_takes_in_a_moment() {
        let pages_of = |page: Duration| {
            let mut log = Log::default();
            for _ in 0..40 {
                log.moved(log.pages, page * u32::try_from(log.pages).unwrap());
            }
            log.pages
        };
        assert_eq!(pages_of(Duration::from_micros(2)), MAX_PAGES);
        assert_eq!(pages_of(Duration::from_millis(10)), MIN_PAGES);
        let pages = pages_of(Duration::from_micros(50));
        assert!((2500..=5000).contains(&pages), "{pages} in 125 to 250 ms");
    }

    #[test]
    fn a_reader_that_holds_it_up_makes_it_no_longer() {
        let mut log = Log::default();
        log.moved(0, Duration::ZERO);
        log.moved(FIRST_PAGES / 2 - 1, Duration::ZERO);
        assert_eq!(log.pages, FIRST_PAGES);
        log.moved(FIRST_PAGES / 2, Duration::ZERO);
        assert_eq!(log.pages, FIRST_PAGES + FIRST_PAGES / GROWTH);
    }

    #[test]
    fn it_is_looked_at_after_enough_changes() {
        let mut log = Log::default();
        assert_eq!([200, 49, 1, 249, u32::MAX].map(|changes| log.look_after(changes).is_some()), [false, false, true, false, true]);
    }
}
