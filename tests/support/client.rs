//! A small HTTP client whose answers are easy to look at.

use std::time::Duration;

use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::Value;

use super::contract;

/// Calls one node.
#[derive(Debug, Clone)]
pub struct Client {
    pub base: String,
    http: reqwest::Client,
    bearer: Option<String>,
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// JSON, or null where the body is empty or something else.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Client {
    pub fn new(base: &str) -> Self {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(90)).build().unwrap();
        Self { base: base.to_owned(), http, bearer: None }
    }

    /// The same with credentials.
    pub fn with_bearer(&self, token: &str) -> Self {
        Self { bearer: Some(token.to_owned()), ..self.clone() }
    }

    /// A request to be refined; `path` begins with a slash.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.bearer {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        Self::send(self.request(Method::GET, path)).await
    }

    /// GET with `If-None-Match`.
    pub async fn get_if_changed(&self, path: &str, etag: &str) -> Reply {
        Self::send(self.request(Method::GET, path).header("if-none-match", etag)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        Self::send(self.request(Method::POST, path).json(body)).await
    }

    /// PUT of a body.
    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        Self::send(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        Self::send(self.request(Method::DELETE, path)).await
    }

    /// Follows; the relation.
    pub async fn follow(&self, follower: i64, followee: i64) -> Value {
        Self::send(self.request(Method::PUT, &format!("/v1/users/{follower}/following/{followee}"))).await.ok()
    }

    /// Unfollows.
    pub async fn unfollow(&self, follower: i64, followee: i64) {
        let reply = self.delete(&format!("/v1/users/{follower}/following/{followee}")).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    }

    /// A whole list, page by page, as its items.
    pub async fn walk(&self, path: &str, limit: usize) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit={limit}{cursor}")).await.ok();
            let shown = page["items"].as_array().unwrap();
            items.extend(shown.iter().cloned());
            match page["next_cursor"].as_str() {
                None => return items,
                Some(next) => {
                    assert_eq!(shown.len(), limit, "only the last page is short");
                    cursor = format!("&cursor={next}");
                }
            }
        }
    }

    /// POST with an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, body: &Value) -> Reply {
        Self::send(self.request(Method::POST, path).header("idempotency-key", key).json(body)).await
    }

    /// POST of a body that is JSON by its header alone.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        Self::send(self.request(Method::POST, path).header("content-type", "application/json").body(body)).await
    }

    /// A user's unread summary, which must be there.
    pub async fn summary(&self, user: i64) -> Value {
        self.get(&format!("/v1/users/{user}/badges")).await.ok()
    }

    /// What a metric without labels reads.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} is missing")).parse().unwrap()
    }

    /// Sends; the test fails should no answer come.
    pub async fn send(request: reqwest::RequestBuilder) -> Reply {
        Self::try_send(request).await.expect("an HTTP answer")
    }

    /// Sends to a node that may be dead or dying.
    pub async fn try_send(request: reqwest::RequestBuilder) -> Result<Reply, reqwest::Error> {
        let (http, request) = request.build_split();
        let request = request?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = http.execute(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        contract::check(&method, &path, status, &headers, &body);
        Ok(Reply { status, headers, body, text })
    }
}

impl Reply {
    /// The answer, which must be a success.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self.body
    }

    /// The answer, which must be a problem with this status and code, in the shape of RFC 9457.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status.as_u16(), self.body["code"].as_str()), (status, Some(code)), "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["type"], format!("/problems/{code}"));
        assert!(self.body["title"].is_string() && self.body["detail"].is_string(), "{}", self.text);
        if matches!(status, 429 | 503) {
            assert!(!self.header("retry-after").is_empty(), "{status} carries Retry-After");
        }
        self.body
    }

    /// The pointers of a problem with this status and code.
    #[track_caller]
    pub fn pointers(self, status: u16, code: &str) -> Vec<String> {
        let body = self.problem(status, code);
        let errors = body["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
    }

    /// The body with the epoch of the installation, which is another one for each test, as `EPOCH`.
    pub fn without_epoch(&self) -> String {
        const FIELD: &str = "\"epoch\":\"";
        let mut parts = self.text.split(FIELD);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let (epoch, rest) = part.split_once('"').unwrap_or_default();
            assert_eq!(epoch.len(), 16, "{}", self.text);
            format!("{text}{FIELD}EPOCH\"{rest}")
        })
    }

    /// Whether a client may send it again: a store is away, the outcome is unknown, or the key is
    /// still in use.
    pub fn may_repeat(&self) -> bool {
        self.status == 503 || self.body["code"] == "idempotency_in_progress"
    }

    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
