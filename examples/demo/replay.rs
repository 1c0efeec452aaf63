//! The load: writers that replay the log in order, their readers who poll and mark as read in
//! between, and tasks that only poll.

use std::collections::HashMap;
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use crate::Args;
use crate::Result;
use crate::client::{Client, Polled};
use crate::data::{Log, Message};
use crate::inbox::{Differences, Inbox, Seen, View};

/// Longest latency that is told apart, in microseconds; beyond it counts as this.
const MAX_LATENCY_US: u64 = 300_000_000;
/// How often a reader with a tag asks with it; the rest ask as if they had just started.
const CONDITIONAL: f64 = 0.75;
/// How often a reader who saw unread messages marks them as read.
const MARKING: f64 = 0.4;
/// How often a mark is sent together with the next message instead of before it.
const RACING: f64 = 0.5;
/// A reader polls after every k-th message, k from 1 to this.
const MAX_POLL_EVERY: u32 = 6;

/// Everything the tasks share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) client: Client,
    /// In order of their ids, so the position is found by search.
    pub(crate) inboxes: Vec<Inbox>,
    /// Found in the answers while the load runs.
    pub(crate) differences: Differences,
    /// Found at the end, between the server and the file.
    pub(crate) final_differences: Differences,
    writes: AtomicU64,
    polls: AtomicU64,
    over: AtomicBool,
}

/// What one task did, or all together.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) writes: Histogram<u64>,
    pub(crate) polls: Histogram<u64>,
    pub(crate) marks: Histogram<u64>,
    pub(crate) not_modified: u64,
    pub(crate) degraded: u64,
    pub(crate) racing: u64,
    pub(crate) elapsed: Duration,
}

/// What a poll brought.
pub(crate) struct Outcome {
    /// None when a store was away and the answer only the last known one.
    pub(crate) view: Option<View>,
    pub(crate) total: Option<i64>,
    not_modified: bool,
    latency: Duration,
}

/// How one inbox's owner reads: decided by the seed and the id alone, not by who is faster.
struct Reader {
    rng: StdRng,
    every: u32,
    messages: u32,
    held: Option<i64>,
}

