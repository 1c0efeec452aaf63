//! Judges the machine: open files and the room on its disk.

use std::path::Path;

use super::finding::Finding;
use crate::app::config::Config;
use crate::app::serve::files;

/// With less room than this on the disk of the data folder, writes fail soon.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// Looks at the machine that this runs on.
pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = vec![open_files(files::needed(config.http.all_connections()), files::allowed())];
    if config.stores.database_url.is_none() {
        findings.push(disk(&config.stores.data_dir, free_bytes(&config.stores.data_dir)));
        findings.extend(config.stores.existing().ok().and_then(|file| not_mine(&file)));
    }
    findings
}

/// A file that this account may not write, as after a restore by another one. It is left as it is.
fn not_mine(file: &Path) -> Option<Finding> {
    let error = std::fs::OpenOptions::new().write(true).open(file).err()?;
    let what = format!("this account cannot write {}: {error}", file.display());
    Some(Finding::failure("machine", what, "give the file to the account that runs the server (chown)"))
}

fn open_files(needed: u64, allowed: Option<u64>) -> Finding {
    match allowed {
        Some(allowed) if allowed < needed => {
            let what = format!("a process may open {allowed} files; HEADMARK_MAX_CONNECTIONS needs {needed}");
            Finding::warning("machine", what, "raise the hard limit (LimitNOFILE= of systemd, ulimit -Hn), or lower the setting")
        }
        _ => Finding::ok("machine", format!("a process may open the {needed} files that it needs")),
    }
}

/// The room for this account on the disk of a folder; None where the system does not tell.
#[cfg(unix)]
fn free_bytes(dir: &Path) -> Option<u64> {
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_dir: &Path) -> Option<u64> {
    None
}

fn disk(dir: &Path, free: Option<u64>) -> Finding {
    match free {
        Some(free) if free < MIN_FREE_BYTES => {
            let what = format!("the disk of {} has {} MiB left", dir.display(), free >> 20);
            Finding::warning("machine", what, "make room: without it, writes are refused with 503")
        }
        Some(free) => Finding::ok("machine", format!("the disk of {} has {} GiB left", dir.display(), free >> 30)),
        None => Finding::ok("machine", format!("the room on the disk of {} is not known here", dir.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::finding::State;

    #[test]
    fn too_few_files_and_too_little_room_are_told() {
        assert_eq!(open_files(20_512, Some(1024)).state, State::Warning);
        assert_eq!(open_files(20_512, Some(20_512)).state, State::Ok);
        assert_eq!(open_files(20_512, None).state, State::Ok);
        assert_eq!(disk(Path::new("data"), Some(1 << 20)).state, State::Warning);
        assert_eq!(disk(Path::new("data"), Some(1 << 40)).state, State::Ok);
        let file = std::env::current_exe().unwrap();
        assert_eq!(not_mine(&file.join("nowhere")).unwrap().state, State::Failure);
        assert!(free_bytes(Path::new("/nowhere/at/all")).is_some_and(|free| free > 0));
    }
}
