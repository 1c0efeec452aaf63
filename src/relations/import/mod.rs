//! Imports follows from a file, through the lanes, so that every number is right at every moment and running nodes see each change at once.
//!
//! ```text
//!   file ─ source.rs: decompress, lines ─ line.rs: parse ─▶ window ─ sorted by follower ─▶ a queue for each lane ─ pace.rs: batches ─▶ Lanes::submit
//!             (with actions: events.rs, the whole file in the order of time, in place of the window)
//! ```
//!
//! The steps of a pair go through one lane, and a lane has one batch under way: so what the file says of a pair is done in its order, and a batch
//! whose outcome is unknown is simply done again, as a step that finds things as it wants them changes nothing. For the same reason a whole import may be
//! run again, also after it was killed. What bounds its memory: the window, and a few chunks in each queue.

mod events;
mod line;
mod pace;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use self::events::Events;
use self::line::{Columns, Line};
use self::pace::Pace;
use self::source::{Found, Lines, MAX_LINE_BYTES};
use super::{Command, Imported, Step};
use crate::clock::UnixMs;
use crate::error::Error;
use crate::lane::{Job, LaneConfig, Lanes};

/// How many steps are sorted by follower at once: a file in no order is then done in batches of few followers.
const WINDOW_STEPS: usize = 200_000;

/// How many steps are handed to a lane at once, and how many such chunks wait for it.
const CHUNK_STEPS: usize = pace::MAX_STEPS;
const CHUNKS_AHEAD: usize = 2;

/// How many lanes an import uses where there may be several; see [`Reader::flush`] for how they keep out of each other's way.
const IMPORT_LANES: u32 = 2;

/// How long stores may fail to answer before the import ends.
const MAX_OUTAGE: Duration = Duration::from_secs(60);

/// The pause after a batch that failed.
const PAUSE: Duration = Duration::from_millis(250);

/// What is imported, and how.
#[derive(Debug, Clone)]
pub struct Import {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What is added to each id.
    pub id_offset: i64,
    /// How many each user may follow, where that is to be kept.
    pub limit: Option<i64>,
    /// How many lines with actions are held in memory at most.
    pub max_events: usize,
    /// Since when follows hold for which the file has no time.
    pub now: UnixMs,
}

/// How far an import is, for whoever watches it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that were read, compressed as they are.
    pub bytes: Arc<AtomicU64>,
    /// How many there are; 0 where that is not known.
    pub total_bytes: AtomicU64,
    /// Steps that are durable.
    pub steps: AtomicU64,
}

/// What became of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines that were read, but for the header and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// Those with an action that a later line about the same pair has overtaken.
    pub overtaken: u64,
    /// What the others did.
    pub done: Imported,
}

/// Who is told of each line that cannot be taken: its number, and why.
pub type OnBad = Box<dyn FnMut(u64, &str) + Send>;

/// The lanes that an import needs.
#[must_use]
pub fn lane_config() -> LaneConfig {
    let most = u32::try_from(CHUNK_STEPS).unwrap_or(u32::MAX);
    // Room for a batch whose caller has given up waiting, and for the same batch sent again.
    LaneConfig { lanes: IMPORT_LANES, lane_queue: 4 * most, lane_batch: most, write_timeout_ms: 30_000 }
}

impl Import {
    /// Runs it to its end over these lanes, which must be those of [`lane_config`].
    ///
    /// # Errors
    /// A sentence: why the file cannot be read (on), or that the stores do not answer. What was imported before stays.
    pub async fn run(self, lanes: &Lanes, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let (mut queues, mut workers) = (Vec::new(), Vec::new());
        for lane_key in 0..i64::from(IMPORT_LANES) {
            let (queue, chunks) = mpsc::channel(CHUNKS_AHEAD);
            queues.push(queue);
            let worker = Worker { lanes: lanes.clone(), lane_key, limit: self.limit, progress: Arc::clone(&progress) };
            workers.push(tokio::spawn(worker.work(chunks)));
        }
        let reader = Reader { import: self, progress, on_bad, queues, window: Vec::new(), report: Report::default() };
        let read = tokio::task::spawn_blocking(move || reader.read()).await.map_err(|_| "reading the file panicked".to_owned())?;
        let mut done = Imported::default();
        for worker in workers {
            done += worker.await.map_err(|_| "a part of the import panicked".to_owned())??;
        }
        read.map(|report| Report { done, ..report })
    }
}

