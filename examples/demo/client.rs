//! Speaks to the server as any client would: conditional polls, idempotency keys, and patience with
//! `Retry-After`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::Failure;
use crate::Result;
use crate::inbox::View;

/// Most users in one `POST /v1/badges/query`.
pub(crate) const MAX_QUERY: usize = 500;
/// Tries of one request before the demo gives up.
const MAX_TRIES: u32 = 8;
/// The longest wait between two tries, whatever `Retry-After` says.
const MAX_WAIT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest piece of an unexpected answer to show.
const MAX_SHOWN_CHARS: usize = 300;

/// Where to send what.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) base: String,
    pub(crate) key: Option<String>,
    pub(crate) badge: String,
    pub(crate) log_id: String,
}

/// A client of one server and one badge.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    target: Target,
    retries: AtomicU64,
    replayed: AtomicU64,
}

/// The unread summary, as far as the demo looks at it.
#[derive(Debug, Deserialize)]
pub(crate) struct Sheet {
    pub(crate) user_id: String,
    pub(crate) revision: i64,
    pub(crate) total: Option<i64>,
    #[serde(default)]
    pub(crate) degraded: bool,
    #[serde(default)]
    counters: BTreeMap<String, Number>,
}

/// The answer to an increment or a reset, and a counter of the unread summary.
#[derive(Debug, Deserialize)]
struct Number {
    unread: i64,
    head: i64,
    revision: Option<i64>,
}

/// The answer to a poll.
#[derive(Debug)]
pub(crate) enum Polled {
    /// 304: what was shown with the tag still holds.
    Same,
    New {
        summary: Sheet,
        etag: Option<String>,
    },
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Sheet>,
}

#[derive(Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    code: Option<String>,
}

struct Answer {
    path: String,
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Sheet {
    /// The one badge of the unread summary. One that was never counted may be left out: it stands
    /// at zero.
    pub(crate) fn view(&self, badge: &str) -> View {
        let (unread, head) = self.counters.get(badge).map_or((0, 0), |number| (number.unread, number.head));
        View { unread, head, revision: Some(self.revision) }
    }
}

impl Client {
    pub(crate) fn new(target: Target) -> Result<Self> {
        // A proxy from the environment would stand between the demo and its own machine.
        let http = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).no_proxy().build()?;
        Ok(Self { http, target, retries: AtomicU64::new(0), replayed: AtomicU64::new(0) })
    }

    pub(crate) fn base(&self) -> &str {
        &self.target.base
    }

    pub(crate) fn badge(&self) -> &str {
        &self.target.badge
    }

    /// Requests sent again after a refusal or a lost connection, and answers to them that were a
    /// replay of the first.
    pub(crate) fn repeats(&self) -> (u64, u64) {
        (self.retries.load(Relaxed), self.replayed.load(Relaxed))
    }

    /// Asks `/readyz` once, without patience, so that a wrong address is said at once.
    pub(crate) async fn ready(&self) -> Result<()> {
        let url = format!("{}/readyz", self.target.base);
        let answer = self.http.get(&url).send().await.map_err(|error| self.unreachable(&error))?;
        match answer.status() {
            StatusCode::OK => Ok(()),
            status => Err(format!("the server at {} is not ready: {status}", self.target.base).into()),
        }
    }

    /// One more message for the user. The key follows from the file's row, so a retry cannot count
    /// twice.
    pub(crate) async fn increment(&self, user: u64, row: u64) -> Result<View> {
        let badge = self.badge();
        let key = format!("demo:{}:{badge}:{user}:{row}", self.target.log_id);
        let path = format!("/v1/users/{user}/badges/{badge}/increment");
        let request = self.request(Method::POST, &path).header("Idempotency-Key", key).json(&json!({"by": 1}));
        self.number(request).await
    }

    /// Marks as read what a poll showed.
    pub(crate) async fn reset(&self, user: u64, up_to: i64) -> Result<View> {
        let path = format!("/v1/users/{user}/badges/{}/reset", self.badge());
        self.number(self.request(Method::POST, &path).json(&json!({"up_to": up_to}))).await
    }

    /// The user's unread summary, or that it is still the one with this tag.
    pub(crate) async fn poll(&self, user: u64, etag: Option<&str>) -> Result<Polled> {
        let mut request = self.request(Method::GET, &format!("/v1/users/{user}/badges"));
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let answer = self.send(request).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            if etag.is_none() {
                return Err(format!("user {user}: 304 to a poll without If-None-Match").into());
            }
            return Ok(Polled::Same);
        }
        let etag = answer.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Polled::New { summary: read(&answer)?, etag })
    }

    /// The unread summaries of up to [`MAX_QUERY`] users at once.
    pub(crate) async fn query(&self, users: &[u64]) -> Result<Vec<Sheet>> {
        let user_ids: Vec<String> = users.iter().map(u64::to_string).collect();
        let request = self.request(Method::POST, "/v1/badges/query").json(&json!({"user_ids": user_ids}));
        let page: Page = read(&self.send(request).await?)?;
        Ok(page.items)
    }

    async fn number(&self, request: RequestBuilder) -> Result<View> {
        let number: Number = read(&self.send(request).await?)?;
        Ok(View { unread: number.unread, head: number.head, revision: number.revision })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.target.base));
        match &self.target.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Sends until there is an answer that is one. Everything sent here may be sent twice: polls
    /// change nothing, a repeated mark changes nothing, and increments carry a key.
    async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let mut tries = 0;
        loop {
            tries += 1;
            let copy = request.try_clone().ok_or("a request that cannot be sent again")?;
            let (why, wait): (Failure, Duration) = match attempt(copy).await {
                Ok(answer) if answer.status.is_success() || answer.status == StatusCode::NOT_MODIFIED => {
                    if answer.headers.contains_key("Idempotent-Replayed") {
                        self.replayed.fetch_add(1, Relaxed);
                    }
                    return Ok(answer);
                }
                Ok(answer) if may_pass(answer.status, tries) => (describe(&answer).into(), retry_after(&answer.headers)),
                Ok(answer) => return Err(describe(&answer).into()),
                Err(error) => (self.unreachable(&error), backoff(tries)),
            };
            if tries == MAX_TRIES {
                return Err(format!("{why} ({tries} tries)").into());
            }
            self.retries.fetch_add(1, Relaxed);
            tokio::time::sleep(wait).await;
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let base = &self.target.base;
        if error.is_timeout() {
            return format!("no answer from {base} within {} s", REQUEST_TIMEOUT.as_secs()).into();
        }
        let mut message = format!("no connection to {base}: {error}");
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            let _infallible = write!(message, ": {cause}");
            source = cause.source();
        }
        message.into()
    }
}

