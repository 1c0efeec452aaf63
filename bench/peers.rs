//! What the polls are compared with: the least that a web service can do, as processes of their
//! own, so that what they cost is counted apart. The bench starts its own program again with a
//! hidden command for each.
//!
//! To add one: a variant of [`Peer`], its handler, and a side in `rows/`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use clap::{Subcommand, ValueEnum};
use deadpool_redis::redis::aio::{ConnectionLike, ConnectionManager};
use deadpool_redis::redis::{Client, Cmd, Value, cmd, pipe};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::Result;
use crate::process::Process;
use crate::wire::Answer;

/// How a peer hears where Redis is: the URL holds a password, and every account can read the
/// arguments of a process.
const REDIS_OF_PEER: &str = "PEER_REDIS_URL";

/// The part of the command line that the bench gives to itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Hidden {
    /// Serve one of the routes that polls are compared with.
    #[command(hide = true)]
    Peer {
        #[arg(value_enum)]
        peer: Peer,
        /// The answer to give: the bytes of one of headmark's.
        #[arg(long)]
        answer: PathBuf,
        #[arg(long, env = REDIS_OF_PEER, hide_env_values = true)]
        redis: String,
        /// How many values it reads for each answer, where it reads a number of them.
        #[arg(long, default_value_t = 0)]
        reads: u32,
    },
}

/// A route to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// Gives the answer, and does nothing else.
    Bare,
    /// Reads the user's hash over a connection checked out of a pool, then gives the answer.
    Deadpool,
    /// Reads it over one connection that all requests share.
    Multiplexed,
    /// Reads a hundred fields of the user's hash of relations over such a connection, with one
    /// HMGET.
    Fields,
    /// Reads a number of keys with one MGET, over such a connection.
    Mget,
}

/// The answer, ready to be given again and again.
#[derive(Debug, Clone)]
struct Canned(Arc<(Vec<(HeaderName, HeaderValue)>, Bytes)>);

impl Canned {
    fn parse(text: &[u8]) -> Result<Self> {
        let at = text.windows(4).position(|window| window == b"\r\n\r\n").ok_or("an answer without a body")?;
        let (head, body) = text.split_at_checked(at + 4).ok_or("an answer without a body")?;
        let mut headers = Vec::new();
        for line in std::str::from_utf8(head)?.lines().skip(1) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            // These two hyper writes by itself, on either side.
            if !matches!(name, "content-length" | "date") {
                headers.push((name.parse()?, HeaderValue::from_str(value)?));
            }
        }
        Ok(Self(Arc::new((headers, Bytes::copy_from_slice(body)))))
    }

    fn response(&self) -> Response {
        let (headers, body) = &*self.0;
        let mut response = Response::new(Body::from(body.clone()));
        response.headers_mut().reserve(headers.len());
        for (name, value) in headers {
            response.headers_mut().insert(name.clone(), value.clone());
        }
        response
    }
}

/// Where the hashes of the peers lie in Redis. No expiry: they are there at every request.
fn key(user: u64) -> String {
    format!("bench:{{u:{user}}}")
}

/// The hash of a user with four badges, as headmark's cache holds it.
pub(crate) async fn fill_redis(url: &str, users: &[u64], marks: &str) -> Result<()> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    for some in users.chunks(1000) {
        let mut pipeline = pipe();
        for user in some {
            pipeline.cmd("HSET").arg(key(*user)).arg("!r").arg("918").arg("!e").arg("1").arg("u").arg(format!("20779;{marks}"));
        }
        pipeline.exec_async(&mut connection).await?;
    }
    Ok(())
}

