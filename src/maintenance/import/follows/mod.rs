//! Imports follows from a file, through the lanes, so that every number is right at every moment
//! and running nodes see each change at once.
//!
//! ```text
//!   import: file, lines ─ line.rs: parse ─▶ window ─ sorted by follower ─▶ import: a queue for each lane, batches
//!             (with actions: events.rs, the whole file in the order of time, instead of the window)
//! ```
//!
//! The steps of a pair go through one lane, and a lane has one batch under way: so what the file
//! says of a pair is done in its order, and a batch whose outcome is unknown is simply done again,
//! as a step that finds things as it wants them changes nothing. For the same reason a whole import
//! may be run again, also after it was killed. A step of a pair with asynchronous writes that are
//! accepted and not done comes after them, as every write does: it is tried again until running
//! nodes have done those, for a while; what must still wait then is counted, and not done. What
//! bounds its memory: the window, and a few chunks in each queue.

mod events;
mod line;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use self::events::Events;
use self::line::{Columns, EXAMPLE, Line};
use super::{CHUNK_STEPS, Input, Kept, OnBad, Progress, Task, WINDOW_STEPS, Workers};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::engine::lanes::{self, Lanes};
use crate::features::relations::{Badges, FollowStep, ImportedFollows, RelationCommand};

#[derive(Debug, Clone)]
pub struct FollowImport {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What is added to each id.
    pub id_offset: i64,
    /// How many each user may follow, where that is to be kept.
    pub limit: Option<i64>,
    /// The badges that followers and requests raise: an import raises none, but the end of one takes
    /// an unread one back.
    pub badges: Badges,
    /// Whether readers of events are told of each follow.
    pub events: bool,
    /// How many lines with actions are held in memory at most.
    pub max_events: usize,
    /// Since when follows hold for which the file has no time.
    pub now: UnixMs,
}

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines that were read, but for the header and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// Those with an action that a later line about the same pair has overtaken.
    pub overtaken: u64,
    /// What the others did.
    pub done: ImportedFollows,
    /// Where and why the file broke off, if it did, and what of it is imported.
    pub broken_off: Option<String>,
}

/// Follows within a limit, where there is one.
struct Follows {
    limit: Option<i64>,
    badges: Badges,
    events: bool,
}

impl Task for Follows {
    type Step = FollowStep;
    type Done = ImportedFollows;

    fn owner(step: &FollowStep) -> UserId {
        step.pair.follower
    }

    fn command(&self, steps: Vec<FollowStep>, lane_key: i64) -> Arc<dyn lanes::Command> {
        Arc::new(RelationCommand::Import { steps, limit: self.limit, badges: self.badges.clone(), events: self.events, lane_key })
    }

    fn waiting(done: &ImportedFollows) -> &[usize] {
        &done.waiting
    }

    fn give_up(done: &mut ImportedFollows, steps: u64) {
        done.pending += steps;
    }
}

impl FollowImport {
    /// Runs it to its end over these lanes, which must be those of [`super::lane_config`].
    ///
    /// # Errors
    /// A sentence: why the file cannot be read (on), or that the stores do not answer. What was
    /// imported before stays.
    pub async fn run(self, lanes: &Lanes, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let mut workers = Workers::start(Follows { limit: self.limit, badges: self.badges.clone(), events: self.events }, lanes, &progress);
        let queues = workers.queues();
        let read = tokio::task::spawn_blocking(move || {
            let input = Input::open(&self.file, &progress, on_bad)?;
            Reader { import: self, input, queues, window: Vec::new(), overtaken: 0 }.read()
        });
        let read = read.await.map_err(|_| "reading the file panicked".to_owned())?;
        let done = workers.finish().await?;
        read.map(|report| Report { done, ..report })
    }
}

/// Reads the file, in a thread of its own.
struct Reader {
    import: FollowImport,
    input: Input,
    queues: Vec<mpsc::Sender<Vec<FollowStep>>>,
    window: Vec<FollowStep>,
    overtaken: u64,
}

impl Reader {
    fn read(mut self) -> Result<Report, String> {
        let columns = self.input.header(EXAMPLE, Columns::from_header)?;
        let kept = if columns.has_actions() {
            self.read_events(&columns)?;
            Kept::Nothing
        } else {
            self.read_follows(&columns);
            Kept::All
        };
        Ok(Report {
            lines: self.input.count,
            bad: self.input.bad,
            overtaken: self.overtaken,
            done: ImportedFollows::default(),
            broken_off: self.input.broken_off(kept),
        })
    }

    /// A file without actions is taken as it is read.
    fn read_follows(&mut self, columns: &Columns) {
        while let Some(line) = self.next(columns) {
            let follow = Some((line.at.unwrap_or(self.import.now), line.options));
            self.window.push(FollowStep { pair: line.pair, follow, requested: line.requested });
            if self.window.len() == WINDOW_STEPS && !self.flush() {
                return;
            }
        }
        self.flush();
    }

    /// One with actions is read whole first. Where it breaks off nothing is written: a line that is
    /// missing could have overtaken others.
    fn read_events(&mut self, columns: &Columns) -> Result<(), String> {
        let mut events = Events::default();
        while let Some(line) = self.next(columns) {
            if events.len() == self.import.max_events {
                return Err(self.input.complaint(&format!(
                    "more than {} lines with actions, which are held in memory to put them in the order of time; nothing was changed. Allow more with \
                     --max-events, or split the file by time and import the parts in their order",
                    self.import.max_events
                )));
            }
            events.push(line);
        }
        if self.input.broken_off(Kept::Nothing).is_none() {
            (self.window, self.overtaken) = events.into_steps();
            self.flush();
        }
        Ok(())
    }

    fn next(&mut self, columns: &Columns) -> Option<Line> {
        let id_offset = self.import.id_offset;
        self.input.next(|line| columns.parse(line, id_offset))
    }

    /// Hands what is in the window to the lanes. False when one of them has given up.
    ///
    /// The followers, whose rows a batch locks, are divided among the lanes, and the steps of one stand
    /// together: each row is written once. Batches of this size have nearly every pair lock in common,
    /// so one writes while the other lane begins and ends its cache write, and makes its rows.
    fn flush(&mut self) -> bool {
        let lanes = i64::try_from(self.queues.len()).unwrap_or(1);
        let mut window = std::mem::take(&mut self.window);
        // Stable: the order of a pair's own steps, and of a follower's, is that of the file.
        window.sort_by_key(|step| step.pair.follower);
        let mut parts: Vec<Vec<FollowStep>> = vec![Vec::new(); self.queues.len()];
        for step in window {
            let lane = usize::try_from(step.pair.follower.get() % lanes).unwrap_or_default();
            if let Some(steps) = parts.get_mut(lane) {
                steps.push(step);
            }
        }
        let most = parts.iter().map(Vec::len).max().unwrap_or_default();
        for from in (0..most).step_by(CHUNK_STEPS) {
            for (steps, queue) in parts.iter().zip(&self.queues) {
                let steps = steps.get(from..).unwrap_or_default();
                let chunk = steps.get(..CHUNK_STEPS).unwrap_or(steps);
                if !chunk.is_empty() && queue.blocking_send(chunk.to_vec()).is_err() {
                    return false;
                }
            }
        }
        true
    }
}
