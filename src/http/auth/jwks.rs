//! The file with a JWK Set, followed as it changes.
//!
//! Requests read the keys without a lock; [`KeyFile::follow`] is a task that looks at the file now
//! and then. A new file that cannot be used leaves the last good keys where they are; one with an
//! empty list of keys can.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use jsonwebtoken::Algorithm;
use tokio_util::sync::CancellationToken;

use super::keys::{self, KeySet};
use crate::base::secret::read_file;

/// How often the file is looked at. It is small, so it is read each time: its dates do not tell
/// every change.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// A set of a hundred RSA keys has about 50 KiB, its certificates aside.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file of keys, and what was last read of it.
pub(super) struct KeyFile {
    path: PathBuf,
    keys: ArcSwap<KeySet>,
    seen: Mutex<Seen>,
}

/// What the file held at the last look, or why it could not be read: the same again is no news.
type Seen = Result<Vec<u8>, io::ErrorKind>;

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
        Ok(Self { path: path.to_owned(), keys: ArcSwap::from_pointee(keys), seen: Mutex::new(Ok(text)) })
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
                Ok(found) => self.take(found),
                Err(error) => tracing::warn!(%error, "the look at the JWKS did not end; the keys stay as they are"),
            }
        }
    }

    /// Takes what a look at the file has found.
    pub(super) fn take(&self, found: io::Result<Vec<u8>>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now: Seen = found.map_err(|error| error.kind());
        if *seen == now {
            return;
        }
        let path = self.path.display();
        match now.as_ref().map(|text| keys::from_jwks(text)) {
            Ok(Ok(keys)) if keys.keys.is_empty() => {
                tracing::error!(%path, "the JWKS has no keys any more: all tokens are refused");
                self.keys.store(Arc::new(keys));
            }
            Ok(Ok(keys)) => {
                tracing::info!(%path, keys = keys.keys.len(), "the JWKS has changed: its keys are in use");
                tell_passed_over(&keys);
                self.keys.store(Arc::new(keys));
            }
            Ok(Err(why)) => tracing::error!(%path, why, "the JWKS has changed and cannot be used: the keys from before stay in use"),
            Err(why) => tracing::error!(%path, %why, "cannot read the JWKS: the keys from before stay in use"),
        }
        *seen = now;
    }
}

fn tell_passed_over(keys: &KeySet) {
    for why in &keys.passed_over {
        tracing::warn!("the JWKS has a key that is not used: {why}");
    }
}
