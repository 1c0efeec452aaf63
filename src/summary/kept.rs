//! What polls keep with a user's entry: what the kinds made of it, and the bodies that were shown.
//!
//! A body follows from the entry, the broadcast state, the counts and what was asked for. The entry
//! is the one that it is kept with. So a body whose other three are the same is the same body. A
//! degraded body is not kept, nor is one with views, which are many.
//!
//! The first page of the user's chats follows from the entry, the versions of the groups' heads, the
//! levels that ended, and what was asked for. These are what its tag tells apart. It also shows rows
//! that it was read from, and the same revision means other rows after a restore. So a page belongs
//! to a history of the database, too. Pages behind the first one are not kept: nobody polls them.

use std::sync::Arc;

use axum::body::Bytes;

use super::parts::{Counts, Decoded, Wanted};
use crate::cache::Derived;
use crate::engine::heads::{History, Versions};

/// How many bodies are kept with an entry: an app asks for one, push senders for another.
const MAX_BODIES: usize = 2;

/// How many first pages of chats are kept with an entry: of all chats, and of the unread ones.
const MAX_PAGES: usize = 2;

/// How long a page may be to be kept, in bytes: 50 chats with messages of usual length.
const MAX_PAGE_BYTES: usize = 32 * 1024;

/// A body that was shown.
#[derive(Debug, Clone)]
struct Body {
    wanted: Wanted,
    /// The serial number of the broadcast state.
    broadcast_state: u64,
    counts: Counts,
    bytes: Bytes,
}

/// The first page of the user's chats, as it was shown.
#[derive(Debug, Clone)]
pub(super) struct PageBody {
    pub(super) bytes: Bytes,
    /// The cursor of the next page, if any.
    pub(super) next_cursor: Option<String>,
}

/// What is kept with an entry.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) decoded: Decoded,
    /// The newest first.
    bodies: Vec<Body>,
    /// The newest first.
    pages: Vec<(FirstPage, PageBody)>,
}

impl Derived for Kept {
    fn size_bytes(&self) -> usize {
        let bodies: usize = self.bodies.iter().map(|body| size_of::<Body>() + body.bytes.len()).sum();
        let pages = self.pages.iter().map(|(_, page)| page.bytes.len() + page.next_cursor.as_ref().map_or(0, String::len));
        let pages = pages.map(|bytes| size_of::<(FirstPage, PageBody)>() + bytes).sum::<usize>();
        size_of::<Self>() + self.decoded.size_bytes() + bodies + pages
    }
}

/// What the first page of the user's chats follows from, besides the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstPage {
    /// How many chats at most, and whether only unread ones.
    pub(super) asked: (i64, bool),
    /// The history of the database before anything was read for it.
    pub(super) history: History,
    /// The versions of the groups' heads, and the levels that ended.
    pub(super) versions: Versions,
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
        let pages = before.map(|kept| kept.pages.clone()).unwrap_or_default();
        Arc::new(Self { decoded, bodies, pages })
    }

    /// The page that was made from this, if it was shown before.
    pub(super) fn page(&self, from: FirstPage) -> Option<PageBody> {
        self.pages.iter().find(|(of, _)| *of == from).map(|(_, page)| page.clone())
    }

    /// The same with a page, which was just made; None where it is too long to be kept.
    pub(super) fn with_page(before: Option<&Self>, from: FirstPage, page: &PageBody) -> Option<Arc<Self>> {
        if page.bytes.len() > MAX_PAGE_BYTES {
            return None;
        }
        // Without the room that was left behind it when it was written.
        let page = PageBody { bytes: Bytes::copy_from_slice(&page.bytes), next_cursor: page.next_cursor.clone() };
        // One that was asked for in the same way is outdated.
        let others = before.into_iter().flat_map(|kept| &kept.pages).filter(|(of, _)| of.asked != from.asked);
        let pages = std::iter::once((from, page)).chain(others.cloned()).take(MAX_PAGES).collect();
        let (decoded, bodies) = before.map(|kept| (kept.decoded.clone(), kept.bodies.clone())).unwrap_or_default();
        Some(Arc::new(Self { decoded, bodies, pages }))
    }
}
