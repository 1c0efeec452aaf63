//! Judges the backups, where it is told of them: how old the newest one is, and whether anything is in it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::finding::Finding;
use crate::base::clock::UnixMs;

/// Entries of a folder that are looked at, at most.
const MAX_ENTRIES: usize = 100_000;

/// Where backups are, and how old the newest may be.
#[derive(Debug)]
pub struct Backups {
    /// A file, or a folder with a file or a folder for each backup.
    pub path: PathBuf,
    pub max_age: Duration,
}

/// The newest backup.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Newest {
    path: PathBuf,
    /// When it was last written to.
    at: UnixMs,
    is_empty: bool,
}

impl Backups {
    pub(super) fn examine(&self, now: UnixMs) -> Finding {
        match newest(&self.path) {
            Ok(newest) => self.judge(newest, now),
            Err(error) => Finding::failure(
                "backups",
                format!("cannot look at {}: {error}", self.path.display()),
                "give the path of the backups with --backups",
            ),
        }
    }

    fn judge(&self, newest: Option<Newest>, now: UnixMs) -> Finding {
        const FIX: &str = "look at what makes them: the writes since the last good one would be lost with the disk";
        let Some(newest) = newest else {
            return Finding::failure("backups", format!("{} has no backup", self.path.display()), FIX);
        };
        let age = Duration::from_millis(u64::try_from(now.0.saturating_sub(newest.at.0)).unwrap_or(0));
        let what = format!("the newest one, {}, is {} old", newest.path.display(), hours(age));
        if newest.is_empty {
            Finding::failure("backups", format!("{what} and is empty"), FIX)
        } else if age > self.max_age {
            Finding::failure("backups", format!("{what}: more than {}", hours(self.max_age)), FIX)
        } else {
            Finding::ok("backups", what)
        }
    }
}

fn hours(age: Duration) -> String {
    format!("{} h", age.as_secs() / 3600)
}

/// The entry of a folder that was written last, or the file itself.
fn newest(path: &Path) -> io::Result<Option<Newest>> {
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return seen(path.to_owned(), &found).map(Some);
    }
    let mut newest: Option<Newest> = None;
    for entry in fs::read_dir(path)?.take(MAX_ENTRIES) {
        let path = entry?.path();
        // What is removed meanwhile is no backup.
        let Ok(found) = fs::metadata(&path) else { continue };
        let this = seen(path, &found)?;
        if newest.as_ref().is_none_or(|newest| this.at > newest.at) {
            newest = Some(this);
        }
    }
    Ok(newest)
}

fn seen(path: PathBuf, found: &Metadata) -> io::Result<Newest> {
    let since = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let is_empty = if found.is_dir() { fs::read_dir(&path)?.next().is_none() } else { found.len() == 0 };
    Ok(Newest { path, at: UnixMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)), is_empty })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::doctor::finding::State;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn old_empty_and_missing_backups_are_told() {
        let backups = Backups { path: "backups".into(), max_age: Duration::from_hours(26) };
        let judged =
            |at: i64, is_empty| backups.judge(Some(Newest { path: "one".into(), at: UnixMs(at), is_empty }), UnixMs(100 * HOUR)).state;
        assert_eq!(backups.judge(None, UnixMs(0)).state, State::Failure);
        assert_eq!(judged(74 * HOUR, false), State::Ok);
        assert_eq!(judged(74 * HOUR - 1, false), State::Failure);
        assert_eq!(judged(99 * HOUR, true), State::Failure);
        // Clocks differ.
        assert_eq!(judged(101 * HOUR, false), State::Ok);
    }

    #[test]
    fn the_newest_entry_counts() {
        let folder = std::env::temp_dir().join(format!("headmark-backups-{}", std::process::id()));
        fs::create_dir_all(folder.join("base")).unwrap();
        assert!(newest(&folder).unwrap().unwrap().is_empty);
        fs::write(folder.join("base/file"), "rows").unwrap();
        fs::write(folder.join("old"), "rows").unwrap();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000);
        fs::File::options().write(true).open(folder.join("old")).unwrap().set_modified(old).unwrap();
        let found = newest(&folder).unwrap().unwrap();
        assert_eq!((found.path, found.is_empty), (folder.join("base"), false));
        assert_eq!(newest(&folder.join("old")).unwrap().unwrap().at, UnixMs(1_000_000));
        assert!(newest(&folder.join("none")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
