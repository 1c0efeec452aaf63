//! The header that makes a repeated write count once.

use std::fmt::Write as _;

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use utoipa::ToSchema;

use crate::base::error::{Code, Problem};
use crate::engine::idempotency::Key;
use crate::http::auth::Caller;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The `Idempotency-Key` header: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 255, pattern = "^[!-~]+$", example = "comment-9001")]
pub struct IdempotencyKey(pub Option<String>);

impl IdempotencyKey {
    /// The key of this caller for the request with this digest.
    #[must_use]
    pub fn of(self, caller: &Caller, digest: &[u8; 32]) -> Option<Key> {
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        self.0.map(|key| Key { caller: caller.id(), key, digest: hex })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let bad = |detail| Problem::new(Code::InvalidHeader, "The header is invalid. See errors.").at("Idempotency-Key", detail);
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        if values.next().is_some() {
            return Err(bad("must not be repeated"));
        }
        let key = value.to_str().unwrap_or_default();
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("must have 1 to 255 visible ASCII characters"));
        }
        Ok(Self(Some(key.to_owned())))
    }
}
