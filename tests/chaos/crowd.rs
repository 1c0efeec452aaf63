//! The crowd: one node holds as many polls (`wait=`) as it was told it may, each over a connection
//! of its own. They are woken, time out and are sent home, and the node's memory stays bounded.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Run;
use super::fleet::Fleet;
use crate::support::wire::{Wire, WireReply};
use crate::support::{Client, Process, Tier};

/// Memory that one waiting poll may cost a node, with its connection and its user's entry. It was
/// 34 KB connected, and 43 KB waiting; 47 KB without optimization.
const MEMORY_BYTES: u64 = if cfg!(debug_assertions) { 56 } else { 50 } * 1024;

/// Connections that are made at the same time.
const AT_ONCE: usize = 100;

/// Files of this program and of the node beside the polls.
const SPARE: u32 = 600;

/// How long the whole crowd may take to be answered once there is something to tell.
const WOKEN: Duration = Duration::from_secs(15);

/// How long the crowd is left waiting: two rechecks, which a poll makes every 5 s.
const UNDISTURBED: Duration = Duration::from_secs(12);

/// Increments of one request.
const BATCH: usize = 1000;

/// A client that polls for one user.
#[derive(Debug)]
struct Caller {
    user: u32,
    wire: Wire,
    tag: String,
}

/// How one poll of one caller ended.
type Ended = Result<(Caller, WireReply, Instant), String>;

impl Caller {
    fn path(&self) -> String {
        format!("/v1/users/{}/badges", self.user)
    }

    /// Connects, and polls until the tag stays: the first poll enrols the user, which changes it.
    async fn enrol(base: String, user: u32) -> Self {
        let mut this = Self { user, wire: Wire::connect(&base).await.unwrap(), tag: String::new() };
        for _ in 0..2 {
            let reply = this.wire.get(&this.path(), "").await.unwrap();
            assert_eq!(reply.status(), 200, "{} {}", reply.head, reply.body);
            reply.header("etag").clone_into(&mut this.tag);
        }
        this
    }

    async fn wait(mut self, seconds: u32) -> Ended {
        let reply = self.wire.get(&format!("{}?wait={seconds}", self.path()), &self.tag).await;
        let reply = reply.map_err(|error| format!("the poll of {} ended without an answer: {error}", self.user))?;
        reply.header("etag").clone_into(&mut self.tag);
        Ok((self, reply, Instant::now()))
    }
}

/// Everybody who waits at one node.
struct Crowd<'a> {
    run: &'a Run,
    polls: u32,
    /// Where they wait, and where is written.
    node: Client,
    other: Client,
    /// What the node used before anybody came.
    before: u64,
    callers: Vec<Caller>,
}

/// Runs it on one tier; the number of findings.
pub async fn run(tier: Tier, wanted: u32) -> usize {
    let polls = allowed(wanted);
    println!("chaos: {tier:?}, {polls} polls that wait at one node");
    let bounds = [("--waiting-polls", polls), ("--max-in-flight", polls + 100), ("--max-connections", polls + SPARE / 2)];
    let mut fleet = Fleet::start_with(tier, bounds.iter().flat_map(|(name, most)| [name.to_string(), most.to_string()]).collect()).await;
    let run = fleet.run();
    let mut crowd = Crowd::gather(&fleet, &run, polls).await;
    let process = &fleet.processes[0];
    let held = crowd.hold(60).await;
    crowd.check_undisturbed(process, &held).await;
    crowd.check_beyond().await;
    let since = crowd.raise_all().await;
    crowd.check_told(held, since, "their own number rose").await;
    let began = Instant::now();
    let held = crowd.hold(8).await;
    crowd.check_in_vain(held, began).await;
    let held = crowd.hold(60).await;
    let since = Instant::now();
    crowd.other.post("/v1/broadcasts/crowd", &json!({"title": "all"})).await.ok();
    crowd.check_told(held, since, "a broadcast").await;
    crowd.check_memory(process, "after all that");
    let held = crowd.hold(60).await;
    crowd.check_sent_home(&mut fleet.processes[0], held).await;
    run.findings.count()
}

/// As many polls as this program may hold files for; the node raises its own limit.
fn allowed(wanted: u32) -> u32 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = u64::from(wanted + SPARE);
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(needed, |most| most.min(needed));
    if limit.current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).unwrap();
    }
    u32::try_from(most).unwrap() - SPARE
}

impl<'a> Crowd<'a> {
    /// Everybody connects, and has polled.
    async fn gather(fleet: &Fleet, run: &'a Run, polls: u32) -> Self {
        let node = fleet.processes[0].client.clone();
        let other = fleet.processes.last().unwrap().client.clone();
        let before = fleet.processes[0].memory_bytes();
        let mut this = Self { run, polls, node, other, before, callers: Vec::new() };
        let mut connecting = JoinSet::new();
        for user in 1..=polls {
            if connecting.len() >= AT_ONCE {
                this.callers.push(connecting.join_next().await.unwrap().unwrap());
            }
            connecting.spawn(Caller::enrol(this.node.base.clone(), user));
        }
        this.callers.extend(connecting.join_all().await);
        this.check_memory(&fleet.processes[0], "connected");
        this
    }

