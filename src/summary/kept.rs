//! What polls keep with a user's entry: what the kinds made of it, and the bodies that were shown.
//!
//! A body follows from the entry, the broadcast state, the counts and what was asked for. The entry
//! is the one that it is kept with. So a body whose other three are the same is the same body. A
//! degraded body is not kept, nor is one with views, which are many.

use std::sync::Arc;

use axum::body::Bytes;

use super::parts::{Counts, Decoded, Wanted};
use crate::cache::Derived;

/// How many bodies are kept with an entry: an app asks for one, push senders for another.
const MAX_BODIES: usize = 2;

/// A body that was shown.
#[derive(Debug, Clone)]
struct Body {
    wanted: Wanted,
    /// The serial number of the broadcast state.
    broadcast_state: u64,
    counts: Counts,
    bytes: Bytes,
}

/// What is kept with an entry.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) decoded: Decoded,
    /// The newest first.
    bodies: Vec<Body>,
}

impl Derived for Kept {
    fn size_bytes(&self) -> usize {
        let bodies: usize = self.bodies.iter().map(|body| size_of::<Body>() + body.bytes.len()).sum();
        size_of::<Self>() + self.decoded.size_bytes() + bodies
    }
}

/// What a body follows from, besides the entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeFrom<'a> {
    pub(super) wanted: Wanted,
    /// The serial number of the broadcast state.
    pub(super) broadcast_state: u64,
    pub(super) counts: &'a Counts,
}

impl Kept {
    /// The body that was made from this, if it was shown before.
    pub(super) fn body(&self, from: MadeFrom<'_>) -> Option<Bytes> {
        let is_of =
            |body: &&Body| body.wanted == from.wanted && body.broadcast_state == from.broadcast_state && body.counts == *from.counts;
        self.bodies.iter().find(is_of).map(|body| body.bytes.clone())
    }

    /// The newest body and what was decoded, with the other bodies of the same entry.
    pub(super) fn new(decoded: Decoded, from: MadeFrom<'_>, bytes: Bytes, before: Option<&Self>) -> Arc<Self> {
        let MadeFrom { wanted, broadcast_state, counts } = from;
        let body = Body { wanted, broadcast_state, counts: counts.clone(), bytes };
        // One that was asked for in the same way is outdated.
        let others = before.into_iter().flat_map(|kept| &kept.bodies).filter(|body| body.wanted != wanted);
        let bodies = std::iter::once(body).chain(others.cloned()).take(MAX_BODIES).collect();
        Arc::new(Self { decoded, bodies })
    }
}
