//! A page of an inbox, as polls read it and wait with it.

use axum::body::Bytes;
use sha2::{Digest as _, Sha256};

use super::{InboxOut, lists};
use crate::base::error::{Code, Error, Fault, Problem, Result};
use crate::base::ids::{ClientId, UserId};
use crate::db::Db;
use crate::engine::entries::{Entries, State};
use crate::engine::heads::History;
use crate::http::polling::{self, Version};

/// Which page a request asks for.
#[derive(Debug)]
pub(super) struct WantedPage {
    pub(super) user: UserId,
    pub(super) after: Option<i64>,
    pub(super) device: Option<ClientId>,
    pub(super) limit: u32,
    pub(super) epoch: Option<String>,
}

/// A page as it was read. It stays the same for as long as the user has that revision, in that
/// history, and the device that cursor.
#[derive(Debug, Clone)]
pub(super) struct Page {
    history: History,
    revision: i64,
    after: Option<i64>,
    pub(super) body: Bytes,
    pub(super) version: Version,
    pub(super) is_empty: bool,
}

impl WantedPage {
    /// Reads the page, unless it is the one that a poll waits with.
    pub(super) async fn read(&self, db: &Db, entries: &Entries, history: History, held: Option<Page>) -> Result<Page> {
        let mut held = held.filter(|page| page.history == history);
        if let Some(page) = &held
            && !matches!(entries.read(self.user, 0).await, State::Current(entry) if entry.revision == page.revision)
        {
            held = None;
        }
        // Where there is nothing, a cursor cannot go on.
        if let Some(page) = held.take_if(|page| page.is_empty) {
            return Ok(page);
        }
        let after = match &self.device {
            Some(device) => entries.in_turn(lists::cursor(db, self.user, device)).await?,
            None => self.after,
        };
        if let Some(page) = held.filter(|page| page.after == after) {
            return Ok(page);
        }
        let read = entries.in_turn(lists::read(db, self.user, after.unwrap_or(0), i64::from(self.limit))).await?;
        let read = read.ok_or_else(|| Error::from(Fault::Bug("there is no epoch of inboxes".to_owned())))?;
        self.page(history, after, read)
    }

    /// Checks that nothing between `after` and what was read is missing. The tag is made from the
    /// body, as a group's message may be recalled without a change of the user's own rows.
    fn page(&self, history: History, after: Option<i64>, read: lists::Read) -> Result<Page> {
        let lists::Read { epoch, head, revision, earliest, items } = read;
        if self.epoch.as_ref().is_some_and(|known| *known != epoch) {
            return Err(Problem::new(Code::InboxReset, "Inbox numbering was reset. Read again without 'after' and 'epoch'.").into());
        }
        if after.is_some_and(|after| after > head) {
            let detail = format!("'after' is beyond the end of the inbox, {head}. Inbox numbering was reset. Read again without 'after'.");
            return Err(Problem::new(Code::InboxReset, detail).into());
        }
        if after.is_some_and(|after| after + 1 < earliest) {
            let detail = format!("Inbox items before {earliest} have expired.");
            return Err(Problem::new(Code::CursorExpired, detail).kept_from(earliest).into());
        }
        let next_after = items.last().map_or(head, |item| item.seq);
        let is_empty = items.is_empty();
        let body = polling::json(&InboxOut { items, epoch, head, next_after, has_more: next_after < head })?;
        let mut print = [0; 8];
        print.iter_mut().zip(Sha256::digest(&body)).for_each(|(to, from)| *to = from);
        let version = Version { revision: head, shared: u64::from_be_bytes(print) };
        Ok(Page { history, revision, after, body, version, is_empty })
    }
}

impl Page {
    /// A poll that waits keeps no items in memory: the client has them.
    pub(super) fn forget_items(&mut self) {
        if !self.is_empty {
            self.body = Bytes::new();
        }
    }
}
