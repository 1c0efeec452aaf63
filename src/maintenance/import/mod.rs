//! What imports have in common: a file read line by line, and batches that go through the lanes at
//! the pace of the machine.
//!
//! ```text
//!   file ─ source.rs: decompress, CSV ─ field.rs: columns, values ─▶ the feature's own steps ─▶ a queue for each lane ─ pace.rs: batches ─▶ Lanes::submit
//! ```
//!
//! A lane has one batch under way, and a step that finds things as it wants them changes nothing:
//! so a batch whose outcome is unknown is done again, and a whole import may be run again, also
//! after it was killed. To add an import: a command in the feature, and here a [`Task`] that makes
//! it and a reader that hands it its steps.

pub mod directs;
mod field;
pub mod follows;
mod message_ids;
pub mod messages;
mod pace;
pub mod posts;
mod source;
mod window;

use std::ops::AddAssign;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use csv::ByteRecord;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::pace::Pace;
use self::source::{Found, Records};
use crate::base::error::Error;
use crate::base::ids::UserId;
use crate::engine::lanes::{Command, Job, LaneConfig, Lanes};

/// How many steps are sorted by user at once: a file in no order is then done in batches of few
/// users.
pub(crate) const WINDOW_STEPS: usize = 200_000;

/// How many steps are handed to a lane at once, and how many such chunks wait for it.
pub(crate) const CHUNK_STEPS: usize = pace::MAX_STEPS;
const CHUNKS_AHEAD: usize = 2;

/// How many lanes an import uses where there may be several.
const IMPORT_LANES: u32 = 2;

/// How long stores may fail to answer before the import ends.
const MAX_OUTAGE: Duration = Duration::from_secs(60);

/// How long steps may wait for others' writes that come first, before they are given up. Running
/// nodes do those at once, and within seconds where one died; where none runs, nobody does them.
const MAX_WAITING: Duration = Duration::from_secs(10);

/// The pause after a batch that failed, or of which a step must wait.
const PAUSE: Duration = Duration::from_millis(250);

/// How far an import is, for anyone who watches it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that were read, compressed as they are.
    pub bytes: Arc<AtomicU64>,
    /// How many there are; 0 where that is not known.
    pub total_bytes: AtomicU64,
    /// Steps that are durable.
    pub steps: AtomicU64,
}

/// Who is told of each line that cannot be taken: its number, and why.
pub type OnBad = Box<dyn FnMut(u64, &str) + Send>;

/// The lanes that an import needs.
#[must_use]
pub fn lane_config() -> LaneConfig {
    let most = u32::try_from(CHUNK_STEPS).unwrap_or(u32::MAX);
    // Room for a batch whose caller has given up waiting, and for the same batch sent again.
    LaneConfig {
        lanes: IMPORT_LANES,
        lane_queue: 4 * most,
        lane_large_queue: 0,
        lane_batch: most,
        lane_aside: most,
        lane_copies_mib: 0,
        lock_timeout_ms: 1500,
        write_timeout_ms: 30_000,
    }
}

/// What an import keeps of a file that breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The lines before.
    All,
    /// The lines before, and those of the other file up to the same time.
    Merged,
    /// Nothing: a later line could have changed what earlier ones mean.
    Nothing,
}

/// The good lines of a file, one after the other; the bad ones are told and counted.
pub(crate) struct Input {
    name: String,
    records: Records,
    on_bad: OnBad,
    /// Lines that were read, but for the header and empty ones.
    pub(crate) count: u64,
    /// Those that could not be taken.
    pub(crate) bad: u64,
    /// Why the file could not be read to its end.
    broken_off: Option<String>,
}