    /// Everybody waits; comes back when all do.
    async fn hold(&mut self, seconds: u32) -> JoinSet<Ended> {
        let mut held = JoinSet::new();
        for caller in self.callers.drain(..) {
            held.spawn(caller.wait(seconds));
        }
        let give_up = Instant::now() + WOKEN;
        while self.waiting().await < self.polls && Instant::now() < give_up {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let waiting = self.waiting().await;
        self.run.findings.check(waiting == self.polls, || format!("{waiting} of {} polls wait", self.polls));
        held
    }

    async fn waiting(&self) -> u32 {
        let waiting = self.node.metric("headmark_polls_waiting").await;
        format!("{waiting:.0}").parse().unwrap()
    }

    /// While nothing happens nobody is answered, and the node is not busy with them.
    async fn check_undisturbed(&self, process: &Process, held: &JoinSet<Ended>) {
        let (cpu, began) = (cpu_seconds(process), Instant::now());
        tokio::time::sleep(UNDISTURBED).await;
        let busy = (cpu_seconds(process) - cpu) / began.elapsed().as_secs_f64();
        self.run.findings.say(&format!("{} polls wait and cost {busy:.2} of a core", held.len()));
        let waiting = self.waiting().await;
        self.run.findings.check(waiting == self.polls, || format!("{waiting} of {} polls wait while nothing happens", self.polls));
        self.check_memory(process, "all wait");
    }

    fn check_memory(&self, process: &Process, when: &str) {
        let each = process.memory_bytes().saturating_sub(self.before) / u64::from(self.polls);
        self.run.findings.say(&format!("{when}: {each} bytes for each poll, beyond {} before", self.before));
        self.run.findings.check(each <= MEMORY_BYTES, || format!("{when}: a poll costs {each} bytes, more than {MEMORY_BYTES}"));
    }

    /// One more is answered at once, and the node still serves everybody else.
    async fn check_beyond(&self) {
        let began = Instant::now();
        let more = Caller::enrol(self.node.base.clone(), self.polls + 1).await;
        match more.wait(60).await {
            Ok((_, reply, _)) => self.run.findings.check(reply.status() == 304, || format!("beyond the bound: {}", reply.head)),
            Err(error) => self.run.findings.add(&error),
        }
        let path = format!("/v1/users/{}/badges/like/increment", self.polls + 1);
        self.node.post(&path, &json!({})).await.ok();
        let took = began.elapsed();
        self.run.findings.check(took < Duration::from_secs(5), || format!("a poll and a write beside the crowd took {took:?}"));
    }

    /// Raises a number of everybody; when the last of it was acknowledged.
    async fn raise_all(&self) -> Instant {
        let users: Vec<u32> = (1..=self.polls).collect();
        for some in users.chunks(BATCH) {
            let items: Vec<Value> = some.iter().map(|user| json!({"user_id": user.to_string(), "badge": "like"})).collect();
            self.other.post("/v1/badges/increment", &json!({"items": items})).await.ok();
        }
        Instant::now()
    }

    /// Takes everybody back, who must have been answered with 200.
    async fn check_told(&mut self, held: JoinSet<Ended>, since: Instant, why: &str) {
        let mut slowest = Duration::ZERO;
        self.take_back(held, |run, reply, when| {
            slowest = slowest.max(when.saturating_duration_since(since));
            run.findings.check(reply.status() == 200 && reply.body.contains("\"degraded\":false"), || format!("{why}: {}", reply.head));
            let has_it = why != "their own number rose" || reply.body.contains("\"like\"");
            run.findings.check(has_it, || format!("woken without the number: {}", reply.body));
        })
        .await;
        self.run.findings.say(&format!("{why}: all were told within {slowest:?} of the acknowledgement"));
        self.run.findings.check(slowest < WOKEN, || format!("{why}: the last was told after {slowest:?}"));
    }

    /// Takes everybody back, who must have waited for as long as they asked to.
    async fn check_in_vain(&mut self, held: JoinSet<Ended>, began: Instant) {
        self.take_back(held, |run, reply, when| {
            let after = when.duration_since(began);
            let is_right = reply.status() == 304 && after >= Duration::from_secs(8) && after < Duration::from_secs(8) + WOKEN;
            run.findings.check(is_right, || format!("waited in vain for {after:?}: {}", reply.head));
        })
        .await;
    }

    async fn take_back(&mut self, mut held: JoinSet<Ended>, mut check: impl FnMut(&Run, &WireReply, Instant)) {
        while let Some(ended) = held.join_next().await {
            match ended.unwrap() {
                Ok((caller, reply, when)) => {
                    check(self.run, &reply, when);
                    self.callers.push(caller);
                }
                Err(error) => self.run.findings.add(&error),
            }
        }
    }

    /// SIGTERM: everybody is answered, and the node ends well.
    async fn check_sent_home(&mut self, process: &mut Process, held: JoinSet<Ended>) {
        let began = Instant::now();
        process.terminate();
        self.take_back(held, |run, reply, _| {
            run.findings.check([200, 304].contains(&reply.status()), || format!("sent home with {}", reply.head));
        })
        .await;
        self.callers.clear();
        let ended = process.ended().await;
        self.run.findings.say(&format!("the node was told to stop, answered all and ended within {:?}", began.elapsed()));
        self.run.findings.check(ended.success(), || format!("the node ended with {ended}"));
    }
}

/// CPU time that a node has used, in seconds.
fn cpu_seconds(process: &Process) -> f64 {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", process.id())) else {
        // A Mac has no /proc. On Linux, `ps` has whole seconds only.
        return process.cpu_seconds();
    };
    // The name of a program may hold spaces; what follows it begins with the state.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Ticks of 10 ms, in user and system mode.
    fields[11..=12].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
