//! Accepts actions that may be done later, and does what is pending: each node what it has
//! accepted, at once, and after a while what others have left. It also accepts the open requests of
//! users who approve follows no longer (`approvals.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RelationConfig;
use super::approvals;
use super::command::{PairAction, Terms};
use super::deferred::DeferredCommand;
use crate::base::error::Result;
use crate::db::in_time;
use crate::engine::lanes::{Job, Lanes};
use crate::engine::pairs::Pair;
use crate::failpoint;
use crate::features::operations::http::{OperationContext, accepted};
use crate::features::operations::store::{PendingOperation, PendingPairs};
use crate::features::operations::{Preceding, store};
use crate::http::auth::Caller;
use crate::http::served::Served;

/// How often the worker looks by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Counting what is pending takes at most one of so many parts of the time: of many it takes long, and rounds follow each
/// other soon.
const COUNTING_PART: u32 = 10;

/// It is counted this often at least: this node knows of what it does itself, and only a count tells it what others do.
const MAX_COUNTS_APART: Duration = Duration::from_secs(10);

/// After how long an operation is taken up that another node has accepted: that one is slow, or no
/// longer there.
const ABANDONED_MS: i64 = 2000;

/// How many pages of pending operations one round looks at, where it can do none of them.
const PAGES_A_ROUND: usize = 5;

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
    let operation = operations.begin(caller, action.pair, command, clock.now())?;
    let id = operation.id.clone();
    let submitted = state.lanes.submit(Job { command: Arc::new(DeferredCommand::Accept(operation)), key: None }).await;
    let answer = submitted.inspect_err(|_| operations.give_back([caller.id().as_str()]))?;
    operations.accepted();
    accepted(answer, &id)
}

