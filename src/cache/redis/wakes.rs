//! The node's one subscription: brings wakes that other nodes publish to the listeners here.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::aio::{PubSubSink, PubSubStream};
use futures_util::StreamExt;

use super::reads::Reads;
use super::shared::Shared;
use super::wire::{self, away};
use crate::base::ids::UserId;
use crate::cache::CacheError;
use crate::cache::hub::Hub;

/// Channels in one SUBSCRIBE or UNSUBSCRIBE.
const CHANNELS_AT_ONCE: usize = 256;

/// Pause before the connection is made again: at first, and at most, doubling in between.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// How often an otherwise quiet connection is asked whether it still lives: one whose other end
/// vanished would be silent for ever.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Keeps the subscription, until aborted.
pub(super) async fn run(shared: Arc<Shared>, reads: Arc<Reads>, hub: Arc<Hub>) {
    let mut pause = RECONNECT_PAUSE;
    let mut changes = shared.run.changes();
    loop {
        changes.mark_unchanged();
        match wire::subscriber(&shared.redis).await {
            Ok(pubsub) => {
                pause = RECONNECT_PAUSE;
                let (sink, stream) = pubsub.split();
                let Err(error) = tokio::select! {
                    error = hear(&shared, &reads, &hub, stream) => error,
                    error = subscribe(&shared, &reads, &hub, sink) => error,
                    _ = changes.changed(), if !shared.redis.cluster => Err(CacheError::Away("another run of Redis is the master".to_owned())),
                };
                tracing::warn!(%error, "the subscription was lost; connecting again");
                hub.unsettle();
            }
            Err(error) => {
                tracing::debug!(%error, "no connection for the subscription yet");
                hub.forget_unwanted();
            }
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(RECONNECT_PAUSE_MAX);
    }
}

/// Wakes whomever a message is for.
async fn hear(shared: &Shared, reads: &Reads, hub: &Hub, mut messages: PubSubStream) -> Result<Infallible, CacheError> {
    let before_id = format!("{}wake:{{u:", shared.config.prefix);
    while let Some(message) = messages.next().await {
        let id = message.get_channel_name().strip_prefix(&before_id).and_then(|rest| rest.strip_suffix('}'));
        if let Some(user) = id.and_then(|id| id.parse::<UserId>().ok()) {
            // Those who wake must not find the copy that they have seen: what Redis tells of its end
            // comes over another connection.
            reads.copies.remove(user);
            hub.wake([user]);
        }
    }
    Err(CacheError::Away("the connection was closed".to_owned()))
}

/// Makes the subscriptions what the listeners want.
async fn subscribe(shared: &Shared, reads: &Reads, hub: &Hub, mut sink: PubSubSink) -> Result<Infallible, CacheError> {
    let mut subscribed: HashSet<UserId> = HashSet::new();
    loop {
        let Ok(unsettled) = tokio::time::timeout(PING_EVERY, hub.unsettled()).await else {
            in_time(shared, sink.ping::<deadpool_redis::redis::Value>()).await?;
            continue;
        };
        for users in unsettled.unwanted.chunks(CHANNELS_AT_ONCE) {
            let users: Vec<UserId> = users.iter().copied().filter(|user| subscribed.remove(user)).collect();
            if !users.is_empty() {
                in_time(shared, sink.unsubscribe(channels(shared, &users))).await?;
            }
        }
        for users in unsettled.wanted.chunks(CHANNELS_AT_ONCE) {
            let new: Vec<UserId> = users.iter().copied().filter(|user| !subscribed.contains(user)).collect();
            if !new.is_empty() {
                in_time(shared, sink.subscribe(channels(shared, &new))).await?;
                subscribed.extend(new);
            }
            // What changed before is not told here any more.
            reads.copies.remove_all(users.iter().copied());
            hub.settle(users);
        }
    }
}

fn channels(shared: &Shared, users: &[UserId]) -> Vec<String> {
    users.iter().map(|&user| shared.wake_channel(user)).collect()
}

async fn in_time<T>(shared: &Shared, request: impl Future<Output = deadpool_redis::redis::RedisResult<T>>) -> Result<T, CacheError> {
    match tokio::time::timeout(shared.redis.timeout, request).await {
        Ok(outcome) => outcome.map_err(|error| away(&error)),
        Err(_) => Err(CacheError::Away("no answer in time".to_owned())),
    }
}
