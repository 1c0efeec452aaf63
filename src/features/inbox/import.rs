//! Direct messages of a chat log as one write: they show the time of the log, and are kept from the
//! import on. Readers of events are not told: what is imported is no news.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Text, needs_of_send, send};
use super::rows::InboxRows;
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};

/// What became of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportedDirects {
    /// Those that were not known before.
    pub sent: u64,
    /// Those that were.
    pub known: u64,
    /// Those that a block does not let in, and those of erased users.
    pub refused: u64,
}

impl std::ops::AddAssign for ImportedDirects {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.known += more.known;
        self.refused += more.refused;
    }
}

/// A message of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectStep {
    /// To whom.
    pub receiver: UserId,
    /// From whom.
    pub sender: UserId,
    /// Its id.
    pub client: ClientId,
    pub content: Arc<str>,
    /// When it was sent.
    pub at: UnixMs,
}

impl DirectStep {
    /// The memory that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.client.as_str().len() + self.content.len()
    }
}

/// Many messages of a log, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// The messages.
    pub steps: Vec<DirectStep>,
    /// In which lane.
    pub lane_key: i64,
}

impl lanes::Command for Steps {
    fn needs(&self, needs: &mut Needs) {
        self.steps.iter().for_each(|step| needs_of_send(needs, step.receiver, step.sender, &step.client));
    }

    fn lane_key(&self) -> i64 {
        self.lane_key
    }

    fn names(&self) -> Names {
        // They are passed over one by one.
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let mut done = ImportedDirects::default();
        for DirectStep { receiver, sender, client, content, at } in &self.steps {
            if rows.is_erased(*receiver) || rows.is_erased(*sender) {
                done.refused += 1;
                continue;
            }
            let is_late = *at < rows.get::<InboxRows>().direct(*sender, *receiver).last_at;
            match send(rows, *receiver, *sender, Text { client, content, sent_at: *at, is_late }, now) {
                Ok((_, true)) => done.sent += 1,
                Ok((_, false)) => done.known += 1,
                // It was recalled since it was imported.
                Err(problem) if problem.code == Code::Gone => done.known += 1,
                Err(_) => done.refused += 1,
            }
        }
        Ok(Answer::ok(done))
    }
}
