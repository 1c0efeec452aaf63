//! What is no longer kept goes, beside the requests. Each feature says what is old; each sweep is
//! bounded, and the rest waits for the next one.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::clock_check::ClockCheck;
use crate::app::state::AppState;
use crate::base::clock::UnixMs;
use crate::base::error::Error;
use crate::db::{Db, classify};
use crate::engine::{events, heads, idempotency, lanes};
use crate::features::old_rows::RestingWalk;
use crate::features::rounds::Rounds;
use crate::features::{broadcasts, feed, groups, inbox, notifications, operations, relations, removals, users, views};

/// How often what is no longer kept is swept.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What sweeps have removed, by table.
const EXPIRED: &str = "headmark_expired_rows_total";

/// What goes because of its age, in the order in which it is swept.
#[derive(Debug, Clone, Copy)]
enum Aged {
    Lanes,
    AbsentUsers,
    IdempotencyKeys,
    Events,
    Operations,
    Removals,
    Posts,
    Inbox,
    GroupMessages,
    Devices,
    Notifications,
    Mutes,
    ViewItems,
}

const AGED: [Aged; 13] = [
    Aged::Lanes,
    Aged::AbsentUsers,
    Aged::IdempotencyKeys,
    Aged::Events,
    Aged::Operations,
    Aged::Removals,
    Aged::Posts,
    Aged::Inbox,
    Aged::GroupMessages,
    Aged::Devices,
    Aged::Notifications,
    Aged::Mutes,
    Aged::ViewItems,
];

/// Where the sweeps that go on in the next round are.
#[derive(Debug, Default)]
struct Walks {
    inbox: RestingWalk,
    messages: groups::expiry::Walk,
    items: views::expiry::Walk,
}

/// Removes what is no longer kept, in bounded rounds, until told to stop.
pub(super) async fn run(state: AppState, mut clocks: ClockCheck, stop: CancellationToken) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    let (mut walks, mut emptied) = (Walks::default(), Instant::now());
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        sweep_rounds(&stop, "head_changes", || heads::store::sweep(&state.db)).await;
        sweep_rounds(&stop, "notices", || broadcasts::store::sweep(&state.db)).await;
        for what in AGED {
            // The clock may be set while the sweeps before take their time.
            if stop.is_cancelled() || !clocks.agrees().await {
                break;
            }
            let now = state.clock.now();
            sweep(&state, what, now, &mut walks, &stop).await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = empty_log(&state.db, &mut emptied) => {}
        }
    }
}

/// Empties SQLite's log, if nobody uses it, and tells for how long it was not: what was erased may still be in it.
async fn empty_log(db: &Db, emptied: &mut Instant) {
    match db.empty_log().await {
        Ok(true) => *emptied = Instant::now(),
        Ok(false) => tracing::debug!("the log of SQLite is in use; the next sweep tries again"),
        Err(error) => {
            // What a database says may quote contents.
            tracing::warn!(class = ?classify(&error), "cannot empty the log of SQLite, where erased text may be; the next sweep tries again");
            tracing::debug!(?error, "what the database said of its log");
        }
    }
    if !db.is_shared() {
        metrics::gauge!("headmark_sqlite_log_age_seconds").set(emptied.elapsed().as_secs_f64());
    }
}

async fn sweep(state: &AppState, what: Aged, now: UnixMs, walks: &mut Walks, stop: &CancellationToken) {
    let (db, contexts) = (&state.db, &state.contexts);
    let kept_operations = &contexts.operations.operations.config;
    match what {
        Aged::Lanes => {
            if let Err(error) = lanes::sweep(db, now).await {
                tracing::warn!(%error, "cannot sweep the rows of lanes that died");
            }
        }
        Aged::AbsentUsers => swept("absent_users", users::forget_the_absent(&contexts.last_seen).await.map(u64::from)),
        Aged::IdempotencyKeys => sweep_rounds(stop, "idempotency_keys", || idempotency::sweep(db, now)).await,
        Aged::Events => sweep_rounds(stop, "events", || events::sweep(db, &contexts.events.config, now)).await,
        Aged::Operations => sweep_rounds(stop, "operations", || operations::sweep(db, kept_operations, now)).await,
        Aged::Removals => sweep_rounds(stop, "removals", || removals::store::sweep(db, kept_operations, now)).await,
        Aged::Posts => sweep_rounds(stop, "posts", || feed::sweep(db, &contexts.feed.config, now)).await,
        Aged::Inbox => {
            if let Some(walk) = walks.inbox.due(Instant::now()) {
                let outcome = inbox::expiry::sweep(&contexts.inbox, walk).await;
                walks.inbox.went_on(outcome.as_ref().ok().copied(), Instant::now());
                swept("inbox", outcome.map(|swept| swept.removed));
            }
        }
        Aged::GroupMessages => swept("group_messages", groups::expiry::sweep(&contexts.groups, &mut walks.messages).await),
        Aged::Devices => sweep_rounds(stop, "devices", || inbox::expiry::sweep_devices(&contexts.inbox)).await,
        Aged::Notifications => swept("notifications", notifications::expiry::sweep(&contexts.notifications).await),
        Aged::Mutes => sweep_rounds(stop, "mutes", || relations::mute_http::sweep_mutes(&contexts.relations)).await,
        Aged::ViewItems => swept("view_items", views::expiry::sweep(&contexts.views, &mut walks.items).await),
    }
}

/// Counts what a sweep has removed. Where it was not able to, nothing is lost: the next one tries
/// again.
fn swept(what: &'static str, outcome: std::result::Result<u64, impl Into<Error>>) {
    match outcome.map_err(Into::into) {
        Ok(0) => {}
        Ok(removed) => {
            tracing::debug!(removed, what, "removed what is old");
            metrics::counter!(EXPIRED, "what" => what).increment(removed);
        }
        Err(error) => tracing::warn!(?error, what, "cannot remove what is old; the next sweep tries again"),
    }
}

/// Sweeps round after round while there is something to remove.
async fn sweep_rounds<F, E>(stop: &CancellationToken, what: &'static str, round: impl Fn() -> F)
where
    F: Future<Output = Result<u64, E>>,
    E: Into<Error>,
{
    let mut rounds = Rounds::small(stop);
    while rounds.next().await {
        let outcome = round().await;
        let is_over = !matches!(outcome, Ok(1..));
        swept(what, outcome);
        if is_over {
            return;
        }
    }
}
