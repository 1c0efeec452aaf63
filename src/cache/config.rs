//! What the engines are told at start.

use std::time::Duration;

use secrecy::SecretString;

/// What every key in Redis begins with, unless another prefix is set.
pub const USUAL_PREFIX: &str = "hm:";

/// What both engines are told.
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// How long an entry lives without a write, in process also unread; raised to the lease if it
    /// is shorter. Default 60 s.
    pub ttl: Duration,
    /// How long a writer counts as inside after its begin: longer than any transaction may run.
    /// Default 5 s.
    pub lease: Duration,
    /// Entries that the in-process cache holds. Default 1,000,000.
    pub capacity: u64,
    /// Bytes that they take together; with Redis, those of the copies of entries. Default 1 GiB.
    pub capacity_bytes: u64,
    /// What every key and channel in Redis begins with. Default `hm:`.
    pub prefix: String,
}

impl Default for CacheConfig {
    fn default() -> Self {
        let (ttl, lease) = (Duration::from_secs(60), Duration::from_secs(5));
        Self { ttl, lease, capacity: 1_000_000, capacity_bytes: 1 << 30, prefix: USUAL_PREFIX.to_owned() }
    }
}

/// Where Redis is and how it is spoken to.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// `redis://…` or `rediss://…`; of a cluster, one or more of its nodes, or Sentinels, separated by
    /// commas.
    pub url: SecretString,
    /// Whether that is a Redis Cluster.
    pub cluster: bool,
    /// Whether these are Sentinels, and which master they are asked for.
    pub sentinel: Option<SentinelConfig>,
    /// How long one operation may take, connecting included. Default 500 ms.
    pub timeout: Duration,
}

impl RedisConfig {
    /// The defaults, at this address.
    #[must_use]
    pub fn new(url: SecretString) -> Self {
        Self { url, cluster: false, sentinel: None, timeout: Duration::from_millis(500) }
    }
}

/// What is asked of Sentinels, and as whom. User, password and database of the master are those of the
/// URL.
#[derive(Debug, Clone)]
pub struct SentinelConfig {
    /// The name of the master that they watch.
    pub master: String,
    pub username: Option<String>,
    pub password: Option<SecretString>,
}
