//! All settings: one struct for each section, each field with its variable and its bounds; checked
//! against each other at start.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use secrecy::{ExposeSecret, SecretString};

use crate::app::serve::HttpConfig;
use crate::app::telemetry;
use crate::base::clock::Clock;
use crate::base::secret::{from_file, path, secret, settle, unless_empty};
use crate::cache::{CacheConfig, RedisConfig, SentinelConfig, USUAL_PREFIX};
use crate::db::{ReplicaConfig, StoreConfig};
use crate::engine::events::EventConfig;
use crate::engine::lanes::LaneConfig;
use crate::features::feed::FeedConfig;
use crate::features::groups::GroupConfig;
use crate::features::inbox::InboxConfig;
use crate::features::notifications::NotificationConfig;
use crate::features::operations::OperationConfig;
use crate::features::receipts::ReceiptConfig;
use crate::features::relations::RelationConfig;
use crate::features::users::LastSeenConfig;
use crate::features::views::ViewConfig;
use crate::http::auth::{Auth, AuthConfig};
use crate::http::cors::Origins;
use crate::http::traces::TraceArgs;
use crate::maintenance::scrub::ScrubConfig;
use crate::maintenance::user_export::UserExportConfig;
use crate::summary::PollConfig;

/// Everything that a server is told when it starts.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Where and how it listens.
    #[command(flatten)]
    pub http: HttpConfig,
    /// Where the truth is.
    #[command(flatten)]
    pub stores: StoreConfig,
    /// Where pages are read that may be a moment old.
    #[command(flatten)]
    pub replica: ReplicaConfig,
    /// Where the cache is.
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Who may call.
    #[command(flatten)]
    pub auth: AuthArgs,
    /// How writes go.
    #[command(flatten)]
    pub lanes: LaneConfig,
    /// How polls go.
    #[command(flatten)]
    pub polls: PollConfig,

    /// When those who stay away are forgotten.
    #[command(flatten)]
    pub last_seen: LastSeenConfig,
    /// How much is compared with the rows.
    #[command(flatten)]
    pub scrub: ScrubConfig,
    /// How follows are bounded, and what they raise.
    #[command(flatten)]
    pub relations: RelationConfig,
    /// How events are kept and handed on.
    #[command(flatten)]
    pub events: EventConfig,
    /// How asynchronous writes are kept and bounded.
    #[command(flatten)]
    pub operations: OperationConfig,
    /// How the feed is kept.
    #[command(flatten)]
    pub feed: FeedConfig,
    /// How receipts are bounded.
    #[command(flatten)]
    pub receipts: ReceiptConfig,
    /// How groups are kept.
    #[command(flatten)]
    pub groups: GroupConfig,
    /// How inboxes are kept.
    #[command(flatten)]
    pub inbox: InboxConfig,
    /// How notifications are kept.
    #[command(flatten)]
    pub notifications: NotificationConfig,
    /// How views are kept.
    #[command(flatten)]
    pub views: ViewConfig,
    /// How many users are exported at once.
    #[command(flatten)]
    pub user_export: UserExportConfig,
    /// What is logged.
    #[command(flatten)]
    pub logs: LogArgs,
    /// Where traces go.
    #[command(flatten)]
    pub traces: TraceArgs,
}