/// Does what is pending until told to stop.
pub async fn run(state: Arc<WorkerContext>, stop: CancellationToken) {
    let mut seen = Seen::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.accepted.operations.rung() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        loop {
            // Neither waits for the other where that cannot go on.
            let (done, accepted) = (round(&state, &mut seen).await, accept_open(&state).await);
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

/// When it was last counted what is pending, and how long that took.
type Counted = Option<(Instant, Duration)>;

/// What the worker knows from one round to the next.
#[derive(Debug, Default)]
struct Seen {
    counted: Counted,
    /// After which operation the next round looks; 0: from the first one on.
    after: i64,
    /// Pairs that could not be read since it began from the first one on.
    unreadable: BTreeSet<Pair>,
}

/// One look, and all that it found. How many operations were done. Those that cannot be read hold up no
/// others: where a page has nothing else, the next one is looked at, and the next round goes on there.
async fn round(state: &WorkerContext, seen: &mut Seen) -> Result<usize> {
    let is_counted_of_late = |(at, took): (Instant, Duration)| at.elapsed() < (took * COUNTING_PART).min(MAX_COUNTS_APART);
    if !seen.counted.is_some_and(is_counted_of_late) && count(&state.accepted, &mut seen.counted).await == Some(0) {
        return Ok(0);
    }
    for _ in 0..PAGES_A_ROUND {
        let after = std::mem::take(&mut seen.after);
        if after == 0 {
            seen.unreadable.clear();
        }
        let (done, next) = page(state, after, &mut seen.unreadable).await?;
        match next {
            Some(next) if done == 0 => seen.after = next,
            _ => return Ok(done),
        }
    }
    Ok(0)
}

/// Does what is pending of the pairs of one page. How many operations were done, and after which one the next page is.
/// A pair that could not be read is passed over from then on: it may have more operations than are in sight at once,
/// and they would hide those of others on a later page.
async fn page(state: &WorkerContext, after: i64, unreadable: &mut BTreeSet<Pair>) -> Result<(usize, Option<i64>)> {
    let OperationContext { db, operations, clock } = &*state.accepted;
    let PendingPairs { mut pairs, next } = store::pending_pairs(db, operations.node(), clock.now(), ABANDONED_MS, after).await?;
    pairs.retain(|pair| !unreadable.contains(pair));
    if pairs.is_empty() {
        return Ok((0, next));
    }
    let looked = do_all(state, store::pending_of(db, &pairs).await?).await?;
    unreadable.extend(looked.unreadable);
    Ok((looked.done, next))
}

/// How many are pending; None where that cannot be told in time, which does not keep them from being done.
async fn count(accepted: &OperationContext, counted: &mut Counted) -> Option<usize> {
    let OperationContext { db, operations, .. } = accepted;
    let begun = Instant::now();
    failpoint("operations::counting");
    let found = in_time(store::count(db, operations.config.max_pending_operations)).await;
    *counted = Some((Instant::now(), begun.elapsed()));
    let pending = operations.set_pending(found.inspect_err(|error| tracing::debug!(?error, "cannot count what is pending")).ok()?);
    metrics::gauge!("headmark_operations_pending").set(f64::from(u32::try_from(pending).unwrap_or(u32::MAX)));
    Some(pending)
}

async fn accept_open(state: &WorkerContext) -> Result<usize> {
    approvals::round(&state.accepted.db, &state.lanes, &state.relations.terms()).await
}

/// Does what is pending of these pairs (each with the lower id first), as far as it can be seen
/// now. Returns after which a write comes that was there before this look.
///
/// # Errors
/// What the lanes answer, where a store is away or they are full; what was not done stays pending.
pub(super) async fn drain(state: &WorkerContext, pairs: &[Pair]) -> Result<Preceding> {
    let in_sight = store::pending_of(&state.accepted.db, pairs).await?;
    let preceding = store::preceding(&in_sight);
    do_all(state, in_sight).await?;
    Ok(preceding)
}

/// What is to be done of one pair.
#[derive(Default)]
struct Queue {
    acts: Vec<(i64, PairAction)>,
    /// Who had each accepted.
    callers: Vec<String>,
}

/// Does these of one pair, but for those that others do or have done meanwhile, which are the first of them. Returns who
/// had accepted what it did.
async fn do_pair(lanes: Lanes, terms: Terms, pair: Pair, queue: Queue) -> Result<Vec<String>> {
    let Queue { acts, mut callers } = queue;
    let command = Arc::new(DeferredCommand::Drain { pair, queue: acts, terms });
    let done: usize = lanes.submit(Job { command, key: None }).await?.json()?.parse().unwrap_or_default();
    Ok(callers.split_off(callers.len().saturating_sub(done)))
}

/// What came of a look at operations.
struct Looked {
    /// How many were done: not those that cannot be read, so that a round which finds no others ends.
    done: usize,
    /// Pairs of which one cannot be read.
    unreadable: BTreeSet<Pair>,
}

/// Does these operations, in the order of their pairs.
async fn do_all(state: &WorkerContext, in_sight: Vec<PendingOperation>) -> Result<Looked> {
    let mut queues: BTreeMap<Pair, Queue> = BTreeMap::new();
    let (mut unreadable, mut first_unreadable) = (BTreeSet::new(), None);
    for PendingOperation { pair, seq, caller, command } in in_sight {
        match serde_json::from_str(&command) {
            Ok(action) if !unreadable.contains(&pair) => {
                let queue = queues.entry(pair).or_default();
                queue.acts.push((seq, action));
                queue.callers.push(caller);
            }
            Ok(_) => {}
            // What comes after it in its pair waits with it.
            Err(_) => {
                first_unreadable = first_unreadable.or(Some(seq));
                unreadable.insert(pair);
            }
        }
    }
    if let Some(seq) = first_unreadable {
        tracing::warn!(seq, pairs = unreadable.len(), "operations cannot be read; a newer version is to do them");
    }
    let terms = state.relations.terms();
    let submit = |(pair, queue): (Pair, Queue)| do_pair(state.lanes.clone(), terms.clone(), pair, queue);
    let outcomes: Vec<_> = futures_util::stream::iter(queues.into_iter().map(submit)).buffer_unordered(PAIRS_UNDER_WAY).collect().await;
    let (mut done, mut failure) = (0, None);
    for outcome in outcomes {
        match outcome {
            Ok(callers) => {
                state.accepted.operations.give_back(callers.iter().map(String::as_str));
                metrics::counter!("headmark_operations_total").increment(u64::try_from(callers.len()).unwrap_or_default());
                done += callers.len();
            }
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(Looked { done, unreadable }), Err)
}
