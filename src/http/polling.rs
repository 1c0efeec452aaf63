//! What every route with an `ETag` shares: entity tags, 304, the pace, and waiting for a change.
//!
//! A route gives a function that reads its answer; [`poll`] does the rest. `tags.rs` says what a
//! tag is made from, `wakers.rs` what makes a held poll look again.

mod tags;
mod waiting;
mod wakers;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

pub use self::tags::{Scope, Seen, Version};
pub use self::waiting::{Waiting, WaitingPlace};
pub use self::wakers::Wakers;
use self::wakers::{JITTER_MS, jitter};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Code, Error, Fault, Problem};
use crate::base::ids::UserId;
use crate::cache::{Cache, Lookup};
use crate::engine::entries::alive;
use crate::engine::heads::Heads;
use crate::http::params::IfNoneMatch;

/// The longest `wait`, in seconds.
const MAX_WAIT_S: u32 = 60;

/// How often a waiting poll looks again without being woken: a wake-up can be lost with its
/// connection.
const RECHECK: Duration = Duration::from_secs(5);

/// The pause of a waiting poll whose look has failed, as the database is busy or away.
const FAILED_PAUSE: Duration = Duration::from_secs(1);

/// Room for the headers of an answer, with those that the edge and the router add: a map that grows
/// is copied.
const HEADERS: usize = 10;

/// The same of an answer without a body. One more would take twice as much.
const HEADERS_OF_304: usize = 6;

/// As long as most bodies are, so that writing one allocates once.
const USUAL_BODY_BYTES: usize = 512;

/// The pace that a node asks for while it stops, in seconds. A client that keeps to the usual pace
/// after its held poll was answered early would show an old number for that long.
const STOPPING_INTERVAL_S: u32 = 2;

pub(crate) static X_POLL_INTERVAL: HeaderName = HeaderName::from_static("x-poll-interval");

/// What answers the polls of a node.
#[derive(Debug)]
pub struct Polling {
    /// Tells of changes of users' own rows.
    pub cache: Arc<Cache>,
    /// Tells of changes of what users share.
    pub heads: Arc<Heads>,
    /// The places of polls that wait.
    pub waiting: Waiting,
    /// Cancelled when the node is to stop: waiting polls are answered, `/readyz` says no.
    pub draining: CancellationToken,
    /// The pace asked of polling clients.
    pub interval: Interval,
    /// Tells when a value changes by itself.
    pub clock: Clock,
}

/// A pace: seconds between two polls, and the header that asks for them.
#[derive(Debug)]
pub struct Interval {
    seconds: u32,
    header: HeaderValue,
}

impl Interval {
    /// A pace of so many seconds.
    #[must_use]
    pub fn new(seconds: u32) -> Self {
        Self { seconds, header: HeaderValue::from(seconds) }
    }
}

/// One reading of a polled resource.
#[derive(Debug)]
pub struct PolledValue<T> {
    /// What the client is shown.
    pub value: T,
    /// The version that its tag is made from; None for a degraded answer, which has no tag.
    pub version: Option<Version>,
    /// When it will be another without a write, such as at the end of a level; None: never.
    pub changes_at: Option<UnixMs>,
}

/// A poll: what the client has, and for how long it asks to be held.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'t> {
    /// What the client has.
    pub tags: &'t IfNoneMatch,
    /// Whose answer it is; None where everybody who may see it sees the same.
    pub about: Option<UserId>,
    /// For how many seconds it may be held.
    pub wait: u32,
}

impl Asked<'_> {
    /// What the client has. Asked for at each reading, as the epoch may change while a poll waits.
    fn seen(self, node: &Polling) -> Seen {
        Seen::by(self.tags, Scope::new(&node.heads.epoch(), self.tags.resource(), self.about))
    }

    /// Whether the client has this answer already.
    fn knows<T>(self, seen: Seen, reading: &PolledValue<T>) -> bool {
        reading.version.is_some_and(|version| self.tags.matches(&seen.tag(version)))
    }
}

/// How long a poll may be held, for routes without other parameters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WaitParams {
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    pub wait: Option<u32>,
}

/// How long a request asks to be held, in seconds.
///
/// # Errors
/// A problem where that is longer than [`MAX_WAIT_S`].
pub fn wait_of(wait: Option<u32>) -> Result<u32, Problem> {
    let wait = wait.unwrap_or(0);
    if wait > MAX_WAIT_S { Err(Problem::query("wait", format!("must be between 0 and {MAX_WAIT_S}"))) } else { Ok(wait) }
}

