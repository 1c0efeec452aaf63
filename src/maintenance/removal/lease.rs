//! For how long a removal is left to the node that works on it. While a batch takes longer, the node renews that: else
//! another one would begin the same batch, and take the removal from it.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Result;
use crate::db::Db;
use crate::features::removals::{Removal, store};

/// For how long a removal is left to its node, after each batch and each renewal.
const LEASE_MS: i64 = 3000;

/// How often it is renewed during a batch.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// How long a renewal may take. After one that got no answer there is time for another one.
const MAX_RENEWAL: Duration = Duration::from_millis(800);

/// Until when a lease lasts that begins now.
pub(super) fn lease(clock: &Clock) -> UnixMs {
    UnixMs(clock.now().0 + LEASE_MS)
}

/// What a batch came to, during which the lease of its removal was renewed. None: another node has the removal. A batch
/// that is still under way then is dropped.
pub(super) async fn hold<T>(db: &Db, clock: &Clock, removal: &mut Removal, batch: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    // A node on SQLite has the database for itself, and the batch may have its one lock.
    if !db.is_shared() {
        return batch.await.map(Some);
    }
    let over = CancellationToken::new();
    // In a task of its own, as a batch may keep its thread for a while, and begun before: no other thread takes it from
    // this one until then.
    let mut renewing = AbortOnDropHandle::new(tokio::spawn(renew(db.clone(), clock.clone(), removal.clone(), over.clone())));
    tokio::task::yield_now().await;
    let outcome = tokio::select! {
        biased;
        outcome = batch => outcome?,
        _ = &mut renewing => return Ok(None),
    };
    over.cancel();
    let Ok(Some(held)) = renewing.await else { return Ok(None) };
    *removal = held;
    Ok(Some(outcome))
}

/// Renews until the batch is over. The removal as its row has it then; None: another node has it.
async fn renew(db: Db, clock: Clock, mut held: Removal, over: CancellationToken) -> Option<Removal> {
    let mut tick = tokio::time::interval_at(Instant::now() + RENEW_EVERY, RENEW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = over.cancelled() => return Some(held),
            _ = tick.tick() => {}
        }
        let renewal = tokio::time::timeout(MAX_RENEWAL, store::renew(&db, &mut held, lease(&clock)));
        match renewal.await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => return None,
            // The batch goes on: this does not say that another node has the removal.
            Ok(Err(error)) => tracing::debug!(?error, operation = %held.id, "cannot renew the lease of a removal yet"),
            Err(_) => tracing::debug!(operation = %held.id, "the database does not answer to the renewal of a removal's lease"),
        }
    }
}
