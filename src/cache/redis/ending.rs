//! Users whose entries are polled and end soon.
//!
//! Redis ends an entry some time after it was filled in or written, so that one that is outdated, as a
//! failover lost the begin of a write, does not stay. One that is polled is compared with SQL before
//! it ends, with many others at once, and lives on if it shows the same revision. So a client that
//! polls again and again does not cause a read of SQL each time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::copies::Life;
use super::reads::nanos;
use crate::base::ids::UserId;
use crate::cache::Revision;

/// How many wait to be compared, at most.
const MAX_ENDING: usize = 100_000;

/// How long one waits: what was seen of it is to be true when it is compared.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Those of a node.
#[derive(Debug)]
pub(super) struct Ending {
    users: Mutex<HashMap<UserId, (Revision, Instant)>>,
    some: Notify,
    ttl: Duration,
}

impl Ending {
    /// Of entries with such a life.
    pub(super) fn new(ttl: Duration) -> Self {
        Self { users: Mutex::default(), some: Notify::new(), ttl }
    }

    /// The life of an entry that lived for so many milliseconds more at that time, in nanoseconds: it
    /// ends soon in the last half of a whole life.
    pub(super) fn life(&self, at: u64, life_ms: u64) -> Life {
        let life = Duration::from_millis(life_ms);
        let after = |wait| at.saturating_add(nanos(wait));
        Life { soon: after(life.saturating_sub(self.ttl / 2)), end: after(life) }
    }

    /// When one that ends soon is thought of again, should it not have been compared by then.
    pub(super) fn again(&self, at: u64) -> u64 {
        at.saturating_add(nanos(self.ttl / 6))
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn users(&self) -> MutexGuard<'_, HashMap<UserId, (Revision, Instant)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A user is polled whose entry ends soon, and shows this revision.
    pub(super) fn add(&self, user: UserId, revision: Revision) {
        let mut users = self.users();
        if users.len() < MAX_ENDING {
            users.insert(user, (revision, Instant::now()));
        }
        if users.len() == 1 {
            self.some.notify_one();
        }
    }

    /// Takes them, once there are any that do not wait for too long.
    pub(super) async fn take(&self) -> Vec<(UserId, Revision)> {
        loop {
            let users = std::mem::take(&mut *self.users());
            if users.is_empty() {
                self.some.notified().await;
            }
            let is_late = |at: &Instant| at.elapsed() > MAX_WAIT;
            let users: Vec<_> =
                users.into_iter().filter(|(_, (_, at))| !is_late(at)).map(|(user, (revision, _))| (user, revision)).collect();
            if !users.is_empty() {
                return users;
            }
        }
    }
}
