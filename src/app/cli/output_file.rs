//! The file that a command writes its output to. What stood there before stays until the output is
//! whole: it may be the last good one. But where nothing may be made beside it, it is written at once.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
use std::io::{self, Seek as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rand::RngExt as _;

use crate::failpoint;

/// What the group of a file may do with it.
const OF_GROUP: u32 = 0o070;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: File,
    /// None where the output goes to the target directly: to a pipe or a device, which cannot be
    /// replaced.
    partial: Option<Partial>,
}

/// A file beside the target, removed when dropped.
#[derive(Debug)]
struct Partial {
    path: PathBuf,
    target: PathBuf,
    /// Of the file that is replaced.
    replaced: Option<Metadata>,
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It is gone where it took the place of the target.
        let _ = fs::remove_file(&self.path);
    }
}

impl OutputFile {
    /// Begins to write. Others cannot read what is new.
    pub(super) fn create(target: &Path) -> io::Result<Self> {
        let (target, replaced) = match fs::metadata(target) {
            Ok(found) if found.is_file() => (fs::canonicalize(target)?, Some(found)),
            Ok(_) => return Ok(Self { file: OpenOptions::new().write(true).open(target)?, partial: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (target.to_owned(), None),
            Err(error) => return Err(error),
        };
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        // Nobody can have made it before, and two at once do not write the same file. What one left that was killed
        // is in the way of nobody.
        let path = target.with_file_name(format!(".{name}.{:016x}.partial", rand::rng().random::<u64>()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => Ok(Self { file, partial: Some(Partial { path, target, replaced }) }),
            // The file may be written, but nothing may be made beside it.
            Err(error) if replaced.is_some() && matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                Ok(Self { file: OpenOptions::new().write(true).truncate(true).open(&target)?, partial: None })
            }
            Err(error) => Err(error),
        }
    }

    /// The output is whole. What waits for the disk does so on a thread of its own: where this is dropped
    /// meanwhile, the file beside the target goes at once.
    pub(super) async fn finish(self) -> io::Result<()> {
        let Self { file, partial } = self;
        let Some(partial) = partial else {
            // A pipe takes no sync.
            return if file.metadata()?.is_file() { aside(move || file.sync_all()).await } else { Ok(()) };
        };
        if let Some(replaced) = &partial.replaced {
            let (owner, group) = (Some(replaced.uid()), Some(replaced.gid()));
            // Where that is not allowed, it is this user's own from now on, and where possible the group's still.
            let _ = fchown(&file, owner, group).or_else(|_| fchown(&file, None, group));
            let mut permissions = replaced.permissions();
            if file.metadata()?.gid() != replaced.gid() {
                permissions.set_mode(permissions.mode() & !OF_GROUP);
            }
            file.set_permissions(permissions)?;
        }
        let mut file = aside(move || {
            failpoint("output::before_sync");
            file.sync_all().map(|()| file)
        })
        .await?;
        match fs::rename(&partial.path, &partial.target) {
            // A file that is mounted by itself takes other contents, but no other file its place.
            Err(error) if error.kind() == ResourceBusy => {
                let mut target = OpenOptions::new().write(true).truncate(true).open(&partial.target)?;
                file.rewind()?;
                aside(move || io::copy(&mut file, &mut target).and_then(|_| target.sync_all())).await
            }
            renamed => renamed,
        }
    }
}

/// Does what may take long on a thread that may block.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn what_was_there_stays_until_the_output_is_whole() {
        let folder = std::env::temp_dir().join(format!("headmark-output-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (target, link) = (folder.join("out.csv"), folder.join("link"));
        let mode = || fs::metadata(&target).unwrap().permissions().mode() & 0o777;
        let mut file = OutputFile::create(&target).unwrap();
        file.write_all(b"first").unwrap();
        assert!(!target.exists());
        file.finish().await.unwrap();
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), mode()), ("first", 0o600));
        let mut file = OutputFile::create(&target).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), names(&folder)), ("first", vec!["out.csv".to_owned()]));
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        symlink(&target, &link).unwrap();
        let mut file = OutputFile::create(&link).unwrap();
        file.write_all(b"second").unwrap();
        file.finish().await.unwrap();
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), mode()), ("second", 0o640), "what others may read stays so");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(&folder), ["link", "out.csv"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_device_is_written_directly() {
        let mut file = OutputFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"nothing").unwrap();
        file.finish().await.unwrap();
        assert!(OutputFile::create(Path::new("/")).is_err());
    }
}
