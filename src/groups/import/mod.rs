//! Imports chat logs, through the lanes: each channel becomes a group, its senders members.
//!
//! ```text
//!   messages ─┐
//!             ├─ merged by time, events before messages of the same second ─▶ steps, a lane for each group ─▶ crate::import: batches
//!   members  ─┘
//! ```
//!
//! Both files must be in the order of time, as logs are. A message has an id made of its time and its place among those of the same sender and moment, so a whole
//! import may be run again: what is known changes nothing, and neither does an event that is older than what the group has of that user.

mod command;
pub(crate) mod lines;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

pub use self::command::{Import as ImportCommand, Imported, Step, What};
use self::lines::{Event, EventColumns, Line, MessageColumns};
use crate::clock::UnixMs;
use crate::ids::{ClientId, GroupId, Invalid, UserId};
use crate::import::{CHUNK_STEPS, Input, OnBad, Progress, Task, Workers};
use crate::lane::{self, Lanes};

/// How many steps are handed to the lanes at once.
const WINDOW_STEPS: usize = 20_000;

/// How many channels a file may have.
const MAX_CHANNELS: usize = 1_000_000;

/// What is imported, and how.
#[derive(Debug, Clone)]
pub struct Import {
    /// The messages; `-` is standard input.
    pub file: PathBuf,
    /// Who joined and left when.
    pub members: Option<PathBuf>,
    /// What is added to each id.
    pub id_offset: i64,
    /// The first id that is given to a channel whose name is no number.
    pub first_group_id: i64,
}

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines that were read, of both files, but for headers and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// The group of each channel that has a name, in the order in which they came.
    pub named: Vec<(String, GroupId)>,
    /// What the others did.
    pub done: Imported,
}

/// The steps of chat logs.
pub(crate) struct Messages;

impl Task for Messages {
    type Step = Step;
    type Done = Imported;

    fn owner(step: &Step) -> UserId {
        step.user
    }

    fn command(&self, steps: Vec<Step>, lane_key: i64) -> Arc<dyn lane::Command> {
        Arc::new(ImportCommand { steps, lane_key })
    }
}

impl Import {
    /// Runs it to its end over these lanes, which must be those of [`crate::import::lane_config`].
    ///
    /// # Errors
    /// A sentence: why a file cannot be read (on), or that the stores do not answer. What was imported before stays.
    pub async fn run(self, lanes: &Lanes, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let mut workers = Workers::start(Messages, lanes, &progress);
        let queues = workers.queues();
        let read = tokio::task::spawn_blocking(move || {
            let (of_messages, of_members) = both(on_bad, self.members.as_deref());
            let events = self.members.as_deref().map(|file| Input::open(file, &Progress::default(), of_members)).transpose()?;
            let input = Input::open(&self.file, &progress, of_messages)?;
            Reader { channels: Channels::new(&self), import: self, input, events, queues, window: Vec::new(), marks: HashMap::new() }.read()
        });
        let read = read.await.map_err(|_| "reading the file panicked".to_owned())?;
        let done = workers.finish().await?;
        read.map(|report| Report { done, ..report })
    }
}

/// Which group each channel is.
struct Channels {
    id_offset: i64,
    next: i64,
    by_name: BTreeMap<String, GroupId>,
    named: Vec<(String, GroupId)>,
    /// Those that have numbers of their own.
    numbered: HashSet<GroupId>,
}

impl Channels {
    fn new(import: &Import) -> Self {
        let (id_offset, next) = (import.id_offset, import.first_group_id);
        Self { id_offset, next, by_name: BTreeMap::new(), named: Vec::new(), numbered: HashSet::new() }
    }

    /// The group of a channel. A name gets the next number that is free.
    ///
    /// # Errors
    /// A sentence.
    fn group(&mut self, channel: &str) -> Result<GroupId, String> {
        if channel.is_empty() {
            return Err("has no channel".to_owned());
        }
        if let Some(group) = self.by_name.get(channel) {
            return Ok(*group);
        }
        if let Ok(number) = channel.parse::<i64>() {
            let shifted = number.checked_add(self.id_offset).and_then(|id| GroupId::try_from(id).ok());
            let group = shifted.ok_or_else(|| format!("has {number} as channel, which with {} added is no id", self.id_offset))?;
            if self.named.iter().any(|(_, named)| *named == group) {
                return Err(format!("has {number} as channel, which was given to a channel with a name; choose another --first-group-id"));
            }
            self.numbered.insert(group);
            return Ok(group);
        }
        if self.named.len() >= MAX_CHANNELS {
            return Err(format!("has a channel beyond the {MAX_CHANNELS}th"));
        }
        let none = || "has a channel for which there is no id left".to_owned();
        while GroupId::try_from(self.next).is_ok_and(|group| self.numbered.contains(&group)) {
            self.next = self.next.checked_add(1).ok_or_else(none)?;
        }
        let group = GroupId::try_from(self.next).map_err(|_| none())?;
        self.next = self.next.checked_add(1).ok_or_else(none)?;
        self.by_name.insert(channel.to_owned(), group);
        self.named.push((channel.to_owned(), group));
        Ok(group)
    }
}

