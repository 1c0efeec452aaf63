//! The soak: half of the load that the nodes can take, refusals, drains and restarts. One node stays
//! up. It must not slow down meanwhile, and afterwards it holds no connection, waiting place or
//! memory more than before.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::fleet::Fleet;
use super::pace::Tail;
use super::{Args, Run, load, verdict, writers};
use crate::support::{Client, Dice, Tier};

/// Memory that a node may gain over the soak, beyond what its caches have grown to when it begins.
const MEMORY_BYTES: u64 = 96 * 1024 * 1024;

/// How long everything has to end after the load.
const REST: Duration = Duration::from_secs(45);

/// Clients that poll: enough of them to keep two cores busy.
const POLLERS: usize = 24;

/// Parts of the soak, each with a tail of its own. The last third is compared with the first.
const PARTS: u32 = 30;

/// What a tail may gain beside a half: a busy machine alone makes as much.
const TAIL: Duration = Duration::from_millis(5);

/// Gauges that must be back at 0 when nobody calls.
const GAUGES: [&str; 4] = ["headmark_polls_waiting", "headmark_lane_waiting", "headmark_operations_pending", "headmark_fan_out_waiting"];

/// Runs it on one tier; the number of findings.
pub async fn run(tier: Tier, args: &Args) -> usize {
    println!("chaos: {tier:?}, {} s of soak, seed {}", args.soak_seconds, args.seed);
    let mut fleet = Fleet::start(tier).await;
    let run = fleet.run();
    writers::prepare(&run).await;
    // A short load first, so that caches, pools and threads are there when the baseline is taken,
    // and as fast as it goes, which tells what half of it is.
    let warm = Duration::from_secs((args.soak_seconds / 6).clamp(3, 60));
    drive(&mut fleet, &run, args.seed, warm, None).await;
    let requests = run.ledger.writes.load(Ordering::Relaxed) + run.ledger.polls.load(Ordering::Relaxed);
    let full = f64::from(u32::try_from(requests).unwrap()) / warm.as_secs_f64();
    run.findings.say(&format!("{full:.0} requests a second in full, half of it from here on"));
    run.pace.slow_to(full / 2.0);
    let before = Baseline::of(&fleet, &run).await;
    run.latencies.only_of(&fleet.processes[0].client.base);
    let mut course = Course::default();
    drive(&mut fleet, &run, args.seed + 1, Duration::from_secs(args.soak_seconds), Some(&mut course)).await;
    course.check(&run);
    before.compare(&fleet, &run).await;
    verdict::pronounce(&fleet, &run).await;
    println!("chaos: soak {tier:?}: {}", run.ledger.summary());
    run.findings.count()
}

/// What was seen of the node that stays up, part by part.
#[derive(Debug, Default)]
struct Course {
    tails: Vec<Tail>,
}

impl Course {
    fn note(&mut self, fleet: &Fleet, run: &Run) {
        let (tail, node) = (run.latencies.take(), &fleet.processes[0]);
        let (mib, files) = (node.memory_bytes() >> 20, open_files(node.id()));
        run.findings.say(&format!("p99 of polls {:?}, of writes {:?}; {mib} MiB, {files} files", tail.polls, tail.writes));
        self.tails.push(tail);
    }

    /// The tails of the end are those of the beginning. A third is told by its median: one part may
    /// have had a bad moment.
    fn check(&self, run: &Run) {
        for (what, of) in [("polls", (|tail| tail.polls) as fn(&Tail) -> Duration), ("writes", |tail| tail.writes)] {
            let third = self.tails.len().div_ceil(3);
            let median = |tails: &[Tail]| {
                let mut times: Vec<Duration> = tails.iter().map(of).collect();
                times.sort_unstable();
                times.get(times.len() / 2).copied().unwrap_or_default()
            };
            let (first, last) = (median(&self.tails[..third]), median(&self.tails[self.tails.len() - third..]));
            run.findings.say(&format!("p99 of {what}: {first:?} in the first third, {last:?} in the last"));
            run.findings.check(last <= first * 3 / 2 + TAIL, || format!("{what} became slower: {first:?}, then {last:?}"));
        }
    }
}

