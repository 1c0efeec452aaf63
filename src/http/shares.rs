//! How much of a bounded resource each caller holds, so that one caller cannot take all of it.
//!
//! It counts what is held now, unlike [`limit`](super::limit), which counts requests per second. To
//! bound one more resource: a [`Shares`] beside its total.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::base::error::{Code, Problem};
use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;
use crate::http::caller::Caller;

/// Refusals because one caller held as much as it may, by what it held.
pub(crate) const REFUSED: &str = "headmark_http_caller_limited_total";

/// Independent parts of the users' counts, each with its own lock.
const SHARDS: usize = 64;

/// How much one caller may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A service, known by the name of its key.
    pub service: usize,
    /// An end user.
    pub user: usize,
}

impl Bounds {
    /// The bounds of this `total`, as `set` for a service and a user. Unset they are nine tenths
    /// for a service, and `usual` or as much as that for a user. An `open` server has one caller,
    /// which may hold everything.
    #[must_use]
    pub fn of(total: usize, open: bool, (service, user): (Option<usize>, Option<usize>), usual: usize) -> Self {
        let most = (total / 10 * 9 + total % 10 * 9 / 10).max(1);
        let service = if open { total } else { service.unwrap_or(most) };
        Self { service, user: user.unwrap_or(usual.min(most)) }
    }

    /// Checks that what is set is below the total.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(total: (&str, usize), set: [(&str, Option<usize>); 2]) -> Result<(), String> {
        for (name, bound) in set {
            if bound.is_some_and(|bound| bound >= total.1) {
                return Err(format!("{name} must be below {}, or one caller could keep all others out.", total.0));
            }
        }
        Ok(())
    }
}

/// What each caller holds of one resource.
#[derive(Debug)]
pub struct Shares {
    what: &'static str,
    detail: &'static str,
    bounds: Bounds,
    /// As many as there are names of keys, so none is ever removed.
    services: ArcSwap<HashMap<Arc<str>, Arc<AtomicUsize>, IdHash>>,
    /// Only users who hold something.
    users: Vec<Mutex<HashMap<UserId, usize, IdHash>>>,
}

impl Shares {
    /// Nothing is held yet. `what` names the resource in metrics, `detail` is what a caller is
    /// told.
    #[must_use]
    pub fn new(what: &'static str, detail: &'static str, bounds: Bounds) -> Arc<Self> {
        let users = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Arc::new(Self { what, detail, bounds, services: ArcSwap::default(), users })
    }

    /// Takes one for this caller, until the share is dropped.
    ///
    /// # Errors
    /// A 429 problem when the caller holds as many as it may.
    pub fn take(self: &Arc<Self>, caller: &Caller) -> Result<Share, Problem> {
        self.take_many(caller, 1)
    }

    /// Takes so many for this caller.
    ///
    /// # Errors
    /// A 429 problem when the caller would hold more than it may.
    pub fn take_many(self: &Arc<Self>, caller: &Caller, count: usize) -> Result<Share, Problem> {
        let share = match caller {
            Caller::Service { name } => self.take_for_service(name, count),
            Caller::User { id } => self.take_for_user(*id, count),
        };
        share.ok_or_else(|| {
            metrics::counter!(REFUSED, "what" => self.what).increment(1);
            Problem::new(Code::RateLimited, self.detail)
        })
    }

    fn take_for_service(&self, name: &Arc<str>, count: usize) -> Option<Share> {
        let held = self.services.load().get(name).cloned().unwrap_or_else(|| self.add_service(name));
        let share = Share { holder: Holder::Service(Arc::clone(&held)), count };
        // Dropping the share gives back what was taken too much.
        (held.fetch_add(count, Ordering::Relaxed).saturating_add(count) <= self.bounds.service).then_some(share)
    }

