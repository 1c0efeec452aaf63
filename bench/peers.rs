//! What the polls are compared with: the least that a web service can do, as processes of their own, so that what they cost is counted
//! apart. The bench starts its own program again with a hidden command for each.
//!
//! To add one: a variant of [`Peer`], its handler, and a side in `rows/polls.rs`.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use clap::{Subcommand, ValueEnum};
use deadpool_redis::redis::aio::ConnectionManager;
use deadpool_redis::redis::{AsyncTypedCommands as _, Client, cmd, pipe};
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::Result;
use crate::process::Process;
use crate::wire::Answer;

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
        #[arg(long)]
        redis: String,
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
    /// Reads a hundred fields of the user's hash of relations over such a connection, with one HMGET.
    Fields,
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
pub(crate) async fn fill_redis(url: &str, users: &[u64], badges: &[&str]) -> Result<()> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    for some in users.chunks(1000) {
        let mut pipeline = pipe();
        for user in some {
            let command = pipeline.cmd("HSET").arg(key(*user)).arg("!r").arg("918").arg("!e").arg("1");
            for badge in badges {
                command.arg(format!("c:{badge}")).arg("3 120");
            }
        }
        pipeline.exec_async(&mut connection).await?;
    }
    Ok(())
}

/// Serves until it is killed.
pub(crate) async fn serve(hidden: &Hidden) -> Result<()> {
    let Hidden::Peer { peer, answer, redis } = hidden;
    let canned = Canned::parse(&std::fs::read(answer)?)?;
    let route = "/v1/users/{user}/badges";
    let router = match peer {
        Peer::Bare => Router::new().route(route, get(async |State(canned): State<Canned>| canned.response())).with_state(canned),
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
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::report::show(&format!("{peer:?} is listening on http://{}\n", listener.local_addr()?))?;
    let listener = listener.tap_io(|stream| {
        // A peer that has gone already; its connection ends by itself.
        let _gone = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

async fn pooled(State((canned, pool)): State<(Canned, deadpool_redis::Pool)>, Path(user): Path<u64>) -> Response {
    let Ok(mut connection) = pool.get().await else { return StatusCode::SERVICE_UNAVAILABLE.into_response() };
    match connection.hgetall(key(user)).await {
        Ok(fields) if !fields.is_empty() => canned.response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn multiplexed(State((canned, mut connection)): State<(Canned, ConnectionManager)>, Path(user): Path<u64>) -> Response {
    match connection.hgetall(key(user)).await {
        Ok(fields) if !fields.is_empty() => canned.response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A hash for each of these users, with a field for each of these others, as a cache of relations in one hash would hold it.
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
    command.args(["peer", name.get_name(), "--redis", redis, "--answer"]).arg(&file);
    Process::start(command).await
}

/// The version of the Redis at this address.
pub(crate) async fn redis_version(url: &str) -> Result<String> {
    let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
    let info: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(version.ok_or("a Redis without a version")?.trim().to_owned())
}
