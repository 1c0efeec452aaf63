//! Imports chat logs as direct messages, through a lane: the channel is the receiver.
//!
//! A message has an id made of its time and text (`message_ids.rs`), so an import may be run again
//! for as long as the rows are kept. They are kept from the import on, and show the time of the
//! log. One lane takes all, in the order of the log: each message writes to two inboxes.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::field::id;
use super::message_ids::MessageIds;
use super::messages::lines::{EXAMPLE, Entry, Line, MessageColumns};
use super::window::Window;
use super::{Input, Kept, OnBad, Progress, Task, Workers};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::engine::lanes::{self, Lanes};
use crate::features::inbox::import::{DirectStep, ImportedDirects, Steps};

/// How many messages are handed to the lane at once.
const CHUNK: usize = 10_000;

#[derive(Debug, Clone)]
pub struct DirectImport {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What is added to each id.
    pub id_offset: i64,
}

/// What became of an import.
pub type Report = super::Report<ImportedDirects>;

struct Directs;

impl Task for Directs {
    type Step = DirectStep;
    type Done = ImportedDirects;

    fn owner(step: &DirectStep) -> UserId {
        step.receiver
    }

    fn command(&self, steps: Vec<DirectStep>, lane_key: i64) -> Arc<dyn lanes::Command> {
        Arc::new(Steps { steps, lane_key })
    }
}

impl DirectImport {
    /// Runs it to its end over these lanes, which must be those of [`super::lane_config`].
    ///
    /// # Errors
    /// A sentence: why the file cannot be read (on), or that the stores do not answer. What was
    /// imported before stays.
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
fn read(mut input: Input, id_offset: i64, queue: &mpsc::Sender<Vec<DirectStep>>) -> Result<Report, String> {
    let columns = input.header(EXAMPLE, |header| match MessageColumns::from_header(header)? {
        columns if columns.has_events() => Err("direct messages have no joins and leaves; leave out the column 'event'".to_owned()),
        columns => Ok(columns),
    })?;
    let (mut last, mut chunk, mut ids) = (UnixMs(0), Window::new(CHUNK), MessageIds::new());
    while let Some(line) = input.next(|line| columns.parse(line, id_offset, last, |channel| id("channel", channel, id_offset))) {
        let Line { at, group: receiver, user: sender, entry } = line;
        last = at;
        let Entry::Message(content) = entry else { continue };
        let client = ids.next((receiver, sender), at, &content)?;
        let step = DirectStep { receiver, sender, client, content: content.into(), at };
        let bytes = step.size_bytes();
        if chunk.push(step, bytes) && queue.blocking_send(chunk.take()).is_err() {
            break;
        }
    }
    // A lane that has given up says so itself.
    let _ = queue.blocking_send(chunk.take());
    Ok(Report { lines: input.count, bad: input.bad, done: ImportedDirects::default(), broken_off: input.broken_off(Kept::All) })
}
