//! What the document says about the machine and the program.

use std::process::Command;

use headmark::base::clock::Clock;

/// One line: cores, memory, system.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plural = if cores == 1 { "" } else { "s" };
    let mut text = format!("Machine: {cores} core{plural}");
    if let Some(gib) = memory_gib() {
        text.push_str(&format!(", {gib} GiB"));
    }
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or(std::env::consts::OS, |name| name.trim_matches('"'));
    let grouped =
        if groups_processes() { "; its scheduler groups processes, which makes latencies long (sched_autogroup_enabled)" } else { "" };
    format!("{text}, {name}{grouped}")
}

/// Whether Linux gives each group of processes the same share of the cores. Each process of
/// Postgres is a group, and the server is one together with the load generator: so it waits for
/// many of them whenever the cores are busy. It is not so under systemd or in containers, which
/// make groups of their own.
fn groups_processes() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|enabled| enabled.trim() == "1")
}

/// Rounded up: the kernel keeps some for itself.
fn memory_gib() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kib.div_ceil(1024 * 1024))
}

/// One line: which program, and when.
pub(crate) fn program() -> String {
    let told = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok().filter(|output| output.status.success());
    let commit = told.and_then(|output| String::from_utf8(output.stdout).ok()).map(|text| text.trim().to_owned());
    let changed = Command::new("git").args(["status", "--porcelain", "--", "src", "Cargo.lock"]).output();
    let changed = changed.is_ok_and(|output| !output.stdout.is_empty());
    let now = Clock::System.now().to_string();
    let day = now.get(..10).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) => format!("headmark {version}, commit {commit}{}, {day}", if changed { " with changes" } else { "" }),
        None => format!("headmark {version}, {day}"),
    }
}
