//! How many operations are pending, of all and of each caller.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::config::OperationConfig;
use crate::base::error::{Code, Problem};
use crate::http::caller::Caller;
use crate::http::shares::{Bounds, REFUSED};

/// How many a user may have pending, where that is not set.
const OF_A_USER: usize = 1000;

/// About how many are pending: what the database counted last, with what this node took since, without what it did since.
#[derive(Debug)]
pub(super) struct Pending {
    total: usize,
    bounds: Bounds,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Only callers who have any, each as its text.
    of_callers: HashMap<String, usize>,
}

impl Pending {
    /// None yet. An `open` server has one caller, which may have all of them.
    pub(super) fn new(config: &OperationConfig, open: bool) -> Self {
        let (total, set) = config.bounds();
        Self { total, bounds: Bounds::of(total, open, set, OF_A_USER), counts: Mutex::default() }
    }

    /// Makes room for one more of this caller.
    ///
    /// # Errors
    /// 503 if there is no room at all, 429 if this caller has none left.
    pub(super) fn take(&self, caller: &Caller) -> Result<(), Problem> {
        let mut counts = self.counts();
        if counts.all >= self.total {
            return Err(Problem::new(Code::Overloaded, "Too many asynchronous writes are pending. Try again shortly."));
        }
        let most = match caller {
            Caller::Service { .. } => self.bounds.service,
            Caller::User { .. } => self.bounds.user,
        };
        let count = counts.of_callers.entry(caller.id()).or_default();
        if *count >= most {
            metrics::counter!(REFUSED, "what" => "operations").increment(1);
            let detail = "This caller has reached its limit of pending asynchronous writes. Try again when some are done.";
            return Err(Problem::new(Code::RateLimited, detail));
        }
        *count += 1;
        counts.all += 1;
        Ok(())
    }

    /// These callers, each as its text, have one less: it is done, or was not accepted. It may have been done before the
    /// last count, so what is not there is not taken away.
    pub(super) fn give_back<'a>(&self, callers: impl IntoIterator<Item = &'a str>) {
        let mut counts = self.counts();
        for caller in callers {
            let Some(count) = counts.of_callers.get_mut(caller) else { continue };
            *count -= 1;
            if *count == 0 {
                counts.of_callers.remove(caller);
            }
            counts.all -= 1;
        }
    }

    /// So many each caller has, as the database counts them; returns how many that are.
    pub(super) fn set(&self, of_callers: HashMap<String, usize>) -> usize {
        let all = of_callers.values().sum();
        *self.counts() = Counts { all, of_callers };
        all
    }

    /// Nothing panics while it is locked, so a poisoned lock guards whole data.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_a_bound_of_its_own_below_that_of_all() {
        let config = OperationConfig {
            operation_ttl_hours: 1,
            max_pending_operations: 10,
            max_pending_operations_per_service: None,
            max_pending_operations_per_user: Some(2),
        };
        let pending = Pending::new(&config, false);
        let user = |id: i64| Caller::User { id: id.try_into().unwrap() };
        let code = |caller: &Caller| pending.take(caller).map_err(|problem| problem.code);
        assert_eq!([(); 3].map(|()| code(&user(1))), [Ok(()), Ok(()), Err(Code::RateLimited)]);
        assert_eq!(code(&user(2)), Ok(()));
        let service = Caller::Service { name: "web".into() };
        assert_eq!(pending.set(HashMap::from([(service.id(), 9)])), 9);
        assert_eq!((code(&service), code(&user(1))), (Err(Code::RateLimited), Ok(())), "the database has the last word");
        assert_eq!(code(&user(2)), Err(Code::Overloaded));
        pending.give_back([service.id().as_str(), "user:9", "user:9"]);
        assert_eq!((code(&service), code(&service)), (Ok(()), Err(Code::Overloaded)), "what is done makes room before the next count");
        pending.give_back([user(1).id().as_str(), &user(1).id(), &service.id()]);
        assert_eq!([(); 3].map(|()| code(&user(1))), [Ok(()), Ok(()), Err(Code::Overloaded)], "nobody has less than none");
        assert_eq!(Pending::new(&config, true).bounds.service, 10, "an open server has one caller");
    }
}
