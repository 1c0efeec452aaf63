//! Secrets among the settings: given as they are, or in a file.
//!
//! To add one: an `Option<SecretString>` with [`secret`] as its parser, a twin named `…_FILE` with
//! [`path`], and [`settle`] where the section is resolved.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

/// How large a file with a secret may be. It bounds what a wrong path can read into memory.
pub const MAX_SECRET_FILE_BYTES: u64 = 64 * 1024;

/// Parses a setting that must not show in logs.
///
/// # Errors
/// Never; the signature is clap's.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a clap value parser")]
pub(crate) fn secret(text: &str) -> Result<SecretString, String> {
    Ok(SecretString::from(text.to_owned()))
}

/// Any path, an empty one too, which counts as unset once a section is resolved.
///
/// # Errors
/// Never; the signature is clap's.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a clap value parser")]
pub(crate) fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

/// Takes an empty secret for one that is not there.
pub(crate) fn unless_empty(secret: &mut Option<SecretString>) {
    *secret = secret.take().filter(|text| !text.expose_secret().trim().is_empty());
}

/// Takes the secret from the setting or from its file.
///
/// # Errors
/// When both are set, as nobody could tell which one counts; and when the file cannot be used.
pub(crate) fn settle(name: &str, setting: &mut Option<SecretString>, file: &mut Option<PathBuf>) -> Result<(), String> {
    unless_empty(setting);
    if let Some(secret) = from_file(name, setting.is_some(), file)? {
        *setting = Some(secret);
    }
    Ok(())
}

/// Takes the secret from the file of the setting `name`, if there is one. The file's last line
/// break is not part of the secret. An empty file is an error, because a server without credentials
/// would be an open one.
///
/// # Errors
/// A sentence for the operator that quotes nothing of the file.
pub(crate) fn from_file(name: &str, is_set: bool, file: &mut Option<PathBuf>) -> Result<Option<SecretString>, String> {
    let Some(path) = file.take().filter(|path| !path.as_os_str().is_empty()) else { return Ok(None) };
    if is_set {
        return Err(format!("{name} and {name}_FILE are both set: keep one of them."));
    }
    let bytes = read_file(&path, MAX_SECRET_FILE_BYTES);
    let bytes = bytes.map_err(|error| format!("{name}_FILE: cannot read the file {}: {error}", path.display()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| format!("{name}_FILE: the file is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.trim().is_empty() { Err(format!("{name}_FILE: the file is empty")) } else { Ok(Some(SecretString::from(text.to_owned()))) }
}

/// Reads a file that may have so many bytes at most.
pub(crate) fn read_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|size| size > max_bytes) {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max_bytes} bytes")));
    }
    Ok(text)
}
