//! What every route marked **poll** shares: entity tags, 304, the pace, and waiting for a change.
//!
//! A route gives a function that reads its answer; [`poll`] does the rest.

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rand::RngExt as _;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::{Listener, Revision};
use crate::error::{Error, Fault, Problem};
use crate::heads::Changes;
use crate::http::params::IfNoneMatch;
use crate::ids::UserId;
use crate::state::AppState;

/// The longest `wait`, in seconds.
const MAX_WAIT_S: u32 = 60;

/// How often a waiting poll looks again without being woken: a wake-up can be lost with its connection.
const RECHECK: Duration = Duration::from_secs(5);

/// The same for what others change without waking anybody here.
const RECHECK_SHARED: Duration = Duration::from_secs(1);

/// How much later than asked a recheck may look, so that many waiters do not come at once.
const JITTER_MS: u64 = 250;

/// The same after a post: those are many, and a reminder in the feed is in less of a hurry.
const FEED_JITTER_MS: u64 = 1000;

/// Room for the headers of an answer, with those that the edge and the router add: a map that grows is made anew.
const HEADERS: usize = 9;

/// As long as most bodies are, so that writing one allocates once.
const USUAL_BODY_BYTES: usize = 512;

static X_POLL_INTERVAL: HeaderName = HeaderName::from_static("x-poll-interval");

/// One reading of a polled resource.
#[derive(Debug)]
pub struct Reading<T> {
    /// What the client is shown.
    pub value: T,
    /// The version that its tag is made from; None for a degraded answer, which has no tag.
    pub version: Option<Version>,
}

impl<T> Reading<T> {
    /// Whether the client has it already.
    fn is_known(&self, tags: &IfNoneMatch) -> bool {
        self.version.is_some_and(|version| tags.matches(&etag(version)))
    }
}

/// What an answer was made from. Revision and shared versions never go down, so they tell whether a node is behind what the client saw elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Version {
    /// The revision of the user's own rows.
    pub revision: Revision,
    /// The versions of all shared heads that it was counted from, added up.
    pub shared: i64,
    /// A print of what was counted from them; 0 where nothing was.
    pub print: u64,
}

impl From<Revision> for Version {
    /// Of what depends on the user's own rows alone.
    fn from(revision: Revision) -> Self {
        Self { revision, shared: 0, print: 0 }
    }
}

impl Version {
    /// The version in an entity tag, if it is one of ours.
    fn parse(tag: &str) -> Option<Self> {
        let mut parts = tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"').split('.');
        let revision = parts.next()?.parse().ok()?;
        let shared = parts.next().map_or(Some(0), |part| part.parse().ok())?;
        let print = parts.next().map_or(Some(0), |part| u64::from_str_radix(part, 16).ok())?;
        Some(Self { revision, shared, print })
    }

    /// Whether a node that would answer with this may be behind, in what users share, a node that answered with `seen`: the sum of versions is lower, or the same but not what was
    /// counted from them. Where the user's own rows are newer than what was seen they tell nothing about the rest; the sum may then be lower because the user left something, so that it
    /// is a look for nothing.
    #[must_use]
    pub fn is_behind_in_shared(&self, seen: Self) -> bool {
        let lower = self.revision >= seen.revision && self.shared < seen.shared;
        lower || (self.revision == seen.revision && self.shared == seen.shared && self.print != seen.print)
    }
}

/// The entity tag of a version: the same on every node and for every token; weak, as bodies may be compressed on the way.
#[must_use]
pub fn etag(version: Version) -> String {
    let Version { revision, shared, print } = version;
    if shared == 0 && print == 0 { format!("W/\"{revision}\"") } else { format!("W/\"{revision}.{shared}.{print:x}\"") }
}

/// A print of numbers: the hash of Fowler, Noll and Vo (FNV-1a, 64 bits), the same on every node and in every version, which the library's own does not promise.
#[derive(Debug, Clone, Copy)]
pub struct Print(u64);

