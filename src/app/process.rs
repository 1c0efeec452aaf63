//! What the system says of this process, under the names that the clients of Prometheus share. Where
//! there is no `/proc`, only what the process knows itself.

use std::fs;

use metrics::{counter, gauge};

use crate::base::clock::Clock;

/// The places of a process's times and memory in `/proc/self/stat`, counted from its state.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const RESIDENT_PAGES: usize = 21;

/// Notes that the process begins.
pub(super) fn begin() {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are far below 2^52")]
    gauge!("process_start_time_seconds").set(Clock::System.now().0 as f64 / 1000.0);
    gauge!("headmark_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Measures again. It reads a folder with an entry for each open file, so call it where it may block.
pub(super) fn measure() {
    #[expect(clippy::cast_precision_loss, reason = "bytes and files are far below 2^52")]
    let set = |name: &'static str, value: u64| gauge!(name).set(value as f64);
    if let Some(most) = super::serve::files::limit() {
        set("process_max_fds", most);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is that of the folder.
        set("process_open_fds", u64::try_from(open.count()).unwrap_or_default().saturating_sub(1));
    }
    if let Some(used) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(used) {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        counter!("process_cpu_seconds_total").absolute(used.ticks / ticks);
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or_default();
        set("process_resident_memory_bytes", used.resident_pages.saturating_mul(page_bytes));
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Used {
    ticks: u64,
    resident_pages: u64,
}

/// What `/proc/self/stat` says. The name of the program, in brackets, may hold anything.
fn used(stat: &str) -> Option<Used> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Used { ticks: number(USER_TICKS)? + number(SYSTEM_TICKS)?, resident_pages: number(RESIDENT_PAGES)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_behind_the_name() {
        let stat = "7 (head) mark) S 1 7 7 0 -1 4194560 900 0 0 0 40 2 0 0 20 0 9 0 123 456789 321 18446744073709551615 1 1 0";
        assert_eq!(used(stat), Some(Used { ticks: 42, resident_pages: 321 }));
        assert_eq!(used("7 (headmark) S 1"), None);
        assert_eq!(used(""), None);
    }
}
