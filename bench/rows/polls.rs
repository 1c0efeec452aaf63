//! Polls, answered in full and with 304, on both tiers, against routes that do nothing but give the
//! same bytes.

use crate::Result;
use crate::contest;
use crate::contest::{Series, Side, Work};
use crate::data;
use crate::load::{self, Order, Requests};
use crate::open::{self, Latencies, OpenLoad};
use crate::peers::{self, Peer};
use crate::process::Process;
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire;

use super::{Stage, visits};

/// What p99.99 of the polls may be, as a ratio to that of the bare route.
const AT_MOST: f64 = 1.5;

const GOALS: [Goal; 6] = [
    Goal { work: "poll, embedded tier", at_least: Some(0.85), unit: "polls" },
    Goal { work: "poll, server tier", at_least: Some(0.8), unit: "polls" },
    Goal { work: "304, embedded tier", at_least: Some(0.9), unit: "polls" },
    Goal { work: "304, server tier", at_least: Some(0.85), unit: "polls" },
    Goal { work: "for comparison: one shared Redis connection, HGETALL", at_least: None, unit: "requests" },
    Goal { work: "for comparison: a Redis connection from a pool for each request, HGETALL", at_least: None, unit: "requests" },
];

pub(super) async fn run(stage: &Stage, report: &mut Report) -> Result<()> {
    let users = data::working_set(stage.scale.users, stage.scale.polling);
    let polls = users.iter().map(|user| wire::request("GET", &path(*user), &[])).collect();
    let full = Requests::new(stage.folder(), "polls", Order::Random, polls)?;
    let same = async |name: &str, process: &Process| -> Result<Requests> {
        Requests::new(stage.folder(), name, Order::Random, with_tags(process, &users).await?)
    };
    let same_embedded = same("polls-304-embedded", &stage.embedded).await?;
    let same_server = same("polls-304-server", &stage.server).await?;
    let answer = check(stage, &full, [(&stage.embedded, &same_embedded), (&stage.server, &same_server)]).await?;
    peers::fill_redis(&stage.redis, &users, &data::marks()).await?;
    let start = |peer| peers::start(peer, &answer, &stage.redis, stage.folder());
    let (bare, multiplexed, deadpool) = (start(Peer::Bare).await?, start(Peer::Multiplexed).await?, start(Peer::Deadpool).await?);

    eprintln!("polls");
    let side = |name: &str, process, requests| Side {
        name: name.to_owned(),
        work: Work::Http { process, requests, connections: stage.scale.connections, counts_for: 1 },
    };
    let sides = [
        side("a bare axum route", &bare, &full),
        side("poll, embedded", &stage.embedded, &full),
        side("poll, server", &stage.server, &full),
        side("304, embedded", &stage.embedded, &same_embedded),
        side("304, server", &stage.server, &same_server),
        side("shared connection", &multiplexed, &full),
        side("pooled connection", &deadpool, &full),
    ];
    for process in [&stage.embedded, &stage.server] {
        load::send_all(process.address, full.all.to_vec(), stage.scale.connections).await?;
    }
    let before = [hits(&stage.embedded).await?, hits(&stage.server).await?];
    let series = contest::run(&stage.client, stage.scale.rounds, &sides).await?;
    let [theirs, ours @ ..] = series.as_slice() else { return Err("no rounds".into()) };
    for (goal, ours) in GOALS.into_iter().zip(ours) {
        report.compare(goal, ours, theirs);
    }
    explain(stage, report, &answer, before).await?;
    visits::run(stage, report, &bare).await?;
    if let [bare_max, embedded_max, server_max, ..] = series.as_slice() {
        latencies(stage, report, &full, [(&bare, bare_max), (&stage.embedded, embedded_max), (&stage.server, server_max)]).await?;
    }
    Ok(())
}

fn path(user: u64) -> String {
    format!("/v1/users/{user}/badges")
}

fn json(answer: &wire::Answer) -> Result<serde_json::Map<String, serde_json::Value>> {
    Ok(serde_json::from_slice(&answer.body)?)
}

/// Polls of these users, each with the tag of what it was answered before.
async fn with_tags(process: &Process, users: &[u64]) -> Result<Vec<Vec<u8>>> {
    let mut connection = wire::Connection::open(process.address).await?;
    let mut polls = Vec::with_capacity(users.len());
    for user in users {
        let answer = connection.ask(&wire::request("GET", &path(*user), &[])).await?;
        let tag = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("etag")).map(|(_, tag)| tag.as_str());
        polls.push(wire::request("GET", &path(*user), &[("if-none-match", tag.ok_or("an answer without a tag")?)]));
    }
    Ok(polls)
}

/// Whether both tiers answer as they should, and alike; returns the answer that the peers are to
/// give.
async fn check(stage: &Stage, full: &Requests, same: [(&Process, &Requests); 2]) -> Result<wire::Answer> {
    let full = full.all.first().ok_or("no users to poll")?;
    let answer = wire::ask_once(stage.embedded.address, full).await?;
    let others = wire::ask_once(stage.server.address, full).await?;
    let (one, other) = (json(&answer)?, json(&others)?);
    // Each installation has an epoch of its own.
    let alike = |name: &String| name == "epoch" || one.get(name) == other.get(name);
    if answer.status != 200 || answer.body.len() != others.body.len() || !one.keys().all(alike) {
        return Err(format!("the tiers do not answer alike: {one:?} and {other:?}").into());
    }
    for (process, same) in same {
        let same = same.all.first().ok_or("no users to poll")?;
        let status = wire::ask_once(process.address, same).await?.status;
        if status != 304 {
            return Err(format!("a poll with the tag of the summary is answered {status}").into());
        }
    }
    Ok(answer)
}