impl Default for Print {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Print {
    /// Takes in a number.
    pub fn add(&mut self, number: i64) {
        self.add_bytes(&number.to_le_bytes());
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The print of all so far.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

/// Takes in a text as it is formatted.
impl fmt::Write for Print {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add_bytes(text.as_bytes());
        Ok(())
    }
}

/// The highest version that the client says it has: a node that is behind it reads the truth before it answers.
fn seen(tags: &IfNoneMatch) -> Version {
    tags.tags().filter_map(Version::parse).max().unwrap_or_default()
}

/// How long a request asks to be held, in seconds.
///
/// # Errors
/// A problem where that is longer than [`MAX_WAIT_S`].
pub fn wait_of(wait: Option<u32>) -> Result<u32, Problem> {
    let wait = wait.unwrap_or(0);
    if wait > MAX_WAIT_S { Err(Problem::query("wait", format!("{wait} is not from 0 to {MAX_WAIT_S}"))) } else { Ok(wait) }
}

/// A polled resource of one user: how it is read, given the lowest version that will do, and how it is written.
#[derive(Debug)]
pub struct Resource<R, W> {
    /// Reads it.
    pub read: R,
    /// Writes the body.
    pub write: W,
}

/// Answers a poll about one user's own state: at once, or with `wait` (seconds) when the answer is another than the client has, or the time is up.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll<T, R, F, W>(
    state: &AppState,
    user: UserId,
    wait: u32,
    tags: &IfNoneMatch,
    resource: Resource<R, W>,
) -> Result<Response, Error>
where
    R: Fn(Version) -> F,
    F: Future<Output = Result<Reading<T>, Error>>,
    W: Fn(&T) -> Result<Vec<u8>, Error>,
{
    poll_on(state, Wakers { user: Some(user), also: None, recheck: RECHECK }, wait, tags, resource).await
}

/// Answers a poll about something that not one user's own state decides, such as who has read a message. `also` tells when this node has changed it; what others
/// changed is looked for every second.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll_also<T, R, F, W>(
    state: &AppState,
    user: Option<UserId>,
    wait: u32,
    tags: &IfNoneMatch,
    also: Option<watch::Receiver<()>>,
    resource: Resource<R, W>,
) -> Result<Response, Error>
where
    R: Fn(Version) -> F,
    F: Future<Output = Result<Reading<T>, Error>>,
    W: Fn(&T) -> Result<Vec<u8>, Error>,
{
    poll_on(state, Wakers { user, also, recheck: RECHECK_SHARED }, wait, tags, resource).await
}

/// Answers a poll for what comes after a place in one of the user's streams: `wait` needs no tag, and holds the request while there is nothing, or nothing
/// but what the client has by its tag.
///
/// # Errors
/// Those of `read` and `write`.
pub async fn poll_after<T, R, F, W>(
    state: &AppState,
    user: UserId,
    wait: u32,
    tags: &IfNoneMatch,
    resource: Resource<R, W>,
    is_empty: impl Fn(&T) -> bool,
) -> Result<Response, Error>
where
    R: Fn(Version) -> F,
    F: Future<Output = Result<Reading<T>, Error>>,
    W: Fn(&T) -> Result<Vec<u8>, Error>,
{
    if wait > 0
        && let Ok(_room) = state.waiting.try_acquire()
    {
        let wakers = Wakers { user: Some(user), also: None, recheck: RECHECK };
        let holds = |reading: &Reading<T>| is_empty(&reading.value) || reading.is_known(tags);
        return Box::pin(wait_while(state, wakers, wait, tags, &resource, holds)).await;
    }
    let reading = (resource.read)(seen(tags)).await?;
    answer(state, tags, &reading, &resource.write)
}

/// What makes a waiting poll look again.
struct Wakers {
    /// A change of this user's own rows.
    user: Option<UserId>,
    /// Whatever this tells of.
    also: Option<watch::Receiver<()>>,
    /// The time.
    recheck: Duration,
}

async fn poll_on<T, R, F, W>(
    state: &AppState,
    wakers: Wakers,
    wait: u32,
    tags: &IfNoneMatch,
    resource: Resource<R, W>,
) -> Result<Response, Error>
where
    R: Fn(Version) -> F,
    F: Future<Output = Result<Reading<T>, Error>>,
    W: Fn(&T) -> Result<Vec<u8>, Error>,
{
    if wait > 0
        && tags.is_present()
        && let Ok(_room) = state.waiting.try_acquire()
    {
        // Boxed, so that the many polls that do not wait need not carry its room.
        return Box::pin(wait_while(state, wakers, wait, tags, &resource, |reading: &Reading<T>| reading.is_known(tags))).await;
    }
    let reading = (resource.read)(seen(tags)).await?;
    answer(state, tags, &reading, &resource.write)
}