impl Stage {
    pub(crate) fn new(client: Client, log: &Log, offset: u64) -> Result<Self> {
        let inbox = |channel: u64| Ok(Inbox::new(shifted(channel, offset)?, channel));
        Ok(Self {
            client,
            inboxes: log.channels().into_iter().map(inbox).collect::<Result<_>>()?,
            differences: Differences::default(),
            final_differences: Differences::default(),
            writes: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    pub(crate) fn difference_count(&self) -> u64 {
        self.differences.count() + self.final_differences.count()
    }

    fn inbox(&self, channel: u64) -> Result<&Inbox> {
        let position = self.inboxes.binary_search_by_key(&channel, |inbox| inbox.channel);
        position.ok().and_then(|position| self.inboxes.get(position)).ok_or_else(|| format!("no inbox {channel}").into())
    }

    /// Sends a message and checks the answer: the n-th message of an inbox makes its head n.
    async fn write(&self, inbox: &Inbox, row: u64) -> Result<Duration> {
        let (floor, nth) = (inbox.floor(), inbox.sending());
        let begun = Instant::now();
        let view = self.client.increment(inbox.user, row).await?;
        let latency = begun.elapsed();
        inbox.was_sent(nth);
        if view.head != nth {
            self.differences.add(inbox, "increment", &format!("message {nth} got head {}", view.head));
        } else if let Err(what) = inbox.judge(floor, view) {
            self.differences.add(inbox, "increment", &what);
        }
        self.writes.fetch_add(1, Relaxed);
        Ok(latency)
    }

    async fn mark(&self, inbox: &Inbox, up_to: i64) -> Result<Duration> {
        inbox.marking(up_to);
        let floor = inbox.floor();
        let begun = Instant::now();
        let view = self.client.reset(inbox.user, up_to).await?;
        let latency = begun.elapsed();
        inbox.was_marked(up_to);
        if view.head - view.unread < up_to {
            self.differences.add(inbox, "reset", &format!("unread {} of {} after a mark at {up_to}", view.unread, view.head));
        } else if let Err(what) = inbox.judge(floor, view) {
            self.differences.add(inbox, "reset", &what);
        }
        Ok(latency)
    }

    /// Polls and checks the answer. A 304 says that what was seen still holds, so that is what must
    /// be right then.
    pub(crate) async fn poll(&self, inbox: &Inbox, conditional: bool) -> Result<Outcome> {
        let seen = if conditional { inbox.seen() } else { None };
        let floor = inbox.floor();
        let begun = Instant::now();
        let polled = self.client.poll(inbox.user, seen.as_ref().map(|seen| seen.etag.as_str())).await?;
        let latency = begun.elapsed();
        self.polls.fetch_add(1, Relaxed);
        let (view, total, not_modified) = match (polled, seen) {
            (Polled::Same, Some(seen)) => (seen.view, None, true),
            (Polled::Same, None) => return Err("304 to a poll that had no tag".into()),
            (Polled::New { summary, .. }, _) if summary.degraded => {
                return Ok(Outcome { view: None, total: None, not_modified: false, latency });
            }
            (Polled::New { summary, etag }, _) => {
                let view = summary.view(self.client.badge());
                match etag {
                    Some(etag) => inbox.remember(Seen { view, etag }),
                    None => self.differences.add(inbox, "poll", "no ETag"),
                }
                (view, summary.total, false)
            }
        };
        if let Err(what) = inbox.judge(floor, view) {
            self.differences.add(inbox, if not_modified { "poll (304)" } else { "poll" }, &what);
        }
        Ok(Outcome { view: Some(view), total, not_modified, latency })
    }
}

impl Tally {
    fn new() -> Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, MAX_LATENCY_US, 3);
        Ok(Self {
            writes: histogram()?,
            polls: histogram()?,
            marks: histogram()?,
            not_modified: 0,
            degraded: 0,
            racing: 0,
            elapsed: Duration::ZERO,
        })
    }

    fn polled(&mut self, outcome: &Outcome) {
        note(&mut self.polls, outcome.latency);
        self.not_modified += u64::from(outcome.not_modified);
        self.degraded += u64::from(outcome.view.is_none());
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.writes.add(&other.writes)?;
        self.polls.add(&other.polls)?;
        self.marks.add(&other.marks)?;
        self.not_modified += other.not_modified;
        self.degraded += other.degraded;
        self.racing += other.racing;
        Ok(())
    }
}

fn note(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(MAX_LATENCY_US));
}

impl Reader {
    fn new(seed: u64, channel: u64) -> Self {
        // An odd multiplier keeps neighbouring ids from having neighbouring seeds.
        let mut rng = StdRng::seed_from_u64(seed ^ channel.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let every = rng.random_range(1..=MAX_POLL_EVERY);
        Self { rng, every, messages: 0, held: None }
    }

    fn polls_now(&mut self) -> bool {
        self.messages += 1;
        self.messages.is_multiple_of(self.every)
    }
}

/// The id on the server of an id in the file.
pub(crate) fn shifted(channel: u64, offset: u64) -> Result<u64> {
    let user = channel.checked_add(offset).filter(|user| i64::try_from(*user).is_ok());
    user.ok_or_else(|| format!("--id-offset {offset} makes an id out of {channel} that is too large").into())
}

/// Deals the inboxes out, the largest first and always to the writer with the least, so that all
/// writers end at about the same time.
fn deal(log: &Log, writers: usize) -> Vec<Vec<Message>> {
    let mut sizes: HashMap<u64, usize> = HashMap::new();
    for message in &log.messages {
        *sizes.entry(message.channel).or_default() += 1;
    }
    let mut inboxes: Vec<(u64, usize)> = sizes.into_iter().collect();
    inboxes.sort_unstable_by_key(|(channel, size)| (std::cmp::Reverse(*size), *channel));
    let mut loads = vec![0_usize; writers];
    let mut writer_of: HashMap<u64, usize> = HashMap::new();
    for (channel, size) in inboxes {
        if let Some((writer, load)) = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load) {
            *load += size;
            writer_of.insert(channel, writer);
        }
    }
    let mut shares: Vec<Vec<Message>> = loads.iter().map(|load| Vec::with_capacity(*load)).collect();
    for message in &log.messages {
        if let Some(share) = writer_of.get(&message.channel).and_then(|writer| shares.get_mut(*writer)) {
            share.push(*message);
        }
    }
    shares
}

