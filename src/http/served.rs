//! What the handlers of a feature work with: the feature's own context, and what the extractors
//! need to know callers.
//!
//! A feature names its engines in a context of its own, its handlers take it as [`Served`], and
//! `app/contexts.rs` fills it.

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;

use super::auth::Auth;
use super::path::Witness;

/// What knows callers, and hears of them.
#[derive(Clone)]
pub struct Callers {
    /// Who may call.
    pub auth: Arc<Auth>,
    /// Who hears of users that call.
    pub witness: Arc<dyn Witness>,
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers").field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl Callers {
    /// A feature's context as its handlers take it.
    pub fn serve<C>(&self, context: C) -> Served<C> {
        Served(Arc::new((self.clone(), context)))
    }
}

/// A feature's context, shared: every request clones it, so a clone is one count.
#[derive(Debug)]
pub struct Served<C>(Arc<(Callers, C)>);

impl<C> Clone for Served<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> Deref for Served<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0.1
    }
}

impl<C: Send + Sync> FromRequestParts<Self> for Served<C> {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, served: &Self) -> Result<Self, Infallible> {
        Ok(served.clone())
    }
}

impl<C> FromRef<Served<C>> for Arc<Auth> {
    fn from_ref(served: &Served<C>) -> Self {
        Self::clone(&served.0.0.auth)
    }
}

impl<C> FromRef<Served<C>> for Option<Arc<dyn Witness>> {
    fn from_ref(served: &Served<C>) -> Self {
        Some(Arc::clone(&served.0.0.witness))
    }
}