/// Reads the files, in a thread of its own.
struct Reader {
    import: Import,
    input: Input,
    events: Option<Input>,
    channels: Channels,
    queues: Vec<mpsc::Sender<Vec<Step>>>,
    window: Vec<Step>,
    /// How many messages of the present moment there were of each group and sender.
    marks: HashMap<(GroupId, UserId), u32>,
}

impl Reader {
    fn read(mut self) -> Result<Report, String> {
        let columns = self.input.header(lines::EXAMPLE, MessageColumns::from_header)?;
        let event_columns = match &mut self.events {
            Some(events) => Some(events.header(lines::EVENT_EXAMPLE, EventColumns::from_header)?),
            None => None,
        };
        let mut last = (UnixMs(0), UnixMs(0));
        let mut event = self.next_event(event_columns.as_ref(), &mut last.1)?;
        let ended = loop {
            let line = match self.next_message(&columns, &mut last.0) {
                Ok(Some(line)) => line,
                ended => break ended,
            };
            // What happened in the same second comes before what was said in it.
            while let Some(earlier) = event.take_if(|event| event.at.0 / 1000 <= line.at.0 / 1000) {
                self.push(earlier.step());
                event = self.next_event(event_columns.as_ref(), &mut last.1)?;
            }
            let step = self.message(line)?;
            if !self.push(step) {
                return Ok(self.report());
            }
        };
        while let (Ok(None), Some(earlier)) = (&ended, event.take()) {
            self.push(earlier.step());
            event = self.next_event(event_columns.as_ref(), &mut last.1)?;
        }
        // What was read before the file broke off is imported.
        self.flush();
        ended.map(|_| self.report())
    }

    fn report(self) -> Report {
        let events = self.events.as_ref().map_or((0, 0), |events| (events.count, events.bad));
        Report { lines: self.input.count + events.0, bad: self.input.bad + events.1, named: self.channels.named, done: Imported::default() }
    }

    fn next_message(&mut self, columns: &MessageColumns, last: &mut UnixMs) -> Result<Option<Line>, String> {
        let (offset, channels) = (self.import.id_offset, std::cell::RefCell::new(&mut self.channels));
        let before = *last;
        let line = self.input.next(|line| columns.parse(line, offset, before, |channel| channels.borrow_mut().group(channel)))?;
        if let Some(line) = &line {
            *last = line.at;
            if line.at != before {
                self.marks.clear();
            }
        }
        Ok(line)
    }

    fn next_event(&mut self, columns: Option<&EventColumns>, last: &mut UnixMs) -> Result<Option<Event>, String> {
        let (Some(events), Some(columns)) = (&mut self.events, columns) else { return Ok(None) };
        let (offset, channels) = (self.import.id_offset, std::cell::RefCell::new(&mut self.channels));
        let before = *last;
        let event = events.next(|line| columns.parse(line, offset, before, |channel| channels.borrow_mut().group(channel)))?;
        if let Some(event) = &event {
            *last = event.at;
        }
        Ok(event)
    }

    fn message(&mut self, line: Line) -> Result<Step, String> {
        let number = self.marks.entry((line.group, line.sender)).or_default();
        *number += 1;
        let client = client_id(line.at, *number)?;
        Ok(Step { group: line.group, user: line.sender, at: line.at, what: What::Send { client, content: line.content } })
    }

    /// False when a lane has given up.
    fn push(&mut self, step: Step) -> bool {
        self.window.push(step);
        self.window.len() < WINDOW_STEPS || self.flush()
    }

    /// Hands what is in the window to the lanes, each group's to one of them, so that it stays in order. False when one of them has given up.
    fn flush(&mut self) -> bool {
        let mut parts: Vec<Vec<Step>> = vec![Vec::new(); self.queues.len()];
        for step in std::mem::take(&mut self.window) {
            let lane = usize::try_from(step.group.get()).unwrap_or_default().checked_rem(parts.len()).unwrap_or_default();
            if let Some(part) = parts.get_mut(lane) {
                part.push(step);
            }
        }
        let chunks = |part: &Vec<Step>| part.chunks(CHUNK_STEPS).map(<[Step]>::to_vec).collect::<Vec<_>>();
        self.queues.iter().zip(&parts).all(|(queue, part)| chunks(part).into_iter().all(|chunk| queue.blocking_send(chunk).is_ok()))
    }
}

/// The id of a message of a log: the same whenever the log is read.
pub(crate) fn client_id(at: UnixMs, number: u32) -> Result<ClientId, String> {
    format!("import:{}:{number}", at.0).parse().map_err(|Invalid(rule)| rule.to_owned())
}

/// Two who tell the same listener of bad lines; of the members' file it hears the name too.
fn both(on_bad: OnBad, members: Option<&Path>) -> (OnBad, OnBad) {
    let first = Arc::new(Mutex::new(on_bad));
    let (second, name) = (Arc::clone(&first), members.map(|file| file.display().to_string()).unwrap_or_default());
    let tell = |listener: &Mutex<OnBad>, number: u64, why: &str| (listener.lock().unwrap_or_else(PoisonError::into_inner))(number, why);
    let of_messages = Box::new(move |number: u64, why: &str| tell(&first, number, why));
    (of_messages, Box::new(move |number, why| tell(&second, number, &format!("of {name} {why}"))))
}