/// Replays the whole log and returns what was measured. The first request that fails for good ends
/// it all.
pub(crate) async fn run(stage: &Arc<Stage>, log: &Log, args: &Args) -> Result<Tally> {
    let mut writers = JoinSet::new();
    let mut others = JoinSet::new();
    let begun = Instant::now();
    for share in deal(log, usize::from(args.concurrency)) {
        writers.spawn(play(Arc::clone(stage), share, args.seed));
    }
    let channels: Arc<Vec<u64>> = Arc::new(log.messages.iter().map(|message| message.channel).collect());
    for poller in 0..args.pollers {
        others.spawn(watch(Arc::clone(stage), Arc::clone(&channels), args.seed.wrapping_add(u64::from(poller))));
    }
    if std::io::stderr().is_terminal() {
        others.spawn(progress(Arc::clone(stage), log.messages.len()));
    }
    let mut tally = Tally::new()?;
    while let Some(share) = writers.join_next().await {
        tally.add(&share??)?;
    }
    tally.elapsed = begun.elapsed();
    stage.over.store(true, Relaxed);
    while let Some(polled) = others.join_next().await {
        tally.add(&polled??)?;
    }
    Ok(tally)
}

/// One writer: its inboxes' messages in order of time, and what their owners do after them.
async fn play(stage: Arc<Stage>, share: Vec<Message>, seed: u64) -> Result<Tally> {
    let mut tally = Tally::new()?;
    let mut readers: HashMap<u64, Reader> = HashMap::new();
    for message in share {
        let inbox = stage.inbox(message.channel)?;
        let reader = readers.entry(message.channel).or_insert_with(|| Reader::new(seed, message.channel));
        if let Some(up_to) = reader.held.take() {
            // At the same moment: the mark must clear what was shown, and the message must stay
            // unread.
            let (written, marked) = tokio::join!(stage.write(inbox, message.row), stage.mark(inbox, up_to));
            note(&mut tally.writes, written?);
            note(&mut tally.marks, marked?);
            tally.racing += 1;
        } else {
            note(&mut tally.writes, stage.write(inbox, message.row).await?);
        }
        if reader.polls_now() {
            read(&stage, inbox, reader, &mut tally).await?;
        }
    }
    Ok(tally)
}

/// The owner of an inbox looks, and perhaps marks as read what was there.
async fn read(stage: &Stage, inbox: &Inbox, reader: &mut Reader, tally: &mut Tally) -> Result<()> {
    // All drawn before the answer is there, so that answers do not change what later draws give.
    let (conditional, marking, racing) =
        (reader.rng.random_bool(CONDITIONAL), reader.rng.random_bool(MARKING), reader.rng.random_bool(RACING));
    let outcome = stage.poll(inbox, conditional).await?;
    tally.polled(&outcome);
    match outcome.view {
        Some(view) if marking && racing => reader.held = Some(view.head),
        Some(view) if marking => note(&mut tally.marks, stage.mark(inbox, view.head).await?),
        Some(_) | None => {}
    }
    Ok(())
}

/// Polls, busy inboxes more often, until the writers are done.
async fn watch(stage: Arc<Stage>, channels: Arc<Vec<u64>>, seed: u64) -> Result<Tally> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tally = Tally::new()?;
    while !stage.over.load(Relaxed) {
        let Some(channel) = channels.get(rng.random_range(0..channels.len())) else { break };
        let outcome = stage.poll(stage.inbox(*channel)?, rng.random_bool(CONDITIONAL)).await?;
        tally.polled(&outcome);
    }
    Ok(tally)
}

/// One line on the terminal, rewritten until the writers are done and then wiped.
async fn progress(stage: Arc<Stage>, messages: usize) -> Result<Tally> {
    while !stage.over.load(Relaxed) {
        let (writes, polls) = (stage.writes.load(Relaxed), stage.polls.load(Relaxed));
        eprint!("\r\x1b[2K{writes} of {messages} messages, {polls} polls, {} differences", stage.differences.count());
        std::io::stderr().flush()?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprint!("\r\x1b[2K");
    std::io::stderr().flush()?;
    Tally::new()
}