/// The cache that polls read.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheArgs {
    /// Redis (7 or later), as `redis://host:port` or `rediss://…`. Requires Postgres in
    /// DATABASE_URL. Default: an in-process cache, which allows only one node.
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_parser = secret)]
    pub redis_url: Option<SecretString>,

    /// A file with the value of REDIS_URL. Set only one of the two.
    #[arg(long, env = "REDIS_URL_FILE", value_name = "PATH", value_parser = path)]
    pub redis_url_file: Option<PathBuf>,

    /// Connect to REDIS_URL as a Redis Cluster. It lists one or more nodes, separated by commas.
    #[arg(long, env = "REDIS_CLUSTER", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub redis_cluster: bool,

    /// The name of the master that Redis Sentinel watches. REDIS_URL then lists the Sentinels,
    /// separated by commas. User, password and database number in it are those of the master, and
    /// `rediss://` is for both.
    #[arg(long, env = "REDIS_SENTINEL", value_name = "NAME")]
    pub redis_sentinel: Option<String>,

    /// The user that the Sentinels are asked as, where they have users.
    #[arg(long, env = "REDIS_SENTINEL_USERNAME", value_name = "NAME")]
    pub redis_sentinel_username: Option<String>,

    /// The password of the Sentinels, where they ask for one.
    #[arg(long, env = "REDIS_SENTINEL_PASSWORD", hide_env_values = true, value_parser = secret)]
    pub redis_sentinel_password: Option<SecretString>,

    /// A file with the value of REDIS_SENTINEL_PASSWORD. Set only one of the two.
    #[arg(long, env = "REDIS_SENTINEL_PASSWORD_FILE", value_name = "PATH", value_parser = path)]
    pub redis_sentinel_password_file: Option<PathBuf>,

    /// The time limit for a Redis command, in milliseconds.
    #[arg(long, env = "HEADMARK_REDIS_TIMEOUT_MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=2000))]
    pub redis_timeout_ms: u64,

    /// The prefix of the keys in Redis. Each installation needs its own. Two keys can be outside of
    /// it: the stream of events (HEADMARK_EVENT_STREAM), and the one that `headmark doctor` writes for
    /// a second (`headmark-doctor:` and a number).
    #[arg(long, env = "HEADMARK_CACHE_PREFIX", default_value = USUAL_PREFIX)]
    pub cache_prefix: String,

    /// The time to live of a cache entry, in seconds. In Redis it starts when the entry is written or,
    /// if it is polled, compared with the database. It limits staleness after a failover that lost
    /// writes. In process it starts at the last read.
    #[arg(long, env = "HEADMARK_CACHE_TTL_S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=86_400))]
    pub cache_ttl_s: u64,

    /// The maximum size of the in-process cache, in bytes; with Redis, of the copies of its entries.
    /// The least used entries are evicted first.
    #[arg(long, env = "HEADMARK_CACHE_BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u64).range(16 * 1024 * 1024..))]
    pub cache_bytes: u64,

    /// The maximum number of users in the in-process cache, if they fit into its bytes.
    #[arg(long, env = "HEADMARK_CACHE_CAPACITY", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    pub cache_capacity: u64,
}

/// Who may call. With none of these the server runs open, on a loopback address only. At most one
/// of the three for the keys of JWTs is set.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Credentials")]
pub struct AuthArgs {
    /// Service keys, comma-separated, each `name:secret` or a bare secret of at least 16
    /// characters. A bare secret is named after itself: use `name:secret` if you rotate.
    /// `headmark token --service` generates one.
    #[arg(long, env = "HEADMARK_SERVICE_KEYS", hide_env_values = true, value_delimiter = ',', value_parser = secret)]
    pub service_keys: Vec<SecretString>,

    /// A file with the service keys, separated by commas or line breaks. Set only one of the two.
    #[arg(long, env = "HEADMARK_SERVICE_KEYS_FILE", value_name = "PATH", value_parser = path)]
    pub service_keys_file: Option<PathBuf>,

    /// The secret (at least 32 bytes) that signs the JWTs of end users with HS256.
    #[arg(long, env = "HEADMARK_JWT_SECRET", hide_env_values = true, value_parser = secret)]
    pub jwt_secret: Option<SecretString>,

    /// A file with the value of HEADMARK_JWT_SECRET. Set only one of the two.
    #[arg(long, env = "HEADMARK_JWT_SECRET_FILE", value_name = "PATH", value_parser = path)]
    pub jwt_secret_file: Option<PathBuf>,

    /// The public key that verifies the JWTs of end users (RS256, ES256 on P-256, EdDSA on
    /// Ed25519): the path of a PEM file, or the PEM itself. Set only one of HEADMARK_JWT_SECRET,
    /// HEADMARK_JWT_PUBLIC_KEY and HEADMARK_JWKS.
    #[arg(long, env = "HEADMARK_JWT_PUBLIC_KEY", hide_env_values = true, value_parser = secret)]
    pub jwt_public_key: Option<SecretString>,

    /// A file with a JWK Set of such public keys, selected by the `kid` of a token. The server
    /// reloads it when it changes. Set only one of HEADMARK_JWT_SECRET, HEADMARK_JWT_PUBLIC_KEY and
    /// HEADMARK_JWKS.
    #[arg(long, env = "HEADMARK_JWKS", value_parser = path)]
    pub jwks: Option<PathBuf>,

    /// The audience that the `aud` of a JWT must contain. Default: not checked.
    #[arg(long, env = "HEADMARK_JWT_AUDIENCE")]
    pub jwt_audience: Option<String>,

    /// The required `iss` of a JWT. Default: not checked.
    #[arg(long, env = "HEADMARK_JWT_ISSUER")]
    pub jwt_issuer: Option<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people when standard error is a terminal, else JSON.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Whether a line is a JSON object.
    #[must_use]
    pub fn is_json(self) -> bool {
        match self {
            Self::Auto => !std::io::stderr().is_terminal(),
            Self::Text => false,
            Self::Json => true,
        }
    }
}

