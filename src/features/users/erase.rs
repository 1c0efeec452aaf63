//! The erasure of a user: what makes it one, in one transaction. From then on everything that names
//! the user is refused. Its rows go afterwards, in the background (`crate::features::removals`).

use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::UserId;
use crate::db::{Statement, Type};
use crate::engine::events::{Event, UserErasedEventOut};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::pairs::need_erasure;
use crate::features::operations::{AcceptedOut, OperationId};
use crate::features::push;
use crate::features::removals::rows::{RemovalRows, begin, repeat};
use crate::features::removals::{Engines, NewRemoval, Place, Progress, RemovalKind, Step, delete_own};

/// By how much the clocks of nodes may differ, and how long a write may be under way.
const CLOCKS_MS: i64 = 5000;

/// Erases a user. A repeat answers with the operation of the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EraseUser {
    pub(super) user: UserId,
    /// The id that the operation gets.
    pub(super) operation: OperationId,
    /// Who may read what came of it.
    pub(super) caller: String,
}

impl lanes::Command for EraseUser {
    fn needs(&self, needs: &mut Needs) {
        need_erasure(needs, self.user);
        needs.of::<RemovalRows>().insert(self.user);
    }

    fn lane_key(&self) -> i64 {
        self.user.get()
    }

    /// A user may be erased again.
    fn names(&self) -> Names {
        Vec::new()
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let removal = |id| NewRemoval { id, kind: RemovalKind::User, subject: self.user.get(), caller: self.caller.clone() };
        if let Some(operation) = rows.get::<RemovalRows>().erased_by(self.user) {
            repeat(rows, removal(operation.clone()));
            return Ok(Answer::accepted(AcceptedOut::new(operation)));
        }
        // Services hear of the user once more: that it is erased.
        push::set_push(rows, self.user, false, now);
        rows.erase(self.user);
        begin(rows, removal(self.operation.clone()));
        rows.event(now, &Event::UserErased(UserErasedEventOut { user_id: self.user }));
        Ok(Answer::accepted(AcceptedOut::new(self.operation.clone())))
    }
}

/// The user's own row, which is the last one to go: until then it says that the user is erased, and
/// after that only the hash of the id does. So a node that knows the row finds out that it is gone.
static OWN: [Statement; 2] = [
    Statement::one("delete from push_users where user_id = $1", &[("user_id", Type::Int)]),
    Statement::one("delete from users where user_id = $1", &[("user_id", Type::Int)]),
];

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> impl Iterator<Item = &'static Statement> {
    OWN.iter()
}

/// The last steps: the user's own row, and what caches hold of it and of others who knew it.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        delete_own("user", &["push_users", "users"], &OWN),
        Step::new("caches", &[], |engines, _, place| async move { Ok(outlive_caches(&engines, place.id)) }),
    ]
}

/// What is cached in Redis lives no longer than its life from the last write on. The place has the time
/// at which that is over; 0 at first.
fn outlive_caches(engines: &Engines, over_at: i64) -> Progress {
    let now = engines.clock.now().0;
    let over_at = match over_at {
        _ if !engines.cache.is_shared() => return Progress::Done,
        0 => now.saturating_add(engines.cache.life_ms()).saturating_add(CLOCKS_MS),
        over_at => over_at,
    };
    if over_at <= now { Progress::Done } else { Progress::Later(Place::id(over_at), UnixMs(over_at)) }
}
