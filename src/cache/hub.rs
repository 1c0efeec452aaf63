//! Who on this node waits for which user: polls that are to answer as soon as something changes.
//!
//! Waking is a hint, never the truth: a waiter reads again whenever it is woken, and now and then
//! when it is not.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::base::ids::UserId;

/// Users listened to at once on one node. Beyond it a listener is never woken, and its poll lives
/// by its own rechecks.
pub(super) const LISTENED_USERS_MAX: usize = 100_000;

/// How long a listener waits for its subscription before it goes on without.
const READY_WITHIN: Duration = Duration::from_millis(500);

/// What the listeners of one user see.
#[derive(Debug, Clone, Copy)]
struct Signal {
    /// Times that the user was woken.
    wakes: u64,
    /// Whether wakes of other nodes arrive.
    ready: bool,
    /// Whether they once did and then ceased to, so that some may have been missed.
    lost: bool,
}

struct Slot {
    listeners: usize,
    signal: watch::Sender<Signal>,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<UserId, Slot>,
    /// Users whose subscription may have to change; only where wakes come from other nodes.
    unsettled: HashSet<UserId>,
}

/// What the subscriber has to do.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Users with listeners.
    pub(super) wanted: Vec<UserId>,
    /// Users whose last listener left.
    pub(super) unwanted: Vec<UserId>,
}

/// The node's listeners.
pub(super) struct Hub {
    inner: Mutex<Inner>,
    changed: Notify,
    /// Whether wakes come from other nodes too, over a subscription.
    remote: bool,
}

impl Hub {
    pub(super) fn new(remote: bool) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), changed: Notify::new(), remote })
    }

    /// Every change below is made in one step, so a poisoned lock guards whole data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn listen(self: &Arc<Self>, user: UserId) -> Listener {
        let mut inner = self.lock();
        if inner.slots.len() >= LISTENED_USERS_MAX && !inner.slots.contains_key(&user) {
            return Listener { ear: None };
        }
        let remote = self.remote;
        let slot = inner
            .slots
            .entry(user)
            .or_insert_with(|| Slot { listeners: 0, signal: watch::Sender::new(Signal { wakes: 0, ready: !remote, lost: false }) });
        slot.listeners = slot.listeners.saturating_add(1);
        let signal = slot.signal.subscribe();
        let first = slot.listeners == 1;
        if first && remote {
            inner.unsettled.insert(user);
            self.changed.notify_one();
        }
        drop(inner);
        let seen = signal.borrow().wakes;
        Listener { ear: Some(Ear { user, hub: Arc::clone(self), signal, seen }) }
    }

    fn leave(&self, user: UserId) {
        let mut inner = self.lock();
        let Some(slot) = inner.slots.get_mut(&user) else { return };
        slot.listeners = slot.listeners.saturating_sub(1);
        if slot.listeners > 0 {
            return;
        }
        inner.slots.remove(&user);
        if self.remote {
            inner.unsettled.insert(user);
            self.changed.notify_one();
        }
    }

    /// Wakes anyone who listens to one of these users.
    pub(super) fn wake(&self, users: impl IntoIterator<Item = UserId>) {
        let inner = self.lock();
        if inner.slots.is_empty() {
            return;
        }
        for user in users {
            if let Some(slot) = inner.slots.get(&user) {
                slot.signal.send_modify(|signal| signal.wakes = signal.wakes.wrapping_add(1));
            }
        }
    }

    /// The subscriptions of these users are in place. Listeners that had lost theirs are to read
    /// again now.
    pub(super) fn settle(&self, users: &[UserId]) {
        let inner = self.lock();
        for slot in users.iter().filter_map(|user| inner.slots.get(user)) {
            slot.signal.send_modify(|signal| {
                let wakes = signal.wakes.wrapping_add(u64::from(signal.lost));
                *signal = Signal { wakes, ready: true, lost: false };
            });
        }
    }

    /// Forgets who left while there was no subscription to end, so that they do not add up.
    pub(super) fn forget_unwanted(&self) {
        let Inner { slots, unsettled } = &mut *self.lock();
        unsettled.retain(|user| slots.contains_key(user));
    }

    /// All subscriptions are lost: every listener is to read again, for it may have missed
    /// something, and all are to be made again.
    pub(super) fn unsettle(&self) {
        let mut inner = self.lock();
        let Inner { slots, unsettled } = &mut *inner;
        unsettled.clear();
        for (&user, slot) in slots {
            unsettled.insert(user);
            slot.signal.send_modify(|signal| *signal = Signal { wakes: signal.wakes.wrapping_add(1), ready: false, lost: true });
        }
    }

    /// Waits until subscriptions have to change, and says how.
    pub(super) async fn unsettled(&self) -> Unsettled {
        loop {
            {
                let mut inner = self.lock();
                if !inner.unsettled.is_empty() {
                    let users = std::mem::take(&mut inner.unsettled);
                    let (wanted, unwanted) = users.into_iter().partition(|user| inner.slots.contains_key(user));
                    return Unsettled { wanted, unwanted };
                }
            }
            self.changed.notified().await;
        }
    }

    #[cfg(test)]
    pub(super) fn listened(&self) -> usize {
        self.lock().slots.len()
    }
}

struct Ear {
    user: UserId,
    hub: Arc<Hub>,
    signal: watch::Receiver<Signal>,
    seen: u64,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.hub.leave(self.user);
    }
}

/// Waits for changes of one user; from `Cache::listen`. Dropping it unsubscribes.
pub struct Listener {
    /// None beyond the bound on listened users.
    ear: Option<Ear>,
}

impl Listener {
    /// Resolves once changes made on any node from now on will wake this listener: subscribe, wait
    /// for this, then read. If the subscription takes longer than 500 ms it resolves all the same,
    /// so a poll must read again now and then.
    pub async fn ready(&mut self) {
        let Some(ear) = &mut self.ear else { return };
        let in_place = ear.signal.wait_for(|signal| signal.ready);
        if tokio::time::timeout(READY_WITHIN, in_place).await.is_err() {
            tracing::debug!(user = %ear.user, "no subscription in time; this poll rechecks by itself");
        }
    }

    /// Resolves after a change of this user that was published since the listener was made or last
    /// woken.
    pub async fn woken(&mut self) {
        let Some(ear) = &mut self.ear else { return pending().await };
        let seen = ear.seen;
        // Taken out before the match: what `wait_for` returns holds a lock, which no future may
        // hold over an await.
        let wakes = ear.signal.wait_for(|signal| signal.wakes != seen).await.map(|signal| signal.wakes);
        match wakes {
            Ok(wakes) => ear.seen = wakes,
            // The slot lives as long as this listener, so this cannot be; and a listener that is
            // never woken is allowed.
            Err(_) => pending().await,
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("user", &self.ear.as_ref().map(|ear| ear.user)).finish()
    }
}
