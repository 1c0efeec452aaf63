//! The file with a JWK Set, followed as it changes.
//!
//! Requests read the keys without a lock; [`KeyFile::follow`] is a task that looks at the file now
//! and then. A new file that cannot be used leaves the last good keys where they are, but for those
//! that it no longer lists: an operator who takes a key out may no longer trust it. A file with an
//! empty list of keys can be used.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use jsonwebtoken::Algorithm;
use tokio_util::sync::CancellationToken;

use super::keys::{self, KeySet};
use crate::base::secret::read_file;
use crate::base::seldom::Seldom;

/// How often the file is looked at. It is small, so it is read each time: its dates do not tell
/// every change.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A set of a hundred RSA keys has about 50 KiB, its certificates aside.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// How often it is logged that something is wrong with the file, for as long as it is.
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// A file of keys, and what was last read of it.
pub(super) struct KeyFile {
    path: PathBuf,
    keys: ArcSwap<KeySet>,
    seen: Mutex<Seen>,
    reminders: Seldom,
}

/// The last look at the file.
struct Seen {
    /// What it held, or why it could not be read: the same again is no news.
    found: Found,
    trouble: Option<Trouble>,
}

/// What is wrong with a file.
struct Trouble {
    what: &'static str,
    why: String,
}

type Found = Result<Vec<u8>, io::ErrorKind>;

impl KeySet {
    /// The key for a token. One with a `kid` needs the key of that name; one without needs that no
    /// other key has its algorithm.
    pub(super) fn find(&self, algorithm: Algorithm, kid: Option<&str>) -> Option<&keys::Key> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithm == algorithm);
        match kid {
            Some(kid) => fitting.find(|key| key.kid.as_deref() == Some(kid)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

impl KeyFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let text = read_file(path, MAX_FILE_BYTES).map_err(|error| format!("HEADMARK_JWKS: cannot read {}: {error}", path.display()))?;
        let keys = keys::from_jwks(&text).and_then(|keys| if keys.keys.is_empty() { Err("it has no keys".to_owned()) } else { Ok(keys) });
        let keys = keys.map_err(|why| format!("HEADMARK_JWKS: {} cannot be used: {why}", path.display()))?;
        tell_passed_over(&keys);
        let seen = Mutex::new(Seen { found: Ok(text), trouble: None });
        Ok(Self { path: path.to_owned(), keys: ArcSwap::from_pointee(keys), seen, reminders: Seldom::new(REMIND_EVERY) })
    }

    #[cfg(test)]
    pub(super) fn remind_every(&mut self, every: Duration) {
        self.reminders = Seldom::new(every);
    }

    /// The keys as they are now.
    pub(super) fn keys(&self) -> Guard<Arc<KeySet>> {
        self.keys.load()
    }

    /// Looks at the file now and then until told to stop.
    pub(super) async fn follow(&self, every: Duration, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
            let path = self.path.clone();
            match tokio::task::spawn_blocking(move || read_file(&path, MAX_FILE_BYTES)).await {
                Ok(found) => {
                    self.take(found);
                }
                Err(error) => tracing::warn!(%error, "the look at the JWKS did not end; the keys stay as they are"),
            }
        }
    }

    /// Takes what a look at the file has found. Whether it is to be told that something is wrong with it:
    /// at once, and again from time to time.
    pub(super) fn take(&self, found: io::Result<Vec<u8>>) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Found = found.map_err(|error| error.kind());
        let is_news = seen.found != found;
        if is_news {
            let trouble = self.put_in_use(&found);
            *seen = Seen { found, trouble };
        }
        let Some(Trouble { what, why }) = &seen.trouble else { return false };
        let tells = self.reminders.may() | is_news;
        if tells {
            let (path, keys) = (self.path.display(), self.keys().keys.len());
            tracing::error!(%path, keys, why, "{what}");
        }
        tells
    }

    /// Puts the keys that were found in use. What is wrong with them, if anything is.
    fn put_in_use(&self, found: &Found) -> Option<Trouble> {
        let text = match found {
            Ok(text) => text,
            Err(why) => return Some(Trouble { what: "cannot read the JWKS: the keys from before stay in use", why: why.to_string() }),
        };
        let keys = match keys::from_jwks(text) {
            Ok(keys) => keys,
            Err(why) => return Some(Trouble { what: self.keep_listed(text), why }),
        };
        let count = keys.keys.len();
        tell_passed_over(&keys);
        self.keys.store(Arc::new(keys));
        if count == 0 {
            let why = "its list of keys is empty".to_owned();
            return Some(Trouble { what: "the JWKS has no keys any more: all tokens are refused", why });
        }
        tracing::info!(path = %self.path.display(), keys = count, "the JWKS has changed: its keys are in use");
        None
    }

    /// Goes on with those keys that this set, which cannot be used, lists as well. What that means.
    fn keep_listed(&self, text: &[u8]) -> &'static str {
        const ALL_STAY: &str = "the JWKS has changed and cannot be used: the keys from before stay in use";
        const SOME_STAY: &str = "the JWKS has changed and cannot be used: only keys from before that it still lists stay in use";
        let Some(listed) = keys::listed_names(text) else { return ALL_STAY };
        let before = self.keys();
        let keys: Vec<_> = before.keys.iter().filter(|key| listed.contains(&key.kid)).cloned().collect();
        if keys.len() == before.keys.len() {
            return ALL_STAY;
        }
        self.keys.store(Arc::new(KeySet { keys, passed_over: Vec::new() }));
        SOME_STAY
    }
}

fn tell_passed_over(keys: &KeySet) {
    for why in &keys.passed_over {
        tracing::warn!("the JWKS has a key that is not used: {why}");
    }
}
