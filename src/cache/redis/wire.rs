//! Connections: how they are made, and how a list of commands is sent over one.

use std::time::Duration;

use deadpool_redis::redis::aio::{
    AsyncPushSender, ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection, PubSub,
};
use deadpool_redis::redis::cluster::{ClusterClient, ClusterClientBuilder};
use deadpool_redis::redis::cluster_async::ClusterConnection;
use deadpool_redis::redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo};
use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, Pipeline, ProtocolVersion, RedisError, ServerErrorKind, Value, cmd,
    from_redis_value,
};
use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;

use super::address::nodes;
use super::scripts::Scripts;
use super::sentinel::{check_master, master};
use crate::cache::{CacheError, RedisConfig};

/// Commands under way at once where each has to go on its own.
const CLUSTER_COMMANDS_AT_ONCE: usize = 64;

/// Requests that may wait inside one connection.
const CONNECTION_BUFFER: usize = 1024;

/// Times that a dropped connection is made again before what waits for it fails; the breaker's
/// probe goes on from there.
const RECONNECTS: usize = 1;

/// The pause before that, at most.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How often a cluster command may be sent again, when a slot has moved or a node is gone.
const CLUSTER_RETRIES: u32 = 2;

/// Connecting is several steps (each connection, each script); all together may take this many
/// times the timeout of one operation.
const CONNECT_TIMEOUTS: u32 = 4;

/// One connection, cheap to clone, that many requests share.
#[derive(Clone)]
pub(super) enum Wire {
    /// Made again by itself when it is closed.
    Single(ConnectionManager),
    /// Not made again by itself.
    Once(MultiplexedConnection),
    Cluster(ClusterConnection),
    /// Of a node that started while Redis was away.
    None,
}

impl Wire {
    /// Whether it is, by itself, once it was closed.
    pub(super) const fn is_made_again(&self) -> bool {
        matches!(self, Self::Single(_) | Self::Cluster(_))
    }

    /// Sends the commands, in one pipeline where they can go together. As many results as commands,
    /// in their order.
    pub(super) async fn send(self, commands: Vec<Cmd>) -> Vec<Result<Value, RedisError>> {
        let count = commands.len();
        match self {
            Self::Single(connection) => send_together(connection, commands).await,
            Self::Once(connection) => send_together(connection, commands).await,
            Self::Cluster(connection) => {
                let one = |command: Cmd| {
                    let mut connection = connection.clone();
                    async move { connection.req_packed_command(&command).await.and_then(server_error) }
                };
                stream::iter(commands).map(one).buffered(CLUSTER_COMMANDS_AT_ONCE).collect().await
            }
            Self::None => vec![Err(not_connected()); count],
        }
    }

    /// The server section of `INFO`; of a cluster, every master's.
    pub(super) async fn server_info(self) -> Result<Vec<String>, RedisError> {
        let mut command = cmd("INFO");
        command.arg("server");
        match self {
            Self::Single(mut connection) => Ok(vec![command.query_async(&mut connection).await?]),
            Self::Cluster(mut connection) => {
                let everywhere = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                let reply: Vec<(String, String)> = from_redis_value(connection.route_command(command, everywhere).await?)?;
                // The client passes over masters that it could not connect to.
                if reply.len() < count_masters(&mut connection).await? {
                    return Err(RedisError::from((ErrorKind::Io, "not all masters of the cluster answer")));
                }
                Ok(reply.into_iter().map(|(_, text)| text).collect())
            }
            Self::Once(mut connection) => Ok(vec![command.query_async(&mut connection).await?]),
            Self::None => Err(not_connected()),
        }
    }

    async fn load(&mut self, scripts: &Scripts) -> Result<(), RedisError> {
        for script in scripts.all() {
            match self {
                Self::Single(connection) => script.load_async(connection).await?,
                Self::Cluster(connection) => script.load_async(connection).await?,
                Self::Once(connection) => script.load_async(connection).await?,
                Self::None => return Err(not_connected()),
            };
        }
        Ok(())
    }
}

