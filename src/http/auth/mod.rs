//! Who is calling: service keys (opaque bearer tokens, each with a name) and end users (JWTs whose
//! `sub` is the user's id).
//!
//! `tokens.rs` checks JWTs, `keys.rs` knows the keys for that, `jwks.rs` follows a file of them.
//!
//! [`Auth`] is made once from the settings and shared; [`Caller`] and [`Service`] are what a
//! handler asks for. The user's own routes ask for [`UserPath`](crate::http::path::UserPath), which
//! builds on this. To accept another kind of credential, add a step to [`Auth::authenticate`];
//! every step must end in the same answer for whatever it refuses.

mod config;
mod jwks;
mod keys;
mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio_util::sync::CancellationToken;

pub use self::config::AuthConfig;
use self::tokens::{REFUSED, Tokens, unauthorized};
use crate::base::clock::Clock;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, UserId};
pub use crate::http::caller::Caller;
use crate::http::caller::OPEN_NAME;
use crate::http::context;

/// How many characters a service key's secret has at least.
pub const MIN_SERVICE_SECRET: usize = 16;
/// A service key as it is kept: never the secret.
struct ServiceKey {
    name: Arc<str>,
    digest: [u8; 32],
}

/// The credentials, ready to check requests against.
pub struct Auth {
    keys: Vec<ServiceKey>,
    tokens: Option<Tokens>,
    open_name: Arc<str>,
    clock: Clock,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.keys.iter().map(|key| &key.name).collect();
        f.debug_struct("Auth").field("keys", &names).field("tokens", &self.tokens.is_some()).finish_non_exhaustive()
    }
}

impl Auth {
    /// Takes the credentials apart and checks them, without ever naming a secret in the error.
    ///
    /// # Errors
    /// A sentence for the operator: a short, duplicate or badly named key, or a key for JWTs that
    /// cannot be used.
    pub fn new(config: &AuthConfig, clock: Clock) -> Result<Self, String> {
        let mut keys: Vec<ServiceKey> = Vec::with_capacity(config.service_keys.len());
        for (at, key) in config.service_keys.iter().enumerate() {
            let key = service_key(key.expose_secret()).map_err(|why| format!("service key {}: {why}", at + 1))?;
            if keys.iter().any(|known| known.digest == key.digest) {
                return Err(format!("service key {}: the same secret is there twice", at + 1));
            }
            keys.push(key);
        }
        Ok(Self { keys, tokens: Tokens::new(config)?, open_name: Arc::from(OPEN_NAME), clock })
    }

    /// Whether no credentials are configured, so that every caller counts as a service.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.keys.is_empty() && self.tokens.is_none()
    }

    /// Finds out who is calling, from the `Authorization` header.
    ///
    /// # Errors
    /// A 401 problem.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        if self.is_open() {
            return Ok(Caller::Service { name: Arc::clone(&self.open_name) });
        }
        let token = bearer(headers)?;
        if let Some(name) = self.service(token) {
            return Ok(Caller::Service { name });
        }
        match &self.tokens {
            Some(tokens) => tokens.user(token, &self.clock).map(|id| Caller::User { id }),
            None => Err(unauthorized(REFUSED)),
        }
    }

    /// Makes a token for an end user.
    ///
    /// # Errors
    /// A sentence for the operator: no secret to sign with, or a lifetime out of range.
    pub fn user_token(&self, user: UserId, ttl: Duration) -> Result<String, String> {
        self.tokens.as_ref().ok_or("no JWT secret is configured")?.make(user, ttl, &self.clock)
    }

    /// Follows the file of keys, where there is one, until told to stop.
    pub async fn follow_keys(self: Arc<Self>, stop: CancellationToken) {
        if let Some(file) = self.tokens.as_ref().and_then(Tokens::file) {
            file.follow(jwks::LOOK_EVERY, stop).await;
        }
    }

    /// Compares with every key, always all of them, so that the time taken tells nothing.
    fn service(&self, token: &str) -> Option<Arc<str>> {
        let presented = <[u8; 32]>::from(Sha256::digest(token.as_bytes()));
        let mut found = u64::MAX;
        for (at, key) in (0_u64..).zip(&self.keys) {
            let same: Choice = key.digest.ct_eq(&presented);
            found.conditional_assign(&at, same);
        }
        let at = usize::try_from(found).ok()?;
        self.keys.get(at).map(|key| Arc::clone(&key.name))
    }
}

fn service_key(key: &str) -> Result<ServiceKey, &'static str> {
    let (name, secret) = match key.split_once(':') {
        Some((name, secret)) => (Some(name), secret),
        None => (None, key),
    };
    if secret.is_empty() {
        return Err("the secret is empty");
    }
    if !secret.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("the secret must be visible ASCII, or no header could carry it");
    }
    if secret.len() < MIN_SERVICE_SECRET {
        return Err("the secret has fewer than 16 characters, so it could be guessed; `headmark token --service` makes one that cannot");
    }
    let digest = <[u8; 32]>::from(Sha256::digest(secret.as_bytes()));
    let name: Arc<str> = match name {
        Some(OPEN_NAME) => return Err("the name 'open' is taken by the server without credentials"),
        Some(name) => Arc::from(
            name.parse::<Name>()
                .map_err(|_| "the name must have 1 to 64 characters of a-z, 0-9, '_', '.', '-', and begin with a letter or digit")?
                .as_str(),
        ),
        None => digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    };
    Ok(ServiceKey { name, digest })
}

/// The token of the one `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized("Send one Authorization header with Bearer and a service key or a user token."));
    };
    let text = value.to_str().map_err(|_| unauthorized(REFUSED))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(unauthorized("The Authorization header must use the Bearer scheme.")),
    }
}

impl<S> FromRequestParts<S> for Caller
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Arc::<Auth>::from_ref(state).authenticate(&parts.headers) {
            Ok(caller) => context::note_caller(&caller).map(|()| caller),
            Err(problem) => Err(context::note_stranger().err().unwrap_or(problem)),
        }
    }
}

/// A caller that is a service, for the routes of services. A user is answered 403.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The name of its key.
    pub name: Arc<str>,
}

impl Service {
    /// The same as a [`Caller`], for what belongs to a named caller.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller::Service { name: Arc::clone(&self.name) }
    }
}

impl<S> FromRequestParts<S> for Service
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::Service { name } => Ok(Self { name }),
            Caller::User { .. } => Err(Problem::new(Code::Forbidden, "This route requires a service key.")),
        }
    }
}

#[cfg(test)]
mod tests;
