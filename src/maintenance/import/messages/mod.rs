//! Imports chat logs, through the lanes: each channel becomes a group, its senders members.
//!
//! ```text
//!   messages ─┐
//!             ├─ merged by time, events before messages of the same second ─▶ steps, a lane for each group ─▶ import: batches
//!   members  ─┘
//! ```
//!
//! Both files must be in the order of time, as logs are. Within a second, or a minute where times
//! are to the minute, lines keep the order of their file. A log that has joins and leaves between
//! its messages (column `event`) is taken in that order alone.
//!
//! A whole import may be run again, also with a log that was repaired or has grown. The rules are
//! in `src/features/groups/import/`; `channels.rs` says which group a channel is.

mod channels;
mod held;
mod import;
pub(crate) mod lines;
mod lookup;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::channels::Channels;
use self::held::Admitted;
pub use self::import::LogImport;
use self::lines::{Entry, EventColumns, Line, MessageColumns};
use super::message_ids::{MessageIds, digest};
use super::window::Window;
use super::{CHUNK_STEPS, Input, Kept, OnBad, Progress, Task, Workers};
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::Db;
use crate::engine::lanes::{self, Lanes};
use crate::features::groups::import::{self as log, ImportedLog, LogStep, What, second};

/// How many steps are handed to the lanes at once.
const WINDOW_STEPS: usize = 20_000;

/// How many joins and leaves of one user in one second are taken.
const MAX_EVENTS_A_SECOND: u32 = 1000;

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines that were read, of both files, but for headers and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// The group of each channel that has a name, in the order in which they came; false where it
    /// is another log's.
    pub named: Vec<(String, GroupId, bool)>,
    /// What the others did.
    pub done: ImportedLog,
    /// Where and why a file broke off, if one did, and what of it is imported.
    pub broken_off: Option<String>,
}

/// The steps of chat logs.
struct Messages {
    merge: bool,
}

impl Task for Messages {
    type Step = LogStep;
    type Done = ImportedLog;

    fn owner(step: &LogStep) -> UserId {
        step.user
    }

    fn command(&self, steps: Vec<LogStep>, lane_key: i64) -> Arc<dyn lanes::Command> {
        Arc::new(log::LogCommand { steps, lane_key, merge: self.merge })
    }
}

impl LogImport {
    /// Runs it to its end over these lanes, which must be those of [`super::lane_config`].
    ///
    /// # Errors
    /// A sentence: why a file cannot be read, or that the stores do not answer. What was imported
    /// before stays.
    pub async fn run(self, lanes: &Lanes, db: Db, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let mut workers = Workers::start(Messages { merge: self.merge }, lanes, &progress);
        let (queues, channels) = (workers.queues(), Channels::new(&self, db, Handle::current()));
        let read = tokio::task::spawn_blocking(move || {
            let (of_messages, of_members) = both(on_bad, self.members.as_deref());
            let events = self.members.as_deref().map(|file| Input::open(file, &Progress::default(), of_members)).transpose()?;
            let input = Input::open(&self.file, &progress, of_messages)?;
            Reader::new(self.id_offset, input, events, channels, queues).read()
        });
        let read = read.await.map_err(|_| "reading the file panicked".to_owned())?;
        let mut done = workers.finish().await?;
        read.map(|report| {
            done += report.done;
            Report { done, ..report }
        })
    }
}

/// Reads the files, in a thread of its own.
struct Reader {
    id_offset: i64,
    input: Input,
    events: Option<Input>,
    channels: RefCell<Channels>,
    queues: Vec<mpsc::Sender<Vec<LogStep>>>,
    window: Window<LogStep>,
    ids: MessageIds<(GroupId, UserId)>,
    /// The joins and leaves of the present second, by group and user: what stands for them, and how
    /// many there are.
    second: i64,
    seen: HashMap<(GroupId, UserId), (u64, u32)>,
    known: u64,
    refused: u64,
}

impl Reader {
    fn new(id_offset: i64, input: Input, events: Option<Input>, channels: Channels, queues: Vec<mpsc::Sender<Vec<LogStep>>>) -> Self {
        let (channels, window, ids) = (RefCell::new(channels), Window::new(WINDOW_STEPS), MessageIds::new());
        Self { id_offset, input, events, channels, queues, window, ids, second: 0, seen: HashMap::new(), known: 0, refused: 0 }
    }

    fn read(mut self) -> Result<Report, String> {
        let columns = self.input.header(lines::EXAMPLE, MessageColumns::from_header)?;
        let event_columns = match &mut self.events {
            Some(events) => Some(events.header(lines::EVENT_EXAMPLE, EventColumns::from_header)?),
            None => None,
        };
        let mut last = (UnixMs(0), UnixMs(0));
        let mut event = self.next_event(event_columns.as_ref(), &mut last.1)?;
        while let Some(line) = self.next_line(&columns, &mut last.0)? {
            // What happened in the same second comes before what was said in it.
            while let Some(earlier) = event.take_if(|event| second(event.at) <= second(line.at)) {
                self.push(earlier)?;
                event = self.next_event(event_columns.as_ref(), &mut last.1)?;
            }
            // Who was a member then is not known where the file of members breaks off.
            if (event.is_none() && self.members_break_off()) || !self.push(line)? {
                break;
            }
        }
        let is_whole = self.input.broken_off(Kept::All).is_none();
        while let Some(later) = event.take_if(|_| is_whole) {
            self.push(later)?;
            event = self.next_event(event_columns.as_ref(), &mut last.1)?;
        }
        let held = self.channels.borrow().held();
        for group in held {
            let of_group = self.channels.borrow_mut().finish(group)?;
            self.take(of_group);
        }
        self.flush();
        Ok(self.report())
    }