/// The load for so long, with refusals. Where its course is noted, the last of two nodes drains and
/// restarts.
async fn drive(fleet: &mut Fleet, run: &Run, seed: usize, how_long: Duration, mut course: Option<&mut Course>) {
    let over = run.over.child_token();
    let inner = Run { over: over.clone(), ..run.clone() };
    let mut tasks = load(&inner, seed, POLLERS);
    tasks.spawn(refusals(inner.clone(), seed));
    let end = Instant::now() + how_long;
    let mut part = Instant::now() + how_long / PARTS;
    let restarts_apart = (how_long / PARTS / 2).max(Duration::from_secs(5));
    let mut restart = Instant::now() + restarts_apart;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_secs(5).min(end.saturating_duration_since(Instant::now()))).await;
        let Some(course) = course.as_mut() else { continue };
        if fleet.processes.len() > 1 && Instant::now() >= restart {
            restart += restarts_apart;
            let ended_well = fleet.drain(1).await;
            run.findings.check(ended_well, || "a drain did not end with 0".to_owned());
        }
        if Instant::now() >= part {
            course.note(fleet, run);
            part += how_long / PARTS;
        }
    }
    over.cancel();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

/// Requests that are refused or given up: bad bodies, unknown routes, callers who hang up while
/// they wait.
async fn refusals(run: Run, seed: usize) {
    let mut dice = Dice::new(seed + 77);
    while !run.over.is_cancelled() {
        let client = run.nodes.any(&mut dice).await;
        let request = match dice.roll(5) {
            0 => client.request(Method::POST, "/v1/badges/increment").json(&json!({"items": [{"user_id": "0", "badge": "like"}]})),
            1 => client.request(Method::GET, "/v1/users/1/nothing"),
            2 => client.request(Method::POST, "/v1/users/1/badges/like/increment").body("{").header("content-type", "application/json"),
            3 => client.request(Method::GET, "/v1/users/1/inbox?after=9000000000&wait=20").timeout(Duration::from_millis(50)),
            _ => client.request(Method::GET, "/v1/events?after=9000000000&wait=20").timeout(Duration::from_millis(50)),
        };
        if let Ok(reply) = Client::try_send(request).await {
            let is_expected = !reply.status.is_server_error() || reply.status == 503;
            run.findings.check(is_expected, || format!("a bad request: {} {}", reply.status, reply.text));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the first node, which is never restarted, holds when nobody calls.
#[derive(Debug)]
struct Baseline {
    memory_bytes: u64,
    files: usize,
}

impl Baseline {
    async fn of(fleet: &Fleet, run: &Run) -> Self {
        come_to_rest(fleet, run).await;
        let node = &fleet.processes[0];
        Self { memory_bytes: node.memory_bytes(), files: open_files(node.id()) }
    }

    async fn compare(&self, fleet: &Fleet, run: &Run) {
        let after = Self::of(fleet, run).await;
        run.findings.say(&format!("before the soak {self:?}, after it {after:?}"));
        let grown = after.memory_bytes.saturating_sub(self.memory_bytes);
        run.findings.check(grown <= MEMORY_BYTES, || format!("the node gained {grown} bytes"));
        // A pool may open a connection more than it had; a leak grows with the requests.
        run.findings.check(after.files <= self.files + 16, || format!("the node holds {} files, {} before", after.files, self.files));
    }
}

/// Files, sockets included, that a process has open.
fn open_files(process: u32) -> usize {
    match std::fs::read_dir(format!("/proc/{process}/fd")) {
        Ok(files) => files.count(),
        // A Mac has no /proc.
        Err(_) => {
            let told = std::process::Command::new("lsof").args(["-p", &process.to_string()]).output().unwrap();
            told.stdout.split(|byte| *byte == b'\n').count()
        }
    }
}

/// Waits until the first node's gauges are 0 and nobody is connected but this program.
async fn come_to_rest(fleet: &Fleet, run: &Run) {
    let client = Client::new(&fleet.processes[0].base);
    let give_up = Instant::now() + REST;
    loop {
        let metrics = client.get("/metrics").await.text;
        let read = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        let busy: Vec<&str> = GAUGES.into_iter().filter(|name| read(name).is_some_and(|value| value > 0.0)).collect();
        if busy.is_empty() {
            return;
        }
        if Instant::now() > give_up {
            return run.findings.add(&format!("still busy {REST:?} after the load: {busy:?}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