/// What is logged, to standard error.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// The log level, or levels by module (`info,headmark=debug`).
    #[arg(long = "log", env = "HEADMARK_LOG", default_value = "info", value_parser = telemetry::filter)]
    pub filter: String,

    /// The log format.
    #[arg(long = "log-format", env = "HEADMARK_LOG_FORMAT", value_enum, default_value = "auto")]
    pub format: LogFormat,
}

/// How long a writer's begin protects the entries that it is about to change. Not a setting: the
/// bounds of transactions follow from it.
pub const LEASE: Duration = Duration::from_secs(5);

impl Config {
    /// Takes a setting that is there but empty, as environment files often have it, for one that is
    /// not there, and takes secrets from their files.
    ///
    /// # Errors
    /// A sentence for the operator: a secret and its file are both set, or the file cannot be used.
    pub fn resolved(mut self) -> Result<Self, String> {
        self.stores = self.stores.resolved()?;
        self.replica = self.replica.resolved()?;
        self.cache = self.cache.resolved()?;
        self.auth = self.auth.resolved()?;
        unless_blank(&mut self.traces.otlp_endpoint);
        Ok(self)
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// A sentence for the operator: which settings do not go together, and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.stores.check()?;
        self.cache.check(&self.stores)?;
        self.replica.check(&self.stores)?;
        self.relations.check()?;
        self.http.check()?;
        self.polls.check()?;
        self.operations.check()?;
        self.traces.check()?;
        Auth::new(&self.auth.auth(), Clock::System)?;
        if usize::try_from(self.polls.waiting_polls).unwrap_or(usize::MAX) >= self.http.max_in_flight {
            return Err(
                "HEADMARK_WAITING_POLLS must be below HEADMARK_MAX_IN_FLIGHT, or waiting polls could keep everything else out.".to_owned()
            );
        }
        let addresses = [Some(self.http.listen), self.http.admin_listen];
        if self.auth.is_open()
            && let Some(open) = addresses.into_iter().flatten().find(|address| !address.ip().is_loopback())
        {
            return Err(format!(
                "refusing to listen on {open} without credentials: anyone could read and write. Set HEADMARK_SERVICE_KEYS \
                 (and HEADMARK_JWT_SECRET, HEADMARK_JWT_PUBLIC_KEY or HEADMARK_JWKS for end users), or listen on 127.0.0.1."
            ));
        }
        if self.auth.is_open() && self.http.cors_origins == Origins::Any {
            return Err(
                "HEADMARK_CORS_ORIGINS=* without credentials would let every web page that is open on this machine read and write. Set \
                        HEADMARK_SERVICE_KEYS or HEADMARK_JWT_SECRET, or list the origins."
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// Takes an empty text for one that is not there.
fn unless_blank(text: &mut Option<String>) {
    *text = text.take().filter(|text| !text.trim().is_empty());
}

impl StoreConfig {
    /// Takes a URL that is empty for one that is not there, and takes it from its file.
    ///
    /// # Errors
    /// A sentence for the operator: the URL and its file are both set.
    pub fn resolved(mut self) -> Result<Self, String> {
        settle("DATABASE_URL", &mut self.database_url, &mut self.database_url_file)?;
        Ok(self)
    }
}

impl ReplicaConfig {
    /// Takes a URL that is empty for one that is not there, and takes it from its file.
    ///
    /// # Errors
    /// A sentence for the operator: the URL and its file are both set.
    pub fn resolved(mut self) -> Result<Self, String> {
        settle("HEADMARK_REPLICA_URL", &mut self.replica_url, &mut self.replica_url_file)?;
        Ok(self)
    }
}

impl CacheArgs {
    /// Takes a URL that is empty for one that is not there, and takes it from its file.
    ///
    /// # Errors
    /// A sentence for the operator: the URL and its file are both set.
    pub fn resolved(mut self) -> Result<Self, String> {
        settle("REDIS_URL", &mut self.redis_url, &mut self.redis_url_file)?;
        settle("REDIS_SENTINEL_PASSWORD", &mut self.redis_sentinel_password, &mut self.redis_sentinel_password_file)?;
        [&mut self.redis_sentinel, &mut self.redis_sentinel_username].into_iter().for_each(unless_blank);
        Ok(self)
    }

    /// Checks which cache goes with which store.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self, stores: &StoreConfig) -> Result<(), String> {
        if self.redis_url.is_some() && stores.database_url.is_none() {
            return Err("REDIS_URL is set but DATABASE_URL is not: Redis serves several nodes, which SQLite cannot. Set \
                        DATABASE_URL=postgres://… too, or unset REDIS_URL."
                .to_owned());
        }
        if let Some(redis) = self.redis() {
            redis.check()?;
        }
        if self.redis_cluster && self.redis_url.is_none() {
            return Err("REDIS_CLUSTER is set but REDIS_URL is not: name one node of the cluster.".to_owned());
        }
        if self.redis_sentinel.is_some() && self.redis_url.is_none() {
            return Err("REDIS_SENTINEL is set but REDIS_URL is not: list the Sentinels, as redis://host:26379,redis://….".to_owned());
        }
        if self.redis_sentinel.is_some() && self.redis_cluster {
            return Err("REDIS_SENTINEL and REDIS_CLUSTER are both set: a cluster fails over by itself, without Sentinels. Unset the \
                        one that you do not have."
                .to_owned());
        }
        if self.redis_sentinel.is_none() && (self.redis_sentinel_username.is_some() || self.redis_sentinel_password.is_some()) {
            return Err(
                "There is a user or a password for Sentinels, but REDIS_SENTINEL is not set: name the master that they watch.".to_owned()
            );
        }
        if self.redis_sentinel_username.is_some() && self.redis_sentinel_password.is_none() {
            return Err(
                "REDIS_SENTINEL_USERNAME is set but REDIS_SENTINEL_PASSWORD is not: a user is nobody without a password.".to_owned()
            );
        }
        Ok(())
    }

    /// The settings of the cache engine.
    #[must_use]
    pub fn cache(&self) -> CacheConfig {
        CacheConfig {
            ttl: Duration::from_secs(self.cache_ttl_s),
            lease: LEASE,
            capacity: self.cache_capacity,
            capacity_bytes: self.cache_bytes,
            prefix: self.cache_prefix.clone(),
        }
    }

    /// The settings of Redis, if it is used.
    #[must_use]
    pub fn redis(&self) -> Option<RedisConfig> {
        self.redis_url.clone().map(|url| RedisConfig {
            url,
            cluster: self.redis_cluster,
            sentinel: self.redis_sentinel.clone().map(|master| SentinelConfig {
                master,
                username: self.redis_sentinel_username.clone(),
                password: self.redis_sentinel_password.clone(),
            }),
            timeout: Duration::from_millis(self.redis_timeout_ms),
        })
    }
}

impl AuthArgs {
    /// Takes a setting that is there but empty for one that is not there, and takes secrets from
    /// their files.
    ///
    /// # Errors
    /// A sentence for the operator: a secret and its file are both set, or the file cannot be used.
    pub fn resolved(mut self) -> Result<Self, String> {
        settle("HEADMARK_JWT_SECRET", &mut self.jwt_secret, &mut self.jwt_secret_file)?;
        unless_empty(&mut self.jwt_public_key);
        self.service_keys.retain(|key| !key.expose_secret().trim().is_empty());
        self.take_service_keys()?;
        [&mut self.jwt_audience, &mut self.jwt_issuer].into_iter().for_each(unless_blank);
        self.jwks = self.jwks.take().filter(|path| !path.as_os_str().is_empty());
        Ok(self)
    }

    /// Takes the service keys from their file, one a line or separated by commas.
    fn take_service_keys(&mut self) -> Result<(), String> {
        let file = from_file("HEADMARK_SERVICE_KEYS", !self.service_keys.is_empty(), &mut self.service_keys_file)?;
        let Some(file) = file else { return Ok(()) };
        let keys = file.expose_secret().split([',', '\n']).map(str::trim).filter(|key| !key.is_empty());
        self.service_keys = keys.map(|key| SecretString::from(key.to_owned())).collect();
        // A file of separators alone holds no key, and would make an open server.
        if self.service_keys.is_empty() { Err("HEADMARK_SERVICE_KEYS_FILE: there is no key in the file.".to_owned()) } else { Ok(()) }
    }

    /// Whether none of the credentials is set.
    fn is_open(&self) -> bool {
        self.service_keys.is_empty() && self.jwt_secret.is_none() && self.jwt_public_key.is_none() && self.jwks.is_none()
    }

    /// The settings of the credentials.
    #[must_use]
    pub fn auth(&self) -> AuthConfig {
        AuthConfig {
            service_keys: self.service_keys.clone(),
            jwt_secret: self.jwt_secret.clone(),
            jwt_public_key: self.jwt_public_key.clone(),
            jwks: self.jwks.clone(),
            jwt_audience: self.jwt_audience.clone(),
            jwt_issuer: self.jwt_issuer.clone(),
        }
    }
}
