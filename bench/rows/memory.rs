//! What users take in Redis.

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{Client, cmd};

use crate::Result;
use crate::stats::float;

/// What the keys of the server begin with.
pub(super) const PREFIX: &str = "hm:";

/// Where a copy of an entry is changed and weighed.
const COPY: &str = "bench:copy";

/// How much entries take on average, in bytes.
#[derive(Debug, Default)]
pub(super) struct Weight {
    /// As they are.
    pub(super) entry: f64,
    /// Without the fields of groups.
    pub(super) without_groups: f64,
    /// What the first one holds, but for its groups.
    pub(super) fields: Vec<String>,
    pub(super) groups: usize,
}

fn key(user: u64) -> String {
    format!("{PREFIX}{{u:{user}}}")
}

async fn connect(url: &str) -> Result<MultiplexedConnection> {
    Ok(Client::open(url)?.get_multiplexed_async_connection().await?)
}

async fn usage(connection: &mut MultiplexedConnection, key: &str) -> Result<u64> {
    let bytes: Option<u64> = cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).query_async(connection).await?;
    Ok(bytes.ok_or_else(|| format!("Redis has no {key}"))?)
}

/// Of users who have just polled.
pub(super) async fn of_entries(url: &str, users: &[u64]) -> Result<Weight> {
    let mut connection = connect(url).await?;
    let (mut weight, count) = (Weight::default(), float(u64::try_from(users.len())?));
    for user in users {
        let key = key(*user);
        weight.entry += float(usage(&mut connection, &key).await?);
        let fields: Vec<(String, Vec<u8>)> = cmd("HGETALL").arg(&key).query_async(&mut connection).await?;
        let (groups, others): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(name, _)| name.starts_with("g:"));
        // The copy has a key that is about as long.
        cmd("COPY").arg(&key).arg(COPY).arg("REPLACE").exec_async(&mut connection).await?;
        for (name, _) in &groups {
            cmd("HDEL").arg(COPY).arg(name).exec_async(&mut connection).await?;
        }
        weight.without_groups += float(usage(&mut connection, COPY).await?);
        if weight.fields.is_empty() {
            weight.fields = others.iter().map(|(name, value)| format!("`{name}` = `{}`", value.escape_ascii())).collect();
            weight.groups = groups.len();
        }
    }
    cmd("DEL").arg(COPY).exec_async(&mut connection).await?;
    // At the end: a sum of parts would be a little more than whole numbers are.
    (weight.entry, weight.without_groups) = (weight.entry / count, weight.without_groups / count);
    Ok(weight)
}

/// What the lists of these users' feeds take on average, in bytes.
pub(super) async fn of_feeds(url: &str, users: &[u64]) -> Result<f64> {
    let mut connection = connect(url).await?;
    let (mut bytes, count) = (0.0, float(u64::try_from(users.len())?));
    for user in users {
        bytes += float(usage(&mut connection, &format!("{}:f", key(*user))).await?) / count;
    }
    Ok(bytes)
}
