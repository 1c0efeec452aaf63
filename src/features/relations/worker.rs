//! Accepts actions that may be done later, and does what is pending: each node what it has
//! accepted, at once, and after a while what others have left. It also accepts the open requests of
//! users who approve follows no longer (`approvals.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::RelationConfig;
use super::approvals;
use super::command::PairAction;
use super::deferred::DeferredCommand;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::engine::lanes::{Job, Lanes};
use crate::engine::pairs::Pair;
use crate::features::operations::http::{OperationContext, accepted};
use crate::features::operations::store;
use crate::http::auth::Caller;
use crate::http::served::Served;

/// How often the worker looks by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After how long an operation is taken up that another node has accepted: that one is slow, or no
/// longer there.
const ABANDONED_MS: i64 = 2000;

/// How many pairs are under way at once.
const PAIRS_UNDER_WAY: usize = 1000;

/// The pause between two rounds: what cannot be done yet must not be asked for without end.
const ROUNDS_APART: Duration = Duration::from_millis(10);

/// The pause after something went wrong.
const PAUSE: Duration = Duration::from_millis(200);

/// What actions that are done later are accepted and done with.
#[derive(Debug)]
pub struct WorkerContext {
    pub lanes: Lanes,
    /// How follows are bounded, and what they raise.
    pub relations: RelationConfig,
    /// What is accepted.
    pub accepted: Served<OperationContext>,
}

/// Accepts an action, to be done later, and says where to ask what came of it.
pub(super) async fn accept(state: &WorkerContext, caller: &Caller, action: PairAction) -> Result<Response> {
    let OperationContext { operations, clock, .. } = &*state.accepted;
    let command = serde_json::to_string(&action).unwrap_or_default();
    let operation = operations.begin(caller.id(), action.pair, command, clock.now())?;
    let id = operation.id.clone();
    let answer = state.lanes.submit(Job { command: Arc::new(DeferredCommand::Accept(operation)), key: None }).await?;
    operations.accepted();
    accepted(answer, &id)
}

/// Does what is pending until told to stop.
pub async fn run(state: Arc<WorkerContext>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.accepted.operations.rung() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        loop {
            // Neither waits for the other where that cannot go on.
            let (done, accepted) = (round(&state).await, accept_open(&state).await);
            let pause = match done.and_then(|done| Ok(done + accepted?)) {
                Ok(0) => break,
                Ok(_) => ROUNDS_APART,
                Err(error) => {
                    // They stay pending: the next round tries again.
                    tracing::debug!(?error, "cannot do asynchronous writes yet");
                    PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// One look, and all that it found. How many pairs that was.
async fn round(state: &WorkerContext) -> Result<usize> {
    let OperationContext { db, operations, clock } = &*state.accepted;
    let pending = store::count(db, operations.config.max_pending_operations).await?;
    operations.set_pending(pending);
    metrics::gauge!("headmark_operations_pending").set(f64::from(u32::try_from(pending).unwrap_or(u32::MAX)));
    if pending == 0 {
        return Ok(0);
    }
    let abandoned = UnixMs(clock.now().0 - ABANDONED_MS);
    let mut pairs = store::pending_pairs(db, operations.node(), abandoned).await?;
    pairs.sort_unstable();
    pairs.dedup();
    drain(state, &pairs).await?;
    Ok(pairs.len())
}

async fn accept_open(state: &WorkerContext) -> Result<usize> {
    approvals::round(&state.accepted.db, &state.lanes, &state.relations.terms()).await
}

/// Does what is pending of these pairs (each with the lower id first), as far as it can be seen
/// now.
///
/// # Errors
/// What the lanes answer, where a store is away or they are full; what was not done stays pending.
pub async fn drain(state: &WorkerContext, pairs: &[Pair]) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let mut queues: BTreeMap<Pair, Vec<(i64, PairAction)>> = BTreeMap::new();
    let mut unreadable = std::collections::BTreeSet::new();
    for (pair, seq, command) in store::pending_of(&state.accepted.db, pairs).await? {
        match serde_json::from_str(&command) {
            Ok(action) if !unreadable.contains(&pair) => queues.entry(pair).or_default().push((seq, action)),
            Ok(_) => {}
            // What comes after it in its pair waits with it.
            Err(_) => {
                tracing::warn!(seq, "an operation cannot be read; a newer version is to do it");
                unreadable.insert(pair);
            }
        }
    }
    let terms = state.relations.terms();
    let submit = |(pair, queue): (Pair, Vec<(i64, PairAction)>)| {
        let (lanes, terms) = (state.lanes.clone(), terms.clone());
        async move {
            let done = queue.len();
            let command = Arc::new(DeferredCommand::Drain { pair, queue, terms });
            lanes.submit(Job { command, key: None }).await.map(|_| done)
        }
    };
    let outcomes: Vec<_> = futures_util::stream::iter(queues.into_iter().map(submit)).buffer_unordered(PAIRS_UNDER_WAY).collect().await;
    for outcome in outcomes {
        metrics::counter!("headmark_operations_total").increment(u64::try_from(outcome?).unwrap_or_default());
    }
    Ok(())
}
