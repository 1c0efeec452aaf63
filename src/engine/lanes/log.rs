//! How long SQLite's log may grow before a lane puts it into the file.
//!
//! The longer it is, the more writes of a page are put there as one; but the lane waits for it, and
//! so do those whose writes come meanwhile. So it is as long as the disk can take in a moment.

use std::time::Duration;

/// In bytes of pages.
const MAX_BYTES: i64 = 64 << 20;
const MIN_BYTES: i64 = 4 << 20;

/// With what a lane begins.
const FIRST_BYTES: i64 = 16 << 20;

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
    bytes: i64,
    /// Changes since the last look.
    changes: u32,
}

impl Default for Log {
    fn default() -> Self {
        Self { bytes: FIRST_BYTES, changes: 0 }
    }
}

impl Log {
    /// So many changes more. From how many bytes on it is put into the file, where it is time to look.
    pub(super) fn look_after(&mut self, changes: u32) -> Option<i64> {
        self.changes = self.changes.saturating_add(changes);
        if self.changes < LOOK {
            return None;
        }
        self.changes = 0;
        Some(self.bytes)
    }

    /// So many bytes of it were, and that took so long. A reader may have held up the others: a few
    /// tell nothing of the disk.
    pub(super) fn moved(&mut self, moved: i64, time: Duration) {
        if moved < self.bytes / 2 {
            return;
        }
        let bytes = match time {
            time if time > SLOW => self.bytes / 2,
            time if time < QUICK => self.bytes + self.bytes / GROWTH,
            _ => self.bytes,
        };
        self.bytes = bytes.clamp(MIN_BYTES, MAX_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_the_disk_takes_in_a_moment() {
        let mib_on = |mib_in_a_second: i64| {
            let mut log = Log::default();
            for _ in 0..40 {
                let micros = log.bytes * 1_000_000 / (mib_in_a_second << 20);
                log.moved(log.bytes, Duration::from_micros(micros.try_into().unwrap()));
            }
            log.bytes >> 20
        };
        assert_eq!([mib_on(1000), mib_on(1)], [MAX_BYTES >> 20, MIN_BYTES >> 20]);
        let mib = mib_on(100);
        assert!((12..=25).contains(&mib), "{mib} MiB in 125 to 250 ms");
    }

    #[test]
    fn a_reader_that_holds_it_up_makes_it_no_longer() {
        let mut log = Log::default();
        log.moved(0, Duration::ZERO);
        log.moved(FIRST_BYTES / 2 - 1, Duration::ZERO);
        assert_eq!(log.bytes, FIRST_BYTES);
        log.moved(FIRST_BYTES / 2, Duration::ZERO);
        assert_eq!(log.bytes, FIRST_BYTES + FIRST_BYTES / GROWTH);
    }

    #[test]
    fn it_is_looked_at_after_enough_changes() {
        let mut log = Log::default();
        assert_eq!([200, 49, 1, 249, u32::MAX].map(|changes| log.look_after(changes).is_some()), [false, false, true, false, true]);
    }
}