impl Input {
    /// Opens a file, or with `-` standard input.
    ///
    /// # Errors
    /// A sentence: why it cannot be read.
    pub(crate) fn open(file: &Path, progress: &Progress, on_bad: OnBad) -> Result<Self, String> {
        let name = match file.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => file.display().to_string(),
        };
        let opened = source::open(file, Arc::clone(&progress.bytes));
        let (records, length) = opened.map_err(|error| format!("cannot read {name}: {error}"))?;
        progress.total_bytes.store(length.unwrap_or_default(), Ordering::Relaxed);
        Ok(Self { name, records, on_bad, count: 0, bad: 0, broken_off: None })
    }

    /// Reads the first line, which names the columns, as `example` does.
    ///
    /// # Errors
    /// A sentence: why that is no such line.
    pub(crate) fn header<T>(&mut self, example: &str, parse: impl FnOnce(&ByteRecord) -> Result<T, String>) -> Result<T, String> {
        let name = &self.name;
        match self.records.next().map_err(|error| format!("cannot read {name}: {error}"))? {
            None => Err(format!("{name} is empty; its first line must name the columns, as in `{example}`")),
            Some((_, Found::Broken(why))) => Err(format!("{name}: the first line {why}; is it CSV?")),
            Some((_, Found::Record(header))) => parse(header).map_err(|why| format!("{name}: {why}")),
        }
    }

    /// The next good line; None at the end, or where the file breaks off ([`Input::broken_off`]).
    pub(crate) fn next<T>(&mut self, mut parse: impl FnMut(&ByteRecord) -> Result<T, String>) -> Option<T> {
        while self.broken_off.is_none() {
            let (number, parsed) = match self.records.next() {
                Ok(Some((number, Found::Record(record)))) => (number, parse(record)),
                Ok(Some((number, Found::Broken(why)))) => (number, Err(why.to_string())),
                Ok(None) => return None,
                Err(error) => {
                    self.broken_off = Some(error.to_string());
                    return None;
                }
            };
            self.count += 1;
            match parsed {
                Ok(line) => return Some(line),
                Err(why) => {
                    self.bad += 1;
                    (self.on_bad)(number, &why);
                }
            }
        }
        None
    }

    /// Where and why the file broke off, if it did, and what became of the lines before that.
    pub(crate) fn broken_off(&self, kept: Kept) -> Option<String> {
        let kept = match kept {
            Kept::All => "the lines before that are imported",
            Kept::Merged => "the lines of both files before that time are imported",
            Kept::Nothing => "nothing is imported",
        };
        let why = self.broken_off.as_ref()?;
        Some(format!("{} breaks off after {} lines ({why}); {kept}", self.name, self.count))
    }

    /// What is wrong with the file, with its name.
    pub(crate) fn complaint(&self, why: &str) -> String {
        format!("{}: {why}", self.name)
    }
}

/// What became of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report<D> {
    /// Lines that were read, but for the header and empty ones.
    pub lines: u64,
    /// Those that could not be taken.
    pub bad: u64,
    /// What the others did.
    pub done: D,
    /// Where and why the file broke off, if it did, and what of it is imported.
    pub broken_off: Option<String>,
}

/// What an import makes of its steps.
pub(crate) trait Task: Send + Sync + 'static {
    /// A step.
    type Step: Clone + Send + Sync;
    /// What became of many.
    type Done: AddAssign + Default + Send + 'static;

    /// The user whose row or stream a step locks.
    fn owner(step: &Self::Step) -> UserId;

    /// Steps as one write, which answers with a [`Task::Done`].
    fn command(&self, steps: Vec<Self::Step>, lane_key: i64) -> Arc<dyn Command>;

    /// The places of those steps of a batch that could not be done yet, in order: they are tried
    /// again, before what comes after them.
    fn waiting(_: &Self::Done) -> &[usize] {
        &[]
    }

    /// Counts so many of them as given up.
    fn give_up(_: &mut Self::Done, _steps: u64) {}
}

/// The lanes at work. Each takes chunks from its queue, batch after batch; those of a user stand
/// together in a chunk.
pub(crate) struct Workers<T: Task> {
    queues: Vec<mpsc::Sender<Vec<T::Step>>>,
    working: Vec<JoinHandle<Result<T::Done, String>>>,
}

impl<T: Task> Workers<T> {
    /// Starts them over these lanes, which must be those of [`lane_config`].
    pub(crate) fn start(task: T, lanes: &Lanes, progress: &Arc<Progress>) -> Self {
        let (task, mut queues, mut working) = (Arc::new(task), Vec::new(), Vec::new());
        for lane_key in 0..i64::from(IMPORT_LANES) {
            let (queue, chunks) = mpsc::channel(CHUNKS_AHEAD);
            queues.push(queue);
            let worker = Worker { task: Arc::clone(&task), lanes: lanes.clone(), lane_key, progress: Arc::clone(progress) };
            working.push(tokio::spawn(worker.work(chunks)));
        }
        Self { queues, working }
    }