async fn explain(stage: &Stage, report: &mut Report, answer: &wire::Answer, before: [Hits; 2]) -> Result<()> {
    let mut ratios = Vec::new();
    for (process, before) in [&stage.embedded, &stage.server].into_iter().zip(before) {
        ratios.push(hits(process).await?.since(before));
    }
    let (body_bytes, polling) = (answer.body.len(), grouped(float(u64::try_from(stage.scale.polling)?)));
    report.explain(&format!(
        "**Polls** pick users at random from {polling} of all users, so that nearly all are answered from the cache, as in production, where a user \
         who polls does it again and again; each was polled once before. Share of hits in the run, from `/metrics`: embedded {}, server {}. An entry in Redis \
         lives for 60 s, as by default, and lives on while it is polled.",
        ratios.first().map_or("n/a", String::as_str),
        ratios.get(1).map_or("n/a", String::as_str),
    ));
    report.explain(&format!(
        "**The bare route** is an axum handler without extractors, in a process of its own with the same allocator, that gives the same status, headers \
         and body ({body_bytes} bytes) every time. The same 200 is what 304 is compared with. All servers run without credentials.",
    ));
    report.explain(
        "**The two Redis routes** read the hash of the user that the path names (HGETALL, the same fields), then give the same bytes: over one \
         connection that all requests share, and over one checked out of a deadpool pool of default size for each request.",
    );
    if let load::Client::Wrk(..) = stage.client {
        let (connections, seconds) = (stage.scale.connections, stage.scale.rounds.each.as_secs());
        report.command(
            "Every rate over HTTP",
            format!("wrk -t2 -c{connections} -d{seconds}s -s bench/wrk.lua http://127.0.0.1:PORT -- REQUESTS random TURN TURNS 2"),
        );
    }
    Ok(())
}

async fn latencies(stage: &Stage, report: &mut Report, requests: &Requests, servers: [(&Process, &Series); 3]) -> Result<()> {
    let bare_load = servers.get(1).map_or(0.0, |(_, series)| series.rate() / 2.0);
    let names = ["the bare route, under the load of the next row", "poll, embedded tier", "poll, server tier"];
    let loads: Vec<_> = servers.iter().enumerate().map(|(at, (_, series))| if at == 0 { bare_load } else { series.rate() / 2.0 }).collect();
    let mut sides: Vec<(Latencies, Option<f64>)> = Vec::new();
    for _ in &servers {
        sides.push((Latencies::new()?, Some(0.0)));
    }
    let rounds = stage.scale.rounds.count;
    for round in 1..=rounds {
        for ((((process, _), per_second), (latencies, cpu_s)), name) in servers.iter().zip(&loads).zip(&mut sides).zip(names) {
            eprintln!("round {round}, open load, {name}: {}/s", grouped(*per_second));
            let open_load = OpenLoad {
                address: process.address,
                requests: std::sync::Arc::clone(&requests.all),
                per_second: *per_second,
                connections: stage.scale.connections,
                duration: stage.scale.open / u32::try_from(rounds)?,
            };
            // The loads before took longer than an entry lives, and a cold start is not what is measured.
            load::send_all(process.address, requests.all.to_vec(), stage.scale.connections).await?;
            let before_s = process.cpu_s();
            latencies.add(&open::run(open_load).await?)?;
            let spent_s = process.cpu_s().zip(before_s).map(|(after_s, before_s)| after_s - before_s);
            *cpu_s = cpu_s.zip(spent_s).map(|(all_s, spent_s)| all_s + spent_s);
        }
    }
    let against: Vec<_> = match sides.split_first() {
        Some(((bare, _), ours)) => std::iter::once(None).chain(ours.iter().map(|(ours, _)| Some((ours.against(bare), AT_MOST)))).collect(),
        None => Vec::new(),
    };
    for (((per_second, name), against), (latencies, cpu_s)) in loads.into_iter().zip(names).zip(against).zip(sides) {
        // The warm-up is in the processor time and in how late the generator was, not in the latencies.
        let cpu_us = cpu_s.map(|cpu_s| cpu_s * 1e6 / float(latencies.lateness_us.len().max(1)));
        report.latency(name, per_second, against, (latencies, cpu_us));
    }
    Ok(())
}

/// Reads of the cache so far.
#[derive(Debug, Clone, Copy)]
struct Hits {
    hits: f64,
    all: f64,
}

impl Hits {
    fn since(self, before: Self) -> String {
        let share = (self.hits - before.hits) / (self.all - before.all);
        if share.is_finite() { format!("{:.2} %", share * 100.0) } else { "n/a".to_owned() }
    }
}

async fn hits(process: &Process) -> Result<Hits> {
    let answer = wire::ask_once(process.address, &wire::request("GET", "/metrics", &[])).await?;
    let text = String::from_utf8(answer.body)?;
    let of = |result: &str| -> f64 {
        let prefix = format!("headmark_cache_reads_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok()).unwrap_or(0.0)
    };
    let hits = of("hit");
    Ok(Hits { hits, all: hits + of("miss") + of("away") })
}