/// How many masters of a cluster have slots, as one of them knows it.
async fn count_masters(connection: &mut ClusterConnection) -> Result<usize, RedisError> {
    let mut command = cmd("CLUSTER");
    command.arg("INFO");
    let anywhere = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
    let text: String = from_redis_value(connection.route_command(command, anywhere).await?)?;
    let size = text.lines().find_map(|line| line.trim_end().strip_prefix("cluster_size:")?.parse().ok());
    size.ok_or_else(|| RedisError::from((ErrorKind::UnexpectedReturnType, "no cluster_size in CLUSTER INFO")))
}

async fn send_together(mut connection: impl ConnectionLike, mut commands: Vec<Cmd>) -> Vec<Result<Value, RedisError>> {
    let count = commands.len();
    if count <= 1 {
        let Some(command) = commands.pop() else { return Vec::new() };
        return vec![connection.req_packed_command(&command).await.and_then(server_error)];
    }
    let mut pipeline = Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command);
    }
    match connection.req_packed_commands(&pipeline, 0, count).await {
        Ok(values) if values.len() == count => values.into_iter().map(server_error).collect(),
        Ok(_) => vec![Err((ErrorKind::UnexpectedReturnType, "fewer replies than commands").into()); count],
        Err(error) => vec![Err(error); count],
    }
}

fn not_connected() -> RedisError {
    RedisError::from((ErrorKind::Io, "not connected yet"))
}

/// A reply that is an error is one.
fn server_error(value: Value) -> Result<Value, RedisError> {
    match value {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}

/// An error of Redis as the callers see it.
pub(super) fn away(error: &RedisError) -> CacheError {
    CacheError::Away(error.to_string())
}

/// Whether the error says that the server is away, rather than that it refused this command.
pub(super) fn is_outage(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(kind) => {
            matches!(kind, ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown | ServerErrorKind::ClusterDown)
        }
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client | ErrorKind::ClusterConnectionNotFound | ErrorKind::AuthenticationFailed => {
            true
        }
        _ => false,
    }
}

/// Whether the server says that it is no longer a master.
pub(super) fn is_demoted(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

/// The connection for scripts.
pub(super) struct Connected {
    pub(super) wire: Wire,
    /// When its address was asked for.
    pub(super) asked: Instant,
    /// The run at its other end, where that stays the same as long as the connection.
    pub(super) run: Option<String>,
}

impl Connected {
    pub(super) fn to_nothing() -> Self {
        Self { wire: Wire::None, asked: Instant::now(), run: None }
    }
}

/// Makes the connection for scripts, and loads them.
pub(super) async fn connect(redis: &RedisConfig, scripts: &Scripts) -> Result<Connected, RedisError> {
    let limit = redis.timeout.saturating_mul(CONNECT_TIMEOUTS);
    let connect = async {
        let asked = Instant::now();
        let mut wire = connect_one(redis).await?;
        wire.load(scripts).await?;
        let run = if redis.sentinel.is_some() { run_of(&wire.clone().server_info().await?) } else { None };
        Ok(Connected { wire, asked, run })
    };
    match tokio::time::timeout(limit, connect).await {
        Ok(outcome) => outcome,
        Err(_) => Err(RedisError::from((ErrorKind::Io, "no connection in time"))),
    }
}

/// Makes a connection for reads, over which Redis tells of changes to what was read. Whether it
/// does: a cluster does not, nor does a proxy or a Redis that refuses to.
pub(super) async fn connect_reads(redis: &RedisConfig, told: impl AsyncPushSender) -> Result<(Wire, bool), RedisError> {
    if redis.cluster {
        return Ok((connect_one(redis).await?, false));
    }
    match connect_tracking(redis, told).await {
        Ok(wire) => Ok((wire, true)),
        Err(error) if is_outage(&error) => Err(error),
        Err(error) => {
            tracing::warn!(%error, "Redis does not tell of changes (CLIENT TRACKING over RESP3): every poll asks it");
            Ok((connect_one(redis).await?, false))
        }
    }
}

async fn connect_tracking(redis: &RedisConfig, told: impl AsyncPushSender) -> Result<Wire, RedisError> {
    let node = one_node(redis).await?;
    let settings = node.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let mut connection = connect_once(redis, node.set_redis_settings(settings), |config| config.set_push_sender(told)).await?;
    let mut track = cmd("CLIENT");
    track.arg("TRACKING").arg("ON");
    connection.req_packed_command(&track).await.and_then(server_error)?;
    Ok(Wire::Once(connection))
}

/// What names a run of Redis, from its [`Wire::server_info`]; of a cluster, all masters' together.
pub(super) fn run_of(texts: &[String]) -> Option<String> {
    let run_id = |text: &String| text.lines().find_map(|line| line.strip_prefix("run_id:").map(|id| id.trim().to_owned()));
    let mut ids = texts.iter().map(run_id).collect::<Option<Vec<_>>>()?;
    ids.sort_unstable();
    Some(ids.join(","))
}

/// Whether waiting may help against this failure to connect: Redis is away, rather than refusing us
/// or wrongly set.
pub(super) fn may_come_back(error: &RedisError) -> bool {
    is_outage(error) && !matches!(error.kind(), ErrorKind::AuthenticationFailed | ErrorKind::Client | ErrorKind::Parse)
}

/// The one address of a Redis that is no cluster: the master's, if there are Sentinels to ask.
pub(super) async fn one_node(redis: &RedisConfig) -> Result<ConnectionInfo, RedisError> {
    if let Some(sentinel) = &redis.sentinel {
        return master(redis, sentinel).await;
    }
    let several = |_| RedisError::from((ErrorKind::InvalidClientConfig, "several addresses are for a cluster, or for Sentinels"));
    <[ConnectionInfo; 1]>::try_from(nodes(redis)?).map(|[node]| node).map_err(several)
}

/// A connection that is not made again by itself; to a master, where Sentinels named it.
async fn connect_once(
    redis: &RedisConfig,
    node: ConnectionInfo,
    more: impl FnOnce(AsyncConnectionConfig) -> AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(redis.timeout))
        .set_response_timeout(Some(redis.timeout))
        .set_pipeline_buffer_size(CONNECTION_BUFFER);
    let mut connection = Client::open(node)?.get_multiplexed_async_connection_with_config(&more(config)).await?;
    if redis.sentinel.is_some() {
        check_master(&mut connection).await?;
    }
    Ok(connection)
}