    /// Where the chunks go, a queue for each lane. They end when these are dropped. A queue that
    /// does not take a chunk has given up.
    pub(crate) fn queues(&mut self) -> Vec<mpsc::Sender<Vec<T::Step>>> {
        std::mem::take(&mut self.queues)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// A sentence: why a lane gave up.
    pub(crate) async fn finish(self) -> Result<T::Done, String> {
        drop(self.queues);
        let mut done = T::Done::default();
        for worker in self.working {
            done += worker.await.map_err(|_| "a part of the import panicked".to_owned())??;
        }
        Ok(done)
    }
}

/// Takes the steps of one lane, batch after batch.
struct Worker<T> {
    task: Arc<T>,
    lanes: Lanes,
    lane_key: i64,
    progress: Arc<Progress>,
}

impl<T: Task> Worker<T> {
    async fn work(self, mut chunks: mpsc::Receiver<Vec<T::Step>>) -> Result<T::Done, String> {
        let (mut done, mut pace, mut patience) = (T::Done::default(), Pace::new(), Patience::default());
        while let Some(mut rest) = chunks.recv().await {
            let mut last_answer = Instant::now();
            while !rest.is_empty() {
                let cut = pace.cut(&rest, T::owner);
                let batch = rest.get(..cut).unwrap_or_default();
                let began = Instant::now();
                match self.submit(batch).await {
                    Ok(imported) => {
                        let waits = patience.waits(T::waiting(&imported), cut, Instant::now());
                        let waiting: Vec<T::Step> = T::waiting(&imported).iter().filter_map(|at| batch.get(*at).cloned()).collect();
                        done += imported;
                        pace.done(cut, began.elapsed());
                        let again = if waits {
                            waiting
                        } else {
                            T::give_up(&mut done, count(waiting.len()));
                            Vec::new()
                        };
                        self.progress.steps.fetch_add(count(cut - again.len()), Ordering::Relaxed);
                        if !again.is_empty() {
                            tokio::time::sleep(PAUSE).await;
                        }
                        rest.splice(..cut, again);
                        last_answer = Instant::now();
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

    async fn submit(&self, steps: &[T::Step]) -> Result<T::Done, Failed> {
        let command = self.task.command(steps.to_vec(), self.lane_key);
        match self.lanes.submit(Job { command, key: None }).await {
            Ok(answer) => answer.value().map_err(|error| Failed { may_pass: false, why: format!("{error:?}") }),
            Err(Error::Problem(problem)) => {
                Err(Failed { may_pass: problem.code.status().as_u16() == 503, why: problem.detail.to_string() })
            }
            Err(Error::Fault(fault)) => Err(Failed { may_pass: fault.may_pass(), why: format!("{fault:?}") }),
        }
    }
}

fn count(steps: usize) -> u64 {
    u64::try_from(steps).unwrap_or(u64::MAX)
}

/// How long steps have waited, one batch after the other, without any of them being done. Once some were given up, no
/// more are waited for: nobody seems to do what they wait for.
#[derive(Debug, Default)]
struct Patience {
    since: Option<Instant>,
    /// How many of the next steps have waited before.
    waited: usize,
    lost: bool,
}

impl Patience {
    /// Whether those of the first `tried` steps are to be waited for that wait; they are next then.
    fn waits(&mut self, waiting: &[usize], tried: usize, now: Instant) -> bool {
        let still = waiting.iter().filter(|at| **at < self.waited).count();
        if waiting.is_empty() || still < self.waited.min(tried) {
            // What a step waited for is done.
            self.since = None;
        }
        if !waiting.is_empty() {
            self.lost |= now - *self.since.get_or_insert(now) > MAX_WAITING;
        }
        let again = if self.lost { 0 } else { waiting.len() };
        self.waited = again + self.waited.saturating_sub(tried);
        again > 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_waited_for_while_any_of_them_is_done() {
        let (mut patience, began) = (Patience::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(patience.waits(&[1, 3], 5, at(0)));
        assert!(patience.waits(&[0, 1, 4], 5, at(9)), "two of before, and one more");
        assert!(patience.waits(&[0, 2, 3], 5, at(18)), "one of before is done");
        assert!(patience.waits(&[0, 1], 2, at(19)), "the third was not tried");
        assert!(patience.waits(&[0, 1, 2, 4], 5, at(27)));
        assert!(!patience.waits(&[0, 1, 2, 3], 5, at(29)), "none is done for more than ten seconds");
        assert!(!patience.waits(&[0], 5, at(30)), "nobody seems to do them");
    }

    #[test]
    fn a_batch_in_which_nothing_waits_begins_the_time_again() {
        let (mut patience, began) = (Patience::default(), Instant::now());
        assert!(patience.waits(&[0], 5, began));
        assert!(!patience.waits(&[], 5, began + Duration::from_secs(1)));
        assert!(patience.waits(&[2], 5, began + Duration::from_secs(60)));
    }
}
