//! Asks a running server as its clients do.

use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::header::{DATE, ETAG, IF_NONE_MATCH};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::finding::{Finding, State};
use crate::base::clock::Clock;
use crate::base::ids::UserId;

/// How long a server has for an answer that does not wait.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// A poll that waits is to be woken within this time, on every node.
const MAX_WAKE: Duration = Duration::from_secs(2);

/// How long a poll waits before something is written that is to wake it.
const BEFORE_WRITE: Duration = Duration::from_millis(300);

/// The clock of a node may be so far off; a `Date` header has whole seconds.
const MAX_SKEW_MS: i64 = 2500;

const BADGE: &str = "headmark-doctor";

/// A server that runs.
#[derive(Debug)]
pub struct Service {
    /// The address that clients use.
    pub url: Url,
    /// Addresses of single nodes.
    pub nodes: Vec<Url>,
    /// The credential; None for an open server.
    pub key: Option<SecretString>,
    /// For whom it writes.
    pub user: UserId,
    /// How long a poll is held.
    pub hold: Duration,
}

/// What was not as it should be, with what to do.
type Wrong = (String, &'static str);

impl Service {
    pub(super) async fn examine(&self) -> Vec<Finding> {
        // Not by a proxy that the environment names: whom to ask is told.
        let client = match Client::builder().timeout(MAX_ANSWER + self.hold).no_proxy().build() {
            Ok(client) => client,
            Err(error) => return vec![Finding::failure("service", error.to_string(), "check the certificates of this machine")],
        };
        let asked = Asked { client, service: self };
        let mut findings = Vec::new();
        findings.push(of(asked.ready(&self.url, KeptInside::Maybe).await));
        for url in &self.nodes {
            findings.push(of(asked.ready(url, KeptInside::No).await));
        }
        if findings.iter().any(|finding| finding.state != State::Ok) {
            return findings;
        }
        match asked.round_trip().await {
            Ok((told, tag)) => {
                findings.push(Finding::ok("service", told));
                findings.push(of(asked.unchanged(&tag).await));
                findings.push(of(asked.hold(&tag).await));
            }
            Err(wrong) => {
                findings.push(of(Err(wrong)));
                return findings;
            }
        }
        let nodes = if self.nodes.is_empty() { std::slice::from_ref(&self.url) } else { &self.nodes };
        for node in nodes {
            findings.push(of(asked.wake(node).await));
        }
        if let Err(wrong) = asked.clear().await {
            findings.push(of(Err(wrong)));
        }
        findings
    }
}

fn of(found: Result<String, Wrong>) -> Finding {
    match found {
        Ok(told) => Finding::ok("service", told),
        Err((what, fix)) => Finding::failure("service", what, fix),
    }
}

/// Whether a load balancer may keep `/readyz` to itself, as those in `deploy/` do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeptInside {
    Maybe,
    No,
}

struct Asked<'a> {
    client: Client,
    service: &'a Service,
}

const REACH: &str = "check the address, the load balancer and the firewall, and that a server runs there";
const CREDENTIALS: &str = "give the service keys of the server in HEADMARK_SERVICE_KEYS; the first one is used";
const ANSWER: &str = "look into the log of the server for the X-Request-Id of this answer";

