//! What is no longer kept goes, beside the requests. Each feature says what is old; each sweep is
//! bounded, and the rest waits for the next one.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::state::AppState;
use crate::engine::{events, heads, idempotency, lanes};
use crate::features::old_rows::RestingWalk;
use crate::features::{broadcasts, feed, groups, inbox, notifications, operations, relations, removals, users, views};

/// How often what is no longer kept is swept.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The most rounds of one sweep; the rest waits for the next.
const SWEEP_ROUNDS: u32 = 200;

/// What sweeps have removed, by table.
const EXPIRED: &str = "headmark_expired_rows_total";

/// Removes what is no longer kept, in bounded rounds, until told to stop.
pub(super) async fn run(state: AppState, stop: CancellationToken) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    let mut old_rows = RestingWalk::default();
    let mut old_messages = groups::expiry::Walk::default();
    let mut old_items = views::expiry::Walk::default();
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        if let Err(error) = lanes::sweep(&state.db, state.clock.now()).await {
            tracing::warn!(%error, "cannot sweep the rows of lanes that died");
        }
        sweep_rounds(&stop, "head_changes", || heads::store::sweep(&state.db)).await;
        swept("absent_users", users::forget_the_absent(&state.contexts.last_seen).await.map(u64::from));
        sweep_rounds(&stop, "idempotency_keys", || idempotency::sweep(&state.db, state.clock.now())).await;
        sweep_rounds(&stop, "events", || events::sweep(&state.db, &state.contexts.events.config, state.clock.now())).await;
        sweep_rounds(&stop, "operations", || operations::sweep(&state.db, &state.contexts.operations.operations.config, state.clock.now()))
            .await;
        sweep_rounds(&stop, "removals", || {
            removals::store::sweep(&state.db, &state.contexts.operations.operations.config, state.clock.now())
        })
        .await;
        sweep_rounds(&stop, "posts", || feed::sweep(&state.db, &state.contexts.feed.config, state.clock.now())).await;
        if let Some(walk) = old_rows.due(Instant::now()) {
            let removed = inbox::expiry::sweep(&state.contexts.inbox, walk).await;
            if removed.is_ok() {
                old_rows.went_on(Instant::now());
            }
            swept("inbox", removed);
        }
        swept("group_messages", groups::expiry::sweep(&state.contexts.groups, &mut old_messages).await);
        sweep_rounds(&stop, "devices", || inbox::expiry::sweep_devices(&state.contexts.inbox)).await;
        sweep_rounds(&stop, "notices", || broadcasts::store::sweep(&state.db)).await;
        swept("notifications", notifications::expiry::sweep(&state.contexts.notifications).await);
        sweep_rounds(&stop, "mutes", || relations::mute_http::sweep_mutes(&state.contexts.relations)).await;
        swept("view_items", views::expiry::sweep(&state.contexts.views, &mut old_items).await);
    }
}

/// Counts what a sweep has removed. Where it was not able to, nothing is lost: the next one tries
/// again.
fn swept<E: std::fmt::Debug>(what: &'static str, outcome: std::result::Result<u64, E>) {
    match outcome {
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
    E: std::fmt::Debug,
{
    for _ in 0..SWEEP_ROUNDS {
        if stop.is_cancelled() {
            return;
        }
        let outcome = round().await;
        let is_over = !matches!(outcome, Ok(1..));
        swept(what, outcome);
        if is_over {
            return;
        }
    }
}