/// Reads the file, in a thread of its own.
struct Reader {
    import: Import,
    progress: Arc<Progress>,
    on_bad: OnBad,
    queues: Vec<mpsc::Sender<Vec<Step>>>,
    window: Vec<Step>,
    report: Report,
}

impl Reader {
    fn read(mut self) -> Result<Report, String> {
        let name = match self.import.file.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => self.import.file.display().to_string(),
        };
        let opened = source::open(&self.import.file, Arc::clone(&self.progress.bytes));
        let (mut lines, length) = opened.map_err(|error| format!("cannot read {name}: {error}"))?;
        self.progress.total_bytes.store(length.unwrap_or_default(), Ordering::Relaxed);
        let cut = |error| format!("cannot read {name}: {error}");
        let columns = match lines.next().map_err(cut)? {
            None => return Err(format!("{name} is empty; its first line must name the columns, as in `follower,followee,timestamp`")),
            Some((_, Found::TooLong)) => return Err(format!("{name}: the first line has more than {MAX_LINE_BYTES} bytes; is it CSV?")),
            Some((_, Found::Line(header))) => Columns::from_header(header).map_err(|why| format!("{name}: {why}"))?,
        };
        if columns.has_actions() { self.read_events(&mut lines, &columns) } else { self.read_follows(&mut lines, &columns) }
            .map_err(|why| format!("{name}: {why}"))?;
        Ok(self.report)
    }

    /// A file without actions is taken as it is read.
    fn read_follows(&mut self, lines: &mut Lines, columns: &Columns) -> Result<(), String> {
        loop {
            let line = match self.next(lines, columns) {
                Ok(Some(line)) => line,
                end => {
                    self.flush();
                    return end.map(|_| ());
                }
            };
            self.window.push(Step { pair: line.pair, follow: Some(line.at.unwrap_or(self.import.now)) });
            if self.window.len() == WINDOW_STEPS && !self.flush() {
                return Ok(());
            }
        }
    }

    /// One with actions is read whole first.
    fn read_events(&mut self, lines: &mut Lines, columns: &Columns) -> Result<(), String> {
        let mut events = Events::default();
        while let Some(line) = self.next(lines, columns)? {
            if events.len() == self.import.max_events {
                return Err(format!(
                    "more than {} lines with actions, which are held in memory to put them in the order of time; nothing was changed. Allow more with \
                     --max-events, or split the file by time and import the parts in their order",
                    self.import.max_events
                ));
            }
            events.push(line);
        }
        (self.window, self.report.overtaken) = events.into_steps();
        self.flush();
        Ok(())
    }

    /// The next good line.
    fn next(&mut self, lines: &mut Lines, columns: &Columns) -> Result<Option<Line>, String> {
        loop {
            let after = self.report.lines;
            let found = lines
                .next()
                .map_err(|error| format!("cannot be read on after {after} lines: {error}; what came before them is imported"))?;
            let Some((number, found)) = found else { return Ok(None) };
            let parsed = match found {
                Found::Line(line) if line.trim_ascii().is_empty() => continue,
                Found::Line(line) => columns.parse(line, self.import.id_offset),
                Found::TooLong => Err(format!("has more than {MAX_LINE_BYTES} bytes")),
            };
            self.report.lines += 1;
            match parsed {
                Ok(line) => return Ok(Some(line)),
                Err(why) => {
                    self.report.bad += 1;
                    (self.on_bad)(number, &why);
                }
            }
        }
    }

    /// Hands what is in the window to the lanes. False when one of them has given up.
    ///
    /// Batches of this size would wait for each other: they have nearly every stripe of pairs in common. So the stripes are divided into as many classes as
    /// there are lanes, a chunk has steps of one class only, and the lanes take turns at the classes: first each at its own, then each at the next one's. Should one
    /// get ahead, it waits for the one that has its stripes, and they are in step again. The followers, whose rows a batch locks, are divided among
    /// the lanes.
    ///
    /// Within a lane the steps of a pair stay in order, but those of a follower do not; where a limit decides which of them are refused, there is one class.
    fn flush(&mut self) -> bool {
        let lanes = self.queues.len();
        let classes = if self.import.limit.is_some() { 1 } else { lanes };
        let part = |number: i64, of: usize| usize::try_from(number).unwrap_or_default().checked_rem(of).unwrap_or_default();
        let mut window = std::mem::take(&mut self.window);
        // Stable: the order of a pair's own steps, and of a follower's, is that of the file.
        window.sort_by_key(|step| step.pair.follower);
        let mut parts: Vec<Vec<Step>> = vec![Vec::new(); lanes * classes];
        for step in window {
            let (lane, class) = (part(step.pair.follower.get(), lanes), part(step.pair.stripe(), classes));
            if let Some(steps) = parts.get_mut(lane * classes + class) {
                steps.push(step);
            }
        }
        for from in (0..parts.iter().map(Vec::len).max().unwrap_or_default()).step_by(CHUNK_STEPS) {
            for turn in 0..classes {
                for (lane, queue) in self.queues.iter().enumerate() {
                    let steps = parts.get(lane * classes + (lane + turn) % classes).and_then(|steps| steps.get(from..)).unwrap_or_default();
                    let chunk = steps.get(..CHUNK_STEPS).unwrap_or(steps);
                    if !chunk.is_empty() && queue.blocking_send(chunk.to_vec()).is_err() {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// Takes the steps of one lane, batch after batch.
struct Worker {
    lanes: Lanes,
    lane_key: i64,
    limit: Option<i64>,
    progress: Arc<Progress>,
}

impl Worker {
    async fn work(self, mut chunks: mpsc::Receiver<Vec<Step>>) -> Result<Imported, String> {
        let (mut done, mut pace) = (Imported::default(), Pace::new());
        while let Some(chunk) = chunks.recv().await {
            let mut rest = chunk.as_slice();
            let mut last_answer = Instant::now();
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(pace.cut(rest));
                let began = Instant::now();
                match self.submit(batch).await {
                    Ok(imported) => {
                        done += imported;
                        pace.done(batch.len(), began.elapsed());
                        self.progress.steps.fetch_add(u64::try_from(batch.len()).unwrap_or_default(), Ordering::Relaxed);
                        (rest, last_answer) = (later, Instant::now());
                    }
                    Err(failure) if failure.may_pass && last_answer.elapsed() < MAX_OUTAGE => {
                        tracing::warn!(why = failure.why, "a batch failed; trying again");
                        pace.failed();
                        tokio::time::sleep(PAUSE).await;
                    }
                    Err(failure) => return Err(failure.sentence()),
                }
            }
        }
        Ok(done)
    }

    async fn submit(&self, steps: &[Step]) -> Result<Imported, Failed> {
        let command = Command::Import { steps: steps.to_vec(), limit: self.limit, lane_key: self.lane_key };
        match self.lanes.submit(Job { command: Arc::new(command), key: None }).await {
            Ok(answer) => serde_json::from_str(&answer.body).map_err(|error| Failed { may_pass: false, why: error.to_string() }),
            Err(Error::Problem(problem)) => {
                Err(Failed { may_pass: problem.code.status().as_u16() == 503, why: problem.detail.to_string() })
            }
            Err(Error::Fault(fault)) => Err(Failed { may_pass: fault.is_outage(), why: format!("{fault:?}") }),
        }
    }
}

/// Why a batch was not taken.
struct Failed {
    /// Whether it is to be tried again: a store is away, or the outcome unknown.
    may_pass: bool,
    why: String,
}

impl Failed {
    fn sentence(&self) -> String {
        if self.may_pass {
            return format!(
                "the stores have not taken a write for {} s ({}); what was imported before stays, and the import may be run again",
                MAX_OUTAGE.as_secs(),
                self.why
            );
        }
        format!("a batch was refused: {}. `headmark recount` may find the cause; what was imported before stays", self.why)
    }
}