/// A polled resource of one user: how it is read, given what the client has, and how it is written.
#[derive(Debug)]
pub struct Resource<R, W> {
    /// Reads it.
    pub read: R,
    /// Writes the body.
    pub write: W,
}

/// Answers a poll about one user's own state, and what users share in it: at once, or with `wait`
/// (seconds) when the answer is another than the client has, or the time is up.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll<T, R, F, W>(
    node: &Polling,
    user: UserId,
    wait: u32,
    tags: &IfNoneMatch,
    resource: Resource<R, W>,
) -> Result<Response, Error>
where
    R: Fn(Seen) -> F,
    F: Future<Output = Result<PolledValue<T>, Error>>,
    W: Fn(&T) -> Result<Bytes, Error>,
{
    let asked = Asked { tags, about: Some(user), wait };
    poll_on(node, asked, Wakers::of_user(user), resource).await
}

/// The same where nothing that users share is in the answer, nor in its version.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll_own<T, R, F, W>(
    node: &Polling,
    user: UserId,
    wait: u32,
    tags: &IfNoneMatch,
    resource: Resource<R, W>,
) -> Result<Response, Error>
where
    R: Fn(Seen) -> F,
    F: Future<Output = Result<PolledValue<T>, Error>>,
    W: Fn(&T) -> Result<Bytes, Error>,
{
    let asked = Asked { tags, about: Some(user), wait };
    poll_on(node, asked, Wakers::of_user_alone(user), resource).await
}

/// The same where other things decide than one user's own state, such as who has read a message: `wakers`
/// says which.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll_on<T, R, F, W>(node: &Polling, asked: Asked<'_>, wakers: Wakers, resource: Resource<R, W>) -> Result<Response, Error>
where
    R: Fn(Seen) -> F,
    F: Future<Output = Result<PolledValue<T>, Error>>,
    W: Fn(&T) -> Result<Bytes, Error>,
{
    if asked.wait > 0 {
        if !asked.tags.is_present() {
            return Err(wait_needs_tag().into());
        }
        if let Some(_place) = node.waiting.take()? {
            // Boxed, so that the many polls that do not wait need not carry its room.
            return Box::pin(wait_while(node, asked, wakers, &resource, |_: &T| false)).await;
        }
    }
    let seen = asked.seen(node);
    answer(node, asked, seen, &(resource.read)(seen).await?, &resource.write)
}

/// Answers a poll for what comes after a place in a stream, such as an inbox or the messages of a
/// group: `wait` needs no tag, and holds the request while there is nothing, or nothing but what the
/// client has by its tag.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll_after<T, R, F, W>(
    node: &Polling,
    asked: Asked<'_>,
    wakers: Wakers,
    resource: Resource<R, W>,
    is_empty: impl Fn(&T) -> bool,
) -> Result<Response, Error>
where
    R: Fn(Seen) -> F,
    F: Future<Output = Result<PolledValue<T>, Error>>,
    W: Fn(&T) -> Result<Bytes, Error>,
{
    if asked.wait > 0
        && let Some(_place) = node.waiting.take()?
    {
        return Box::pin(wait_while(node, asked, wakers, &resource, is_empty)).await;
    }
    let seen = asked.seen(node);
    answer(node, asked, seen, &(resource.read)(seen).await?, &resource.write)
}

/// Without a tag every answer is another than the client has: it would be held for no time at all,
/// again and again.
fn wait_needs_tag() -> Problem {
    let detail = "A request with wait must send the ETag of its last response in If-None-Match.";
    Problem::new(Code::WaitNeedsTag, detail).at("wait", "requires If-None-Match")
}