impl Asked<'_> {
    fn request(&self, url: &Url, method: Method, path: &str) -> RequestBuilder {
        let mut url = url.clone();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        url.set_query(query);
        let request = self.client.request(method, url);
        match &self.service.key {
            Some(key) => request.bearer_auth(secret_of(key)),
            None => request,
        }
    }

    async fn send(request: RequestBuilder, expected: StatusCode, what: &str) -> Result<Response, Wrong> {
        let answer = request.send().await.map_err(|error| (format!("{what}: no answer: {}", cause_of(error)), REACH))?;
        match answer.status() {
            status if status == expected => Ok(answer),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err((format!("{what}: {status}"), CREDENTIALS)),
            status => Err((format!("{what}: {status} instead of {expected}"), ANSWER)),
        }
    }

    /// Whether a node is ready, and what its clock shows.
    async fn ready(&self, url: &Url, kept_inside: KeptInside) -> Result<String, Wrong> {
        let request = self.request(url, Method::GET, "/readyz");
        let answer = request.send().await.map_err(|error| (format!("{url} does not answer: {}", cause_of(error)), REACH))?;
        let skew = answer.headers().get(DATE).and_then(|date| date.to_str().ok()).and_then(skew_of);
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap_or_default());
        let is_refused = matches!(status, StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) && body.pointer("/ready").is_none();
        if is_refused && kept_inside == KeptInside::Maybe {
            return Ok(format!("{url} answers, and keeps /readyz inside: ask the nodes by --node"));
        }
        if !status.is_success() || body.pointer("/degraded").is_some_and(|degraded| degraded == true) {
            return Err((format!("{url} is not well: {body}"), "see what is `away` there, and mend that store"));
        }
        match skew {
            Some(skew) if skew.abs() > MAX_SKEW_MS => {
                Err((format!("the clocks of {url} and of this machine are {} s apart", skew.abs() / 1000), "run NTP on both"))
            }
            _ => Ok(format!("{url} is ready, and so are its stores")),
        }
    }

    async fn increment(&self, url: &Url) -> Result<i64, Wrong> {
        let path = format!("/v1/users/{}/badges/{BADGE}/increment", self.service.user);
        let answer = Self::send(self.request(url, Method::POST, &path).json(&json!({})), StatusCode::OK, "a write").await?;
        let body: Value = answer.json().await.unwrap_or_default();
        body.pointer("/head").and_then(Value::as_i64).ok_or_else(|| (format!("a write was answered with {body}"), "is this a Headmark?"))
    }

    fn poll(&self, query: &str) -> RequestBuilder {
        let path = format!("/v1/users/{}/badges?include=counters{query}", self.service.user);
        self.request(&self.service.url, Method::GET, &path)
    }

    /// Writes and sees it in a poll; returns the poll's tag.
    async fn round_trip(&self) -> Result<(String, String), Wrong> {
        let began = Instant::now();
        let head = self.increment(&self.service.url).await?;
        let wrote = began.elapsed();
        let answer = Self::send(self.poll(""), StatusCode::OK, "a poll").await?;
        let polled = began.elapsed() - wrote;
        let tag = answer.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let body: Value = answer.json().await.unwrap_or_default();
        if body.pointer(&format!("/counters/{BADGE}/head")).and_then(Value::as_i64) < Some(head) {
            return Err((
                format!("a poll did not show the write before it: {body}"),
                "is there a cache in between that ignores Cache-Control?",
            ));
        }
        let tag = tag.ok_or(("a poll had no ETag".to_owned(), "see to it that nothing in between removes it"))?;
        Ok((format!("a write took {} ms, the poll that shows it {} ms", wrote.as_millis(), polled.as_millis()), tag))
    }

    async fn unchanged(&self, tag: &str) -> Result<String, Wrong> {
        Self::send(self.poll("").header(IF_NONE_MATCH, tag), StatusCode::NOT_MODIFIED, "a poll with the same tag").await?;
        Ok("a poll that has seen it gets 304".to_owned())
    }

    /// Whether a poll may wait.
    async fn hold(&self, tag: &str) -> Result<String, Wrong> {
        let seconds = self.service.hold.as_secs();
        let began = Instant::now();
        let request = self.poll(&format!("&wait={seconds}")).header(IF_NONE_MATCH, tag);
        let held = Self::send(request, StatusCode::NOT_MODIFIED, "a poll that waits").await;
        let after = began.elapsed().as_secs();
        match held {
            Ok(_) if after + 1 >= seconds => Ok(format!("a poll is held for {seconds} s")),
            Ok(_) => Err((format!("a poll was held for {after} s instead of {seconds}"), "was the server stopping?")),
            Err((what, _)) => {
                let fix = "raise the idle and read timeouts of the load balancer above 65 s, or have clients wait for less";
                Err((format!("after {after} s, {what}"), fix))
            }
        }
    }

    /// How soon a write through a node wakes a poll.
    async fn wake(&self, node: &Url) -> Result<String, Wrong> {
        let (_, tag) = self.round_trip().await?;
        let seconds = MAX_ANSWER.as_secs();
        let waits = self.poll(&format!("&wait={seconds}")).header(IF_NONE_MATCH, &tag);
        let waiting = async {
            let answer = Self::send(waits, StatusCode::OK, "a poll that a write is to wake").await?;
            Ok::<_, Wrong>((answer, Instant::now()))
        };
        let writing = async {
            tokio::time::sleep(BEFORE_WRITE).await;
            self.increment(node).await?;
            Ok(Instant::now())
        };
        let ((_, woken), written) = tokio::try_join!(waiting, writing)?;
        let after = woken.saturating_duration_since(written);
        if after > MAX_WAKE {
            let what = format!("a write through {node} woke a poll after {} ms", after.as_millis());
            return Err((
                what,
                "all nodes must have the same DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX; see whether Redis is away",
            ));
        }
        Ok(format!("a write through {node} wakes a poll within {} ms", after.as_millis().max(1)))
    }

    /// Marks the counter as read.
    async fn clear(&self) -> Result<(), Wrong> {
        let path = format!("/v1/users/{}/badges/{BADGE}/reset", self.service.user);
        Self::send(self.request(&self.service.url, Method::POST, &path).json(&json!({})), StatusCode::OK, "a reset").await.map(drop)
    }
}

/// The part of a service key that callers send: what follows its name.
fn secret_of(key: &SecretString) -> &str {
    let key = key.expose_secret().trim();
    key.split_once(':').map_or(key, |(_, secret)| secret)
}

/// Why there was no answer: the innermost cause of an error, such as a connection that was refused. The
/// address is told already.
pub(in crate::app) fn cause_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// How far a `Date` header is from this machine's clock, in milliseconds.
fn skew_of(date: &str) -> Option<i64> {
    let date = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_millisecond();
    Some(Clock::System.now().0 - date)
}
