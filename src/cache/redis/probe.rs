//! Looks for Redis while it is away.

use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::RedisError;
use tokio::time::Instant;

use super::reads::Reads;
use super::shared::Shared;
use super::wire::{self, Connected};

/// Pause between two tries to reach Redis while it is open.
const PROBE_EVERY: Duration = Duration::from_millis(200);

/// While the breaker is open, tries to reach Redis. It does so over new connections, which then
/// replace the old: one whose other end vanished without a word would only time out again.
pub(super) async fn run(shared: Arc<Shared>, reads: Arc<Reads>) {
    loop {
        shared.breaker.opened.notified().await;
        loop {
            tokio::time::sleep(PROBE_EVERY).await;
            if let Some(until) = shared.breaker.rests_until() {
                tokio::time::sleep_until(until).await;
            }
            match connect(&shared).await {
                Ok(connected) => {
                    shared.connected.store(Arc::new(connected));
                    reads.disconnect();
                    if shared.breaker.close(Instant::now()) {
                        break;
                    }
                }
                Err(error) => tracing::debug!(%error, "Redis is still away"),
            }
        }
        shared.meters.breaker(false);
        tracing::info!("Redis is back: the breaker closes");
    }
}

/// Connects to a Redis that is of use. A name may lead to a former master for a while yet; a cluster
/// whose masters do not all answer is of use for the others.
async fn connect(shared: &Shared) -> Result<Connected, RedisError> {
    let connected = wire::connect(&shared.redis, &shared.scripts).await?;
    if !shared.redis.cluster {
        for written in connected.wire.clone().send(vec![shared.probe_write()]).await {
            written?;
        }
    }
    Ok(connected)
}
