//! Imports chat logs as direct messages, through a lane: the channel is the receiver.
//!
//! A message has an id made of its time and text (`crate::import::message_ids`), so an import may be run again for as long as the rows are kept. They are
//! kept from the import on, and show the time of the log. One lane takes all, in the order of the log: each message writes to two inboxes.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::command::{Text, needs_of_send, send};
use crate::clock::UnixMs;
use crate::error::Problem;
use crate::groups::import::lines::{EXAMPLE, Entry, Line, MessageColumns};
use crate::ids::{ClientId, UserId};
use crate::import::field::id;
use crate::import::message_ids::MessageIds;
use crate::import::{Input, Kept, OnBad, Progress, Task, Workers};
use crate::lane::{self, Answer, Lanes, Needs, Rows};

/// How many messages are handed to the lane at once.
const CHUNK: usize = 10_000;

/// What is imported, and how.
#[derive(Debug, Clone)]
pub struct Import {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What is added to each id.
    pub id_offset: i64,
}

/// What became of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Those that were not known before.
    pub sent: u64,
    /// Those that were.
    pub known: u64,
    /// Those that a block does not let in.
    pub refused: u64,
}

impl std::ops::AddAssign for Imported {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.known += more.known;
        self.refused += more.refused;
    }
}

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines that were read, but for the header and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// What the others did.
    pub done: Imported,
    /// Where and why the file broke off, if it did, and what of it is imported.
    pub broken_off: Option<String>,
}

/// A message of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// To whom.
    pub receiver: UserId,
    /// From whom.
    pub sender: UserId,
    /// Its id.
    pub client: ClientId,
    /// What it says.
    pub content: Arc<str>,
    /// When it was sent.
    pub at: UnixMs,
}

/// Many messages of a log, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Steps {
    steps: Vec<Step>,
    lane_key: i64,
}

impl lane::Command for Steps {
    fn needs(&self, needs: &mut Needs) {
        self.steps.iter().for_each(|step| needs_of_send(needs, step.receiver, step.sender, &step.client));
    }

    fn lane_key(&self) -> i64 {
        self.lane_key
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let mut done = Imported::default();
        for Step { receiver, sender, client, content, at } in &self.steps {
            match send(rows, *receiver, *sender, Text { client, content, sent_at: *at }, now) {
                Ok(answer) if answer.status == axum::http::StatusCode::CREATED => done.sent += 1,
                Ok(_) => done.known += 1,
                Err(_) => done.refused += 1,
            }
        }
        Answer::ok(&done)
    }
}

struct Directs;

impl Task for Directs {
    type Step = Step;
    type Done = Imported;

    fn owner(step: &Step) -> UserId {
        step.receiver
    }

    fn command(&self, steps: Vec<Step>, lane_key: i64) -> Arc<dyn lane::Command> {
        Arc::new(Steps { steps, lane_key })
    }
}

impl Import {
    /// Runs it to its end over these lanes, which must be those of [`crate::import::lane_config`].
    ///
    /// # Errors
    /// A sentence: why the file cannot be read (on), or that the stores do not answer. What was imported before stays.
    pub async fn run(self, lanes: &Lanes, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let mut workers = Workers::start(Directs, lanes, &progress);
        let queue = workers.queues().into_iter().next().ok_or("there is no lane")?;
        let read = tokio::task::spawn_blocking(move || {
            let input = Input::open(&self.file, &progress, on_bad)?;
            read(input, self.id_offset, &queue)
        });
        let read = read.await.map_err(|_| "reading the file panicked".to_owned())?;
        let done = workers.finish().await?;
        read.map(|report| Report { done, ..report })
    }
}

/// Reads the file, in a thread of its own.
fn read(mut input: Input, id_offset: i64, queue: &mpsc::Sender<Vec<Step>>) -> Result<Report, String> {
    let columns = input.header(EXAMPLE, |header| match MessageColumns::from_header(header)? {
        columns if columns.has_events() => Err("direct messages have no joins and leaves; leave out the column 'event'".to_owned()),
        columns => Ok(columns),
    })?;
    let (mut last, mut chunk, mut ids) = (UnixMs(0), Vec::new(), MessageIds::new());
    while let Some(line) = input.next(|line| columns.parse(line, id_offset, last, |channel| id("channel", channel, id_offset))) {
        let Line { at, group: receiver, user: sender, entry } = line;
        last = at;
        let Entry::Message(content) = entry else { continue };
        let client = ids.next((receiver, sender), at, &content)?;
        chunk.push(Step { receiver, sender, client, content: content.into(), at });
        if chunk.len() == CHUNK && queue.blocking_send(std::mem::take(&mut chunk)).is_err() {
            break;
        }
    }
    // A lane that has given up says so itself.
    let _ = queue.blocking_send(chunk);
    Ok(Report { lines: input.count, bad: input.bad, done: Imported::default(), broken_off: input.broken_off(Kept::All) })
}