/// Holds the request while the client has the answer already, while the answer is one of `these`,
/// and while it is degraded: nobody could tell whether that is news, and to answer it at once would
/// be a hot loop. So would an error that may pass be: it is told when the time is up, unless the first look meets it.
async fn wait_while<T, R, F, W>(
    node: &Polling,
    asked: Asked<'_>,
    wakers: Wakers,
    resource: &Resource<R, W>,
    these: impl Fn(&T) -> bool,
) -> Result<Response, Error>
where
    R: Fn(Seen) -> F,
    F: Future<Output = Result<PolledValue<T>, Error>>,
    W: Fn(&T) -> Result<Bytes, Error>,
{
    let deadline = Instant::now() + Duration::from_secs(u64::from(asked.wait.min(MAX_WAIT_S)));
    let users = [wakers.user, wakers.peer];
    // Listens before it reads: a change in between would be missed the other way round.
    let mut listening = wakers.listen(&node.cache, &node.heads).await;
    let mut is_first = true;
    loop {
        let seen = asked.seen(node);
        let reading = match (resource.read)(seen).await {
            Ok(reading) => reading,
            // Its client would come again at once, and take part in the crowd of those that are not held.
            Err(error) if !is_first && may_pass(&error) && Instant::now() < deadline => {
                refuse_erased(node, users).await?;
                let pause = FAILED_PAUSE + jitter(JITTER_MS);
                tokio::select! {
                    () = tokio::time::sleep_until(deadline.min(Instant::now() + pause)) => continue,
                    () = node.draining.cancelled() => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        if !std::mem::take(&mut is_first) {
            refuse_erased(node, users).await?;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let holds = reading.version.is_none() || these(&reading.value) || asked.knows(seen, &reading);
        if !holds || left.is_zero() || node.draining.is_cancelled() {
            return answer(node, asked, seen, &reading, &resource.write);
        }
        let recheck = (RECHECK + jitter(JITTER_MS)).min(until(node.clock.now(), reading.changes_at));
        // It is read again, and may be large.
        drop(reading);
        listening.next_look(Instant::now() + left.min(recheck), &node.draining).await;
    }
}

/// Whether the next look may go well: this one found no turn to read the database, or a store was away.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Problem(problem) => matches!(problem.code, Code::Overloaded | Code::StoreUnavailable),
        Error::Fault(fault) => fault.may_pass(),
    }
}

/// Refuses users that were erased while the poll waited.
async fn refuse_erased(node: &Polling, users: [Option<UserId>; 2]) -> Result<(), Problem> {
    for user in users.into_iter().flatten() {
        // Where the entry is not there, the next poll is refused.
        if let Ok(Lookup::Hit(entry)) = node.cache.get(user).await {
            alive(&entry.parts)?;
        }
    }
    Ok(())
}

/// How long it is until then.
fn until(now: UnixMs, then: Option<UnixMs>) -> Duration {
    then.map_or(Duration::MAX, |then| Duration::from_millis(u64::try_from(then.0.saturating_sub(now.0)).unwrap_or(0)))
}

/// 304 where the client has this version already, else the body; a degraded answer has no tag.
fn answer<T>(
    node: &Polling,
    asked: Asked<'_>,
    seen: Seen,
    reading: &PolledValue<T>,
    write: impl Fn(&T) -> Result<Bytes, Error>,
) -> Result<Response, Error> {
    let Some(tag) = reading.version.map(|version| seen.tag(version)) else { return Ok(degraded(node, write(&reading.value)?)) };
    if asked.tags.matches(&tag) { Ok(not_modified(node, tag)) } else { Ok(fresh(node, tag, write(&reading.value)?)) }
}

/// Writes a body as JSON.
///
/// # Errors
/// A fault, should the value have no JSON form, which is a bug.
pub fn json<T: Serialize>(value: &T) -> Result<Bytes, Error> {
    let mut body = Vec::with_capacity(USUAL_BODY_BYTES);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => Ok(body.into()),
        Err(error) => Err(Fault::Bug(error.to_string()).into()),
    }
}

fn fresh(node: &Polling, tag: String, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().reserve(HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    tagged(node, tag, response)
}

fn not_modified(node: &Polling, tag: String) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().reserve(HEADERS_OF_304);
    tagged(node, tag, response)
}

fn tagged(node: &Polling, tag: String, mut response: Response) -> Response {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let Interval { seconds, header: usual } = &node.interval;
    let stopping = node.draining.is_cancelled();
    let interval = if stopping { HeaderValue::from((*seconds).min(STOPPING_INTERVAL_S)) } else { usual.clone() };
    headers.insert(X_POLL_INTERVAL.clone(), interval);
    response
}

/// A degraded answer has no tag, is not to be stored, and asks for half the pace.
fn degraded(node: &Polling, body: Bytes) -> Response {
    let mut response = (StatusCode::OK, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(X_POLL_INTERVAL.clone(), HeaderValue::from(node.interval.seconds.saturating_mul(2)));
    response
}