async fn attempt(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let path = response.url().path().to_owned();
    Ok(Answer { path, status, headers, body: response.text().await? })
}

/// Refusals that pass by waiting. A 409 is one only for a request sent again: its first sending is
/// then still under way.
fn may_pass(status: StatusCode, tries: u32) -> bool {
    matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) || (status == StatusCode::CONFLICT && tries > 1)
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1)).min(MAX_WAIT)
}

fn backoff(tries: u32) -> Duration {
    Duration::from_millis(50).saturating_mul(2_u32.saturating_pow(tries)).min(MAX_WAIT)
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T> {
    serde_json::from_str(&answer.body)
        .map_err(|error| format!("{}: an answer that does not read: {error}: {}", answer.path, shown(&answer.body)).into())
}

fn describe(answer: &Answer) -> String {
    let (path, status) = (&answer.path, answer.status);
    let is_problem = answer.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"));
    let problem = if is_problem { serde_json::from_str::<Problem>(&answer.body).ok() } else { None };
    let Some(problem) = problem else { return format!("{path}: the server answered {status}: {}", shown(&answer.body)) };
    let words: Vec<String> = [problem.code, problem.title, problem.detail].into_iter().flatten().collect();
    let hint = if status == StatusCode::UNAUTHORIZED { " (this server wants a service key: --key)" } else { "" };
    format!("{path}: the server answered {status}: {}{hint}", words.join(": "))
}

fn shown(body: &str) -> String {
    body.chars().take(MAX_SHOWN_CHARS).collect()
}

/// Reads a `--url`. There is no TLS in the demo: it is for the own machine or network.
pub(crate) fn parse_url(text: &str) -> std::result::Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    if url.scheme() != "http" {
        return Err("only http:// is spoken here".into());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Reads a service key as it stands in the server's settings: what is sent is its secret.
pub(crate) fn parse_key(text: &str) -> std::result::Result<String, Infallible> {
    Ok(text.split_once(':').map_or(text, |(_, secret)| secret).to_owned())
}

/// Reads a badge's name by the rule that the server has for it.
pub(crate) fn parse_name(text: &str) -> std::result::Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if (1..=64).contains(&text.len()) && text.starts_with(is_plain) && text.chars().all(|c| is_plain(c) || "_.-".contains(c)) {
        return Ok(text.to_owned());
    }
    Err("1 to 64 of a-z, 0-9 and _.-, and the first a letter or digit".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_without_its_name() {
        let secret = "0123456789abcdef";
        assert!(["web:0123456789abcdef", secret].iter().all(|key| parse_key(key).is_ok_and(|sent| sent == secret)));
    }

    #[test]
    fn a_sheet_reads_and_shows_the_badge() {
        let text = r#"{"user_id": "42", "revision": 9, "total": 3, "degraded": false, "feed": {"unread": 1},
            "counters": {"dm": {"unread": 3, "head": 120}}}"#;
        let summary: Sheet = serde_json::from_str(text).expect("reads");
        assert_eq!(summary.view("dm"), View { unread: 3, head: 120, revision: Some(9) });
        assert_eq!(summary.view("never-counted"), View { unread: 0, head: 0, revision: Some(9) });
    }

    #[test]
    fn waits_are_bounded() {
        let after = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().expect("a header value"))]));
        assert_eq!(after("2"), Duration::from_secs(2));
        assert_eq!(after("3600"), MAX_WAIT);
        assert_eq!(after("Wed, 21 Oct 2026 07:28:00 GMT"), Duration::from_secs(1));
        assert_eq!(retry_after(&HeaderMap::new()), Duration::from_secs(1));
        assert_eq!((backoff(1), backoff(60)), (Duration::from_millis(100), MAX_WAIT));
    }

    #[test]
    fn only_what_may_pass_is_sent_again() {
        assert!(may_pass(StatusCode::SERVICE_UNAVAILABLE, 1));
        assert!(may_pass(StatusCode::TOO_MANY_REQUESTS, 1));
        assert!(!may_pass(StatusCode::CONFLICT, 1) && may_pass(StatusCode::CONFLICT, 2));
        assert!(!may_pass(StatusCode::UNPROCESSABLE_ENTITY, 2));
    }

    #[test]
    fn arguments_are_checked_before_anything_runs() {
        assert_eq!(parse_url("http://127.0.0.1:8080/"), Ok("http://127.0.0.1:8080".to_owned()));
        assert!(parse_url("https://example.org").is_err() && parse_url("localhost:8080").is_err());
        assert!(parse_name("dm").is_ok() && parse_name("0.dm_x-1").is_ok());
        assert!(parse_name("").is_err() && parse_name("DM").is_err() && parse_name("_dm").is_err() && parse_name("d/m").is_err());
    }
}