/// Serves until it is killed.
pub(crate) async fn serve(hidden: &Hidden) -> Result<()> {
    let Hidden::Peer { peer, answer, redis, reads } = hidden;
    let canned = Canned::parse(&std::fs::read(answer)?)?;
    let route = "/v1/users/{user}/badges";
    let router = match peer {
        Peer::Bare => {
            let bare = get(give);
            let more = Router::new().route("/v1/users/{user}/groups", bare.clone()).route("/v1/users/{user}/chats", bare.clone());
            let more = more.route("/v1/badges/query", post(give));
            more.route(route, bare).with_state(canned)
        }
        Peer::Deadpool => {
            let pool = deadpool_redis::Config::from_url(redis).create_pool(Some(deadpool_redis::Runtime::Tokio1))?;
            Router::new().route(route, get(pooled)).with_state((canned, pool))
        }
        Peer::Multiplexed => {
            let connection = Client::open(redis.as_str())?.get_connection_manager().await?;
            Router::new().route(route, get(multiplexed)).with_state((canned, connection))
        }
        Peer::Fields => {
            let connection = Client::open(redis.as_str())?.get_connection_manager().await?;
            Router::new().route("/v1/users/{user}/relations", get(fields)).with_state((canned, connection))
        }
        Peer::Mget => {
            let connection = Client::open(redis.as_str())?.get_connection_manager().await?;
            let state = Values { canned, command: Arc::new(mget(*reads)), reads: usize::try_from(*reads)?, connection };
            Router::new().route(route, get(values)).with_state(state)
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::report::show(&format!("{peer:?} is listening on http://{}\n", listener.local_addr()?))?;
    let listener = listener.tap_io(|stream| {
        // A peer that has gone already; its connection ends by itself.
        let _gone = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

/// What reads a number of values: the least there is, one command that was made ahead and whose
/// answer is not looked into.
#[derive(Clone)]
struct Values {
    canned: Canned,
    command: Arc<Cmd>,
    reads: usize,
    connection: ConnectionManager,
}

/// The values that one answer takes.
fn mget(reads: u32) -> Cmd {
    let mut command = cmd("MGET");
    for number in 0..reads {
        command.arg(value_key(number));
    }
    command
}

fn value_key(number: u32) -> String {
    format!("bench:v{number}")
}

/// So many values, each as a key and as a field.
pub(crate) async fn fill_values(url: &str, count: u32) -> Result<()> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    let mut pipeline = pipe();
    for number in 0..count {
        pipeline.cmd("SET").arg(value_key(number)).arg(120 + number % 10);
    }
    Ok(pipeline.exec_async(&mut connection).await?)
}

async fn give(State(canned): State<Canned>) -> Response {
    canned.response()
}

async fn values(State(Values { canned, command, reads, mut connection }): State<Values>) -> Response {
    match command.query_async::<Value>(&mut connection).await {
        Ok(Value::Array(values)) if values.len() == reads => canned.response(),
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn pooled(State((canned, pool)): State<(Canned, deadpool_redis::Pool)>, Path(user): Path<u64>) -> Response {
    let Ok(mut connection) = pool.get().await else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    give_found(&canned, &mut connection, user).await
}

async fn multiplexed(State((canned, mut connection)): State<(Canned, ConnectionManager)>, Path(user): Path<u64>) -> Response {
    give_found(&canned, &mut connection, user).await
}

/// The answer, where Redis has an entry of the user.
async fn give_found(canned: &Canned, connection: &mut impl ConnectionLike, user: u64) -> Response {
    let fields = cmd("HGETALL").arg(key(user)).query_async::<HashMap<String, Vec<u8>>>(connection).await;
    match fields {
        Ok(fields) if !fields.is_empty() => canned.response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A hash for each of these users, with a field for each of these others, as a cache of relations
/// in one hash would hold it.
pub(crate) async fn fill_fields(url: &str, users: &[u64], others: &[u64]) -> Result<()> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    for user in users {
        let mut fill = cmd("HSET");
        fill.arg(fields_key(*user));
        for other in others {
            fill.arg(*other).arg(1);
        }
        fill.exec_async(&mut connection).await?;
    }
    Ok(())
}

fn fields_key(user: u64) -> String {
    format!("bench:{{u:{user}}}:r")
}

async fn fields(
    State((canned, mut connection)): State<(Canned, ConnectionManager)>,
    Path(user): Path<u64>,
    axum::extract::RawQuery(query): axum::extract::RawQuery,
) -> Response {
    let ids = query.as_deref().and_then(|query| query.strip_prefix("ids=")).unwrap_or_default().split(',');
    let mut ask = cmd("HMGET");
    ask.arg(fields_key(user));
    ids.for_each(|id| {
        ask.arg(id);
    });
    match ask.query_async::<Vec<Option<i64>>>(&mut connection).await {
        Ok(found) if !found.is_empty() => canned.response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Starts a peer that gives this answer.
pub(crate) async fn start(peer: Peer, answer: &Answer, redis: &str, folder: &std::path::Path) -> Result<Process> {
    start_reading(peer, 0, answer, redis, folder).await
}

/// Starts a peer that reads so many values and gives this answer.
pub(crate) async fn start_reading(peer: Peer, reads: u32, answer: &Answer, redis: &str, folder: &std::path::Path) -> Result<Process> {
    let file = folder.join(format!("{peer:?}.answer"));
    let mut text = format!("HTTP/1.1 {}\r\n", answer.status).into_bytes();
    for (name, value) in &answer.headers {
        text.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(&answer.body);
    std::fs::write(&file, text)?;
    let name = peer.to_possible_value().ok_or("a peer without a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["peer", name.get_name(), "--reads", &reads.to_string(), "--answer"]).arg(&file).env(REDIS_OF_PEER, redis);
    Process::start(command).await
}

/// The version of the Redis at this address.
pub(crate) async fn redis_version(url: &str) -> Result<String> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    let info: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(version.ok_or("a Redis without a version")?.trim().to_owned())
}