async fn connect_one(redis: &RedisConfig) -> Result<Wire, RedisError> {
    if redis.cluster {
        let client: ClusterClient = ClusterClientBuilder::new(nodes(redis)?)
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .connection_timeout(redis.timeout)
            .response_timeout(redis.timeout)
            .retries(CLUSTER_RETRIES)
            .build()?;
        return client.get_async_connection().await.map(Wire::Cluster);
    }
    let node = one_node(redis).await?;
    if redis.sentinel.is_some() {
        // It must not reconnect by itself, as it would reach a former master.
        return connect_once(redis, node, |config| config).await.map(Wire::Once);
    }
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(redis.timeout))
        .set_response_timeout(Some(redis.timeout))
        .set_number_of_retries(RECONNECTS)
        .set_min_delay(RECONNECT_PAUSE)
        .set_max_delay(RECONNECT_PAUSE)
        .set_pipeline_buffer_size(CONNECTION_BUFFER);
    ConnectionManager::new_with_config(Client::open(node)?, config).await.map(Wire::Single)
}

/// A connection for subscriptions, to the first node that answers: a cluster passes what is
/// published on to all of its nodes. So does a master to its replicas.
pub(super) async fn subscriber(redis: &RedisConfig) -> Result<PubSub, CacheError> {
    let mut failure = CacheError::Away("no address".to_owned());
    let addresses = match &redis.sentinel {
        Some(sentinel) => match tokio::time::timeout(redis.timeout.saturating_mul(CONNECT_TIMEOUTS), master(redis, sentinel)).await {
            Ok(master) => master.map(|node| vec![node]),
            Err(_) => Err(RedisError::from((ErrorKind::Io, "no Sentinel answers in time"))),
        },
        None => nodes(redis),
    };
    for node in addresses.map_err(|error| away(&error))? {
        let client = Client::open(node).map_err(|error| away(&error))?;
        match tokio::time::timeout(redis.timeout, client.get_async_pubsub()).await {
            Ok(Ok(pubsub)) => return Ok(pubsub),
            Ok(Err(error)) => failure = away(&error),
            Err(_) => failure = CacheError::Away("no connection in time".to_owned()),
        }
    }
    Err(failure)
}