    fn add_service(&self, name: &Arc<str>) -> Arc<AtomicUsize> {
        let fresh = Arc::<AtomicUsize>::default();
        self.services.rcu(|services| {
            let mut services = HashMap::clone(services);
            services.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(&fresh));
            services
        });
        self.services.load().get(name).cloned().unwrap_or(fresh)
    }

    fn take_for_user(self: &Arc<Self>, user: UserId, count: usize) -> Option<Share> {
        let mut users = self.users_with(user)?;
        let held = users.get(&user).copied().unwrap_or(0).saturating_add(count);
        if held > self.bounds.user {
            return None;
        }
        users.insert(user, held);
        Some(Share { holder: Holder::User(Arc::clone(self), user), count })
    }

    fn give_back(&self, user: UserId, count: usize) {
        let Some(mut users) = self.users_with(user) else { return };
        if let Some(held) = users.get_mut(&user) {
            *held = held.saturating_sub(count);
            if *held == 0 {
                users.remove(&user);
            }
        }
    }

    /// Nothing panics while it is locked, so a poisoned lock guards whole data.
    fn users_with(&self, user: UserId) -> Option<MutexGuard<'_, HashMap<UserId, usize, IdHash>>> {
        let at = usize::try_from(user.get().unsigned_abs()).unwrap_or(0) % SHARDS;
        self.users.get(at).map(|users| users.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is held of a resource for a caller, until this is dropped.
#[derive(Debug)]
pub struct Share {
    holder: Holder,
    count: usize,
}

#[derive(Debug)]
enum Holder {
    Service(Arc<AtomicUsize>),
    User(Arc<Shares>, UserId),
}

impl Drop for Share {
    fn drop(&mut self) {
        match &self.holder {
            Holder::Service(held) => drop(held.fetch_sub(self.count, Ordering::Relaxed)),
            Holder::User(shares, user) => shares.give_back(*user, self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> Caller {
        Caller::Service { name: name.into() }
    }

    fn user(id: i64) -> Caller {
        Caller::User { id: id.try_into().unwrap() }
    }

    #[test]
    fn each_caller_has_a_bound_of_its_own_and_gives_back() {
        let shares = Shares::new("places", "too many", Bounds { service: 3, user: 2 });
        for (caller, other, most) in [(service("web"), service("worker"), 3), (user(42), user(42 + 64), 2)] {
            let mut held: Vec<_> = (0..most).map(|_| shares.take(&caller).unwrap()).collect();
            let problem = shares.take(&caller).unwrap_err();
            assert_eq!((problem.code, problem.retry_after_s), (Code::RateLimited, Some(1)));
            assert!(shares.take(&other).is_ok(), "{other:?} holds nothing");
            held.pop();
            assert!(shares.take(&caller).is_ok(), "one was given back");
        }
        for (caller, most) in [(service("web"), 3), (user(42), 2)] {
            let held = shares.take_many(&caller, most - 1).unwrap();
            assert!(shares.take_many(&caller, 2).is_err() && shares.take_many(&caller, 1).is_ok());
            drop(held);
            assert!(shares.take_many(&caller, most).is_ok() && shares.take_many(&caller, most + 1).is_err());
        }
        assert!(shares.users.iter().all(|users| users.lock().unwrap().is_empty()), "who holds nothing is not kept");
    }

    #[test]
    fn what_is_not_set_follows_from_the_total() {
        let of = |total, open| Bounds::of(total, open, (None, None), 100);
        assert_eq!(of(10_000, false), Bounds { service: 9000, user: 100 });
        assert_eq!(of(20, false), Bounds { service: 18, user: 18 });
        assert_eq!(of(1, false), Bounds { service: 1, user: 1 });
        assert_eq!(of(20, true).service, 20, "an open server has one caller");
        assert_eq!(Bounds::of(20, false, (Some(5), Some(2)), 100), Bounds { service: 5, user: 2 });
        assert!(Bounds::check(("TOTAL", 20), [("SERVICE", Some(19)), ("USER", None)]).is_ok());
        let why = Bounds::check(("TOTAL", 20), [("SERVICE", None), ("USER", Some(20))]).unwrap_err();
        assert!(why.contains("USER must be below TOTAL"), "{why}");
    }
}
