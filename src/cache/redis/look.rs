//! What an operator may want to know of a Redis, for `headmark doctor`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{AsyncConnectionConfig, Client, RedisError, cmd};

use super::sentinel::{SentinelFacts, roll_call};
use super::wire::{away, one_node};
use crate::cache::{CacheError, RedisConfig};

/// What was found out about a Redis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisFacts {
    /// The fields of `INFO`.
    pub info: BTreeMap<String, String>,
    /// How long it took to answer a `PING`.
    pub answer: Duration,
    pub takes_writes: bool,
    /// What the Sentinels say, if there are any.
    pub sentinels: Vec<SentinelFacts>,
}

impl RedisFacts {
    /// Whether a field of `INFO` has this value.
    #[must_use]
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.info.get(name).is_some_and(|is| is == value)
    }
}

/// Looks at the Redis that the settings name. It writes one key, which lives for a second.
///
/// # Errors
/// When it cannot be reached, or refuses.
pub async fn look_at_redis(redis: &RedisConfig) -> Result<RedisFacts, CacheError> {
    look(redis).await.map_err(|error| away(&error))
}

async fn look(redis: &RedisConfig) -> Result<RedisFacts, RedisError> {
    let client = Client::open(one_node(redis).await?)?;
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(redis.timeout)).set_response_timeout(Some(redis.timeout));
    let mut conn: MultiplexedConnection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let asked = Instant::now();
    cmd("PING").query_async::<()>(&mut conn).await?;
    let answer = asked.elapsed();
    let info: String = cmd("INFO").query_async(&mut conn).await?;
    let info = info.lines().filter_map(|line| line.trim_end().split_once(':')).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let info: BTreeMap<_, _> = info.collect();
    // A node of a cluster sends most keys elsewhere; its role tells as much.
    let takes_writes = if info.get("cluster_enabled").is_some_and(|is| is == "1") {
        info.get("role").is_some_and(|role| role == "master")
    } else {
        let key = format!("headmark-doctor:{}", std::process::id());
        cmd("SET").arg(key).arg(1).arg("EX").arg(1).query_async::<()>(&mut conn).await.is_ok()
    };
    let sentinels = match &redis.sentinel {
        Some(sentinel) => roll_call(redis, sentinel).await?,
        None => Vec::new(),
    };
    Ok(RedisFacts { info, answer, takes_writes, sentinels })
}