/// Resolves when this tells of a change; never, where there is nothing that tells.
async fn told(also: &mut Option<watch::Receiver<()>>) {
    if let Some(receiver) = also
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Holds the request while the answer is one of those.
async fn wait_while<T, R, F, W>(
    state: &AppState,
    mut wakers: Wakers,
    wait: u32,
    tags: &IfNoneMatch,
    resource: &Resource<R, W>,
    holds: impl Fn(&Reading<T>) -> bool,
) -> Result<Response, Error>
where
    R: Fn(Version) -> F,
    F: Future<Output = Result<Reading<T>, Error>>,
    W: Fn(&T) -> Result<Vec<u8>, Error>,
{
    let deadline = Instant::now() + Duration::from_secs(u64::from(wait.min(MAX_WAIT_S)));
    // Listens before it reads: a change in between would be missed the other way round.
    let mut listener = wakers.user.map(|user| state.cache.listen(user));
    if let Some(listener) = &mut listener {
        listener.ready().await;
    }
    let mut shared = state.heads.listen();
    loop {
        let reading = (resource.read)(seen(tags)).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if !holds(&reading) || left.is_zero() || state.draining.is_cancelled() {
            return answer(state, tags, &reading, &resource.write);
        }
        let recheck = wakers.recheck + Duration::from_millis(rand::rng().random_range(0..JITTER_MS));
        tokio::select! {
            () = woken(&mut listener) => {}
            () = told(&mut wakers.also) => {}
            () = shared_changed(&mut shared) => {}
            () = tokio::time::sleep(left.min(recheck)) => {}
            () = state.draining.cancelled() => {}
        }
    }
}

/// Resolves when the user that is listened to is woken; never, where there is none.
async fn woken(listener: &mut Option<Listener>) {
    match listener {
        Some(listener) => listener.woken().await,
        None => std::future::pending().await,
    }
}

/// Resolves some time after something changed that users share. Whoever waits for anything is told, so those that were told at once look at different times; a
/// stream of posts makes each look at most a few times a second.
async fn shared_changed(changes: &mut watch::Receiver<Changes>) {
    let before = *changes.borrow();
    if changes.changed().await.is_err() {
        return std::future::pending().await;
    }
    let after = *changes.borrow_and_update();
    let most = if before.board == after.board { FEED_JITTER_MS } else { JITTER_MS };
    let pause = Duration::from_millis(rand::rng().random_range(0..most));
    tokio::time::sleep(pause).await;
}

/// 304 where the client has this version already, else the body; a degraded answer has no tag.
fn answer<T>(
    state: &AppState,
    tags: &IfNoneMatch,
    reading: &Reading<T>,
    write: impl Fn(&T) -> Result<Vec<u8>, Error>,
) -> Result<Response, Error> {
    let Some(tag) = reading.version.map(etag) else { return Ok(degraded(state, write(&reading.value)?)) };
    if tags.matches(&tag) { Ok(not_modified(state, tag)) } else { Ok(fresh(state, tag, write(&reading.value)?)) }
}

/// Writes a body as JSON.
///
/// # Errors
/// A fault, should the value have no JSON form, which is a bug.
pub fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut body = Vec::with_capacity(USUAL_BODY_BYTES);
    match serde_json::to_writer(&mut body, value) {
        Ok(()) => Ok(body),
        Err(error) => Err(Fault::Bug(error.to_string()).into()),
    }
}

fn fresh(state: &AppState, tag: String, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().reserve(HEADERS);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    tagged(state, tag, response)
}

fn not_modified(state: &AppState, tag: String) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().reserve(HEADERS);
    tagged(state, tag, response)
}

fn tagged(state: &AppState, tag: String, mut response: Response) -> Response {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(X_POLL_INTERVAL.clone(), HeaderValue::from(state.poll_interval));
    response
}

/// A degraded answer has no tag, is not to be stored, and asks for half the pace.
fn degraded(state: &AppState, body: Vec<u8>) -> Response {
    let mut response = (StatusCode::OK, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(X_POLL_INTERVAL.clone(), HeaderValue::from(state.poll_interval.saturating_mul(2)));
    response
}