    fn members_break_off(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.broken_off(Kept::Merged).is_some())
    }

    fn report(self) -> Report {
        let events = self.events.as_ref().map_or((0, 0), |events| (events.count, events.bad));
        let kept = if self.events.is_some() { Kept::Merged } else { Kept::All };
        Report {
            lines: self.input.count + events.0,
            bad: self.input.bad + events.1,
            named: self.channels.borrow().named(),
            done: ImportedLog { known: self.known, refused: self.refused, ..ImportedLog::default() },
            broken_off: self.input.broken_off(kept).or_else(|| self.events.as_ref()?.broken_off(Kept::Merged)),
        }
    }

    fn next_line(&mut self, columns: &MessageColumns, last: &mut UnixMs) -> Result<Option<Line>, String> {
        let (offset, channels, before) = (self.id_offset, &self.channels, *last);
        let line = self.input.next(|line| columns.parse(line, offset, before, |channel| channels.borrow_mut().group(channel)));
        self.looked_up(line, last)
    }

    fn next_event(&mut self, columns: Option<&EventColumns>, last: &mut UnixMs) -> Result<Option<Line>, String> {
        let (Some(events), Some(columns)) = (&mut self.events, columns) else { return Ok(None) };
        let (offset, channels, before) = (self.id_offset, &self.channels, *last);
        let event = events.next(|line| columns.parse(line, offset, before, |channel| channels.borrow_mut().group(channel)));
        self.looked_up(event, last)
    }

    fn looked_up(&mut self, line: Option<Line>, last: &mut UnixMs) -> Result<Option<Line>, String> {
        *last = line.as_ref().map_or(*last, |line| line.at);
        self.channels.borrow_mut().failure().map_or(Ok(line), Err)
    }

    /// Hands a line on. False when a lane has given up.
    fn push(&mut self, line: Line) -> Result<bool, String> {
        let Some(step) = self.step(line)? else {
            self.refused += 1;
            return Ok(true);
        };
        let admitted = self.channels.borrow_mut().admit(step)?;
        Ok(self.take(admitted))
    }

    /// False when a lane has given up.
    fn take(&mut self, admitted: Admitted) -> bool {
        self.known += admitted.known;
        self.refused += admitted.refused;
        admitted.steps.into_iter().all(|step| {
            let bytes = step.size_bytes();
            !self.window.push(step, bytes) || self.flush()
        })
    }

    /// A line as a step; None where the user has too many joins and leaves in that second.
    fn step(&mut self, Line { at, group, user, entry }: Line) -> Result<Option<LogStep>, String> {
        if second(at) != self.second {
            self.second = second(at);
            self.seen.clear();
        }
        let what = match entry {
            Entry::Join => What::Join,
            Entry::Leave => What::Leave,
            Entry::Message(content) => What::Send { client: self.ids.next((group, user), at, &content)?, content },
        };
        let mut events = self.seen.get(&(group, user)).map_or(0, |(events, _)| *events);
        if !matches!(what, What::Send { .. }) {
            let (seen, count) = self.seen.entry((group, user)).or_default();
            *count += 1;
            if *count > MAX_EVENTS_A_SECOND {
                return Ok(None);
            }
            let joins = [u8::from(what == What::Join)];
            *seen = digest(&[&seen.to_be_bytes(), &self.second.to_be_bytes(), &joins]);
            events = *seen;
        }
        let channel = self.channels.borrow().name(group);
        Ok(Some(LogStep { group, channel, user, at, events, what }))
    }

    /// Hands what is in the window to the lanes, each group's to one of them, so that it stays in
    /// order. False when one of them has given up.
    fn flush(&mut self) -> bool {
        let mut parts: Vec<Vec<LogStep>> = vec![Vec::new(); self.queues.len()];
        for step in self.window.take() {
            let lane = usize::try_from(step.group.get()).unwrap_or_default().checked_rem(parts.len()).unwrap_or_default();
            if let Some(part) = parts.get_mut(lane) {
                part.push(step);
            }
        }
        let chunks = |part: &Vec<LogStep>| part.chunks(CHUNK_STEPS).map(<[LogStep]>::to_vec).collect::<Vec<_>>();
        self.queues.iter().zip(&parts).all(|(queue, part)| chunks(part).into_iter().all(|chunk| queue.blocking_send(chunk).is_ok()))
    }
}

/// Two who tell the same listener of bad lines; of the members' file it hears the name too.
fn both(on_bad: OnBad, members: Option<&Path>) -> (OnBad, OnBad) {
    let first = Arc::new(Mutex::new(on_bad));
    let (second, name) = (Arc::clone(&first), members.map(|file| file.display().to_string()).unwrap_or_default());
    let tell = |listener: &Mutex<OnBad>, number: u64, why: &str| (listener.lock().unwrap_or_else(PoisonError::into_inner))(number, why);
    let of_messages = Box::new(move |number: u64, why: &str| tell(&first, number, why));
    (of_messages, Box::new(move |number, why| tell(&second, number, &format!("of {name} {why}"))))
}
