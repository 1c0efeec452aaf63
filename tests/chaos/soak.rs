//! The soak: load, refusals, drains and restarts, after which one node that stayed up holds no
//! connection, waiting place or memory more than before.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::fleet::Fleet;
use super::{Args, Run, load, verdict, writers};
use crate::support::{Client, Dice, Tier};

/// Memory that a node may gain over the soak, beyond what its caches have grown to when it begins.
const MEMORY_BYTES: u64 = 96 * 1024 * 1024;

/// How long everything has to end after the load.
const REST: Duration = Duration::from_secs(45);

/// Gauges that must be back at 0 when nobody calls.
const GAUGES: [&str; 4] = ["headmark_polls_waiting", "headmark_lane_waiting", "headmark_operations_pending", "headmark_fan_out_waiting"];

/// Runs it on one tier; the number of findings.
pub async fn run(tier: Tier, args: &Args) -> usize {
    println!("chaos: {tier:?}, {} s of soak, seed {}", args.soak_seconds, args.seed);
    let mut fleet = Fleet::start(tier).await;
    let run = fleet.run();
    writers::prepare(&run).await;
    // A short load first, so that caches, pools and threads are there when the baseline is taken.
    let warm = Duration::from_secs((args.soak_seconds / 6).clamp(3, 60));
    drive(&mut fleet, &run, args.seed, warm, false).await;
    let before = Baseline::of(&fleet, &run).await;
    drive(&mut fleet, &run, args.seed + 1, Duration::from_secs(args.soak_seconds), true).await;
    before.compare(&fleet, &run).await;
    verdict::pronounce(&fleet, &run).await;
    println!("chaos: soak {tier:?}: {}", run.ledger.summary());
    run.findings.count()
}

/// The load for so long, with refusals; the last node drains and restarts where there are two.
async fn drive(fleet: &mut Fleet, run: &Run, seed: usize, how_long: Duration, restarts: bool) {
    let over = run.over.child_token();
    let inner = Run { over: over.clone(), ..run.clone() };
    let mut tasks = load(&inner, seed);
    tasks.spawn(refusals(inner.clone(), seed));
    let end = Instant::now() + how_long;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_secs(5).min(end.saturating_duration_since(Instant::now()))).await;
        if restarts && fleet.processes.len() > 1 {
            let ended_well = fleet.drain(1).await;
            run.findings.check(ended_well, || "a drain did not end with 0".to_owned());
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
