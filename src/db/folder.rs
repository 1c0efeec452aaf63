//! The data folder of the embedded tier. Other accounts of the machine cannot read what is in it.
//!
//! A folder that Headmark makes has mode 0700. It leaves the mode of an existing folder alone,
//! because the folder may be for other things too, and warns when other accounts may enter it. The
//! files always have mode 0600, also those of earlier versions.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// The mode of a folder that is made here.
const FOLDER_MODE: u32 = 0o700;
/// The mode of every file in it.
const FILE_MODE: u32 = 0o600;
/// What a mode gives to the group and to all others.
const OTHERS: u32 = 0o077;

/// The SQLite file in the data folder.
pub const SQLITE_FILE: &str = "headmark.sqlite";
/// The file whose lock says that a process uses the folder.
const LOCK_FILE: &str = "lock";
/// What SQLite keeps beside its file. It makes them with the mode of the file.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes the folder if it is missing, and the file for its lock, which is not yet locked.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn make(dir: &Path) -> Result<File, String> {
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(dir).and_then(|()| fs::metadata(dir));
    let mode = made.map_err(|error| format!("cannot make the data folder {}: {error}", dir.display()))?.permissions().mode();
    if mode & OTHERS != 0 {
        tracing::warn!(
            folder = %dir.display(),
            mode = format!("{:o}", mode & 0o777),
            "other accounts may enter the data folder; its files are closed to them. To close the folder too: chmod 700"
        );
    }
    let path = dir.join(LOCK_FILE);
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
    let lock = lock.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    tighten(&path)?;
    Ok(lock)
}

/// Closes the SQLite files to other accounts. It makes the main file if it is missing, as SQLite
/// would make it readable for all. Call it with the folder's lock held.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn close_to_others(dir: &Path) -> Result<(), String> {
    let path = dir.join(SQLITE_FILE);
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(format!("cannot make {}: {error}", path.display())),
    }
    tighten(&path)?;
    BESIDE.iter().try_for_each(|suffix| tighten(&dir.join(format!("{SQLITE_FILE}{suffix}"))))
}

/// Takes the group's and the others' rights off a file, if it is there and they have any.
fn tighten(path: &Path) -> Result<(), String> {
    let mode = match fs::metadata(path) {
        Ok(found) => found.permissions().mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot look at {}: {error}", path.display())),
    };
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(FILE_MODE)) {
        // Another account owns the file and let this one use it, so the owner decides who else may.
        tracing::warn!(path = %path.display(), %error, "cannot close a file of the data folder to other accounts");
    }
    Ok(())
}
