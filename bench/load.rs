//! As many requests as the server will answer: a closed loop over a number of connections, with wrk
//! where there is one, else with a client of our own. For rates only; latencies come from
//! `open.rs`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use crate::Result;
use crate::stats::float;
use crate::wire::Connection;

/// wrk's threads: it and the server share the machine's cores, and one thread of wrk keeps up with
/// more than one of a server.
const WRK_THREADS: usize = 2;

/// Reads the requests from a file, hands them out, and at the end says what came of it.
const WRK_SCRIPT: &str = include_str!("wrk.lua");

/// In which order requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Any, again and again.
    Random,
    /// Each once, as long as they last: each turn, and in it each thread, takes a block of its own.
    Each,
}

/// Which of how many turns over the same requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

/// One way to load one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closed<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) requests: &'a Requests,
    pub(crate) connections: usize,
}

/// What is sent: whole requests, made ahead, so that both clients send the same and neither spends
/// time on making them.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) all: Arc<Vec<Vec<u8>>>,
    order: Order,
    /// The same for wrk: each request after its length.
    file: PathBuf,
}

impl Requests {
    pub(crate) fn new(folder: &Path, name: &str, order: Order, all: Vec<Vec<u8>>) -> Result<Self> {
        let file = folder.join(format!("{name}.requests"));
        let mut out = std::io::BufWriter::new(std::fs::File::create(&file)?);
        for request in &all {
            writeln!(out, "{}", request.len())?;
            out.write_all(request)?;
        }
        out.flush()?;
        Ok(Self { all: Arc::new(all), order, file })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // The folder goes at the end of the run, and with it a file that could not be removed now.
        let _left_behind = std::fs::remove_file(&self.file);
    }
}

/// What came of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) answered: u64,
    pub(crate) errors: u64,
    pub(crate) seconds: f64,
}

impl Counted {
    pub(crate) fn per_second(&self) -> f64 {
        float(self.answered) / self.seconds
    }
}

/// The client.
#[derive(Debug)]
pub(crate) enum Client {
    /// The program, and the script for it.
    Wrk(PathBuf, PathBuf),
    Own,
}

impl Client {
    /// wrk if it is on the PATH.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let found = std::env::var_os("PATH").and_then(|path| std::env::split_paths(&path).map(|dir| dir.join("wrk")).find(|f| f.is_file()));
        let Some(program) = found else { return Ok(Self::Own) };
        let script = folder.join("wrk.lua");
        std::fs::write(&script, WRK_SCRIPT)?;
        Ok(Self::Wrk(program, script))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Wrk(..) => "wrk, two threads",
            Self::Own => "the bench's own client (wrk was not there)",
        }
    }

    /// Keeps so many connections busy for so long.
    pub(crate) async fn drive(&self, load: Closed<'_>, turn: Turn, duration: Duration) -> Result<Counted> {
        match self {
            Self::Wrk(program, script) => wrk(program, script, load, turn, duration).await,
            Self::Own => own(load, turn, duration).await,
        }
    }
}

async fn wrk(program: &Path, script: &Path, load: Closed<'_>, turn: Turn, duration: Duration) -> Result<Counted> {
    let Closed { address, requests, connections } = load;
    let order = if requests.order == Order::Random { "random" } else { "each" };
    let threads = WRK_THREADS.min(connections);
    let output = tokio::process::Command::new(program)
        .arg(format!("-t{threads}"))
        .arg(format!("-c{connections}"))
        .arg(format!("-d{}s", duration.as_secs().max(1)))
        .args(["--timeout", "20s", "-s"])
        .arg(script)
        .arg(format!("http://{address}"))
        .arg("--")
        .arg(&requests.file)
        .args([order, &turn.number.to_string(), &turn.of.to_string(), &threads.to_string()])
        .kill_on_drop(true)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout);
    counted(&text).ok_or_else(|| format!("wrk failed: {text} {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// The line that the script ends with.
fn counted(text: &str) -> Option<Counted> {
    let line = text.lines().find_map(|line| line.strip_prefix("bench: "))?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
    let (all, us, errors) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(Counted { answered: all.saturating_sub(errors), errors, seconds: Duration::from_micros(us).as_secs_f64() })
}

async fn own(load: Closed<'_>, turn: Turn, duration: Duration) -> Result<Counted> {
    let Closed { address, requests, connections } = load;
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for number in 0..connections {
        let (all, order) = (Arc::clone(&requests.all), requests.order);
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let (share, shares) = (turn.number * connections + number, turn.of * connections);
            let mut rng = StdRng::seed_from_u64(u64::try_from(share)?);
            let mut place = all.len() * share / shares.max(1);
            let (mut answered, mut errors) = (0_u64, 0_u64);
            while begun.elapsed() < duration {
                place = if order == Order::Random { rng.random_range(0..all.len()) } else { (place + 1) % all.len() };
                let Some(request) = all.get(place) else { break };
                match connection.exchange(request).await? {
                    200..400 => answered += 1,
                    _ => errors += 1,
                }
            }
            Ok::<_, crate::Failure>((answered, errors))
        });
    }
    let mut counted = Counted { answered: 0, errors: 0, seconds: 0.0 };
    while let Some(share) = tasks.join_next().await {
        let (answered, errors) = share??;
        counted.answered += answered;
        counted.errors += errors;
    }
    counted.seconds = begun.elapsed().as_secs_f64();
    Ok(counted)
}

/// Sends every request once, over so many connections, and says how long that took.
pub(crate) async fn send_all(address: SocketAddr, requests: Vec<Vec<u8>>, connections: usize) -> Result<Duration> {
    let requests = Arc::new(requests);
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for first in 0..connections {
        let requests = Arc::clone(&requests);
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for request in requests.iter().skip(first).step_by(connections) {
                let status = connection.exchange(request).await?;
                if !(200..400).contains(&status) {
                    return Err(format!("{}: status {status}", String::from_utf8_lossy(request)).into());
                }
            }
            Ok::<_, crate::Failure>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_script_is_found() {
        let counted = counted("Running 2s test\nbench: 1000 requests 2000000 us 10 errors\n").unwrap();
        assert_eq!((counted.answered, counted.errors), (990, 10));
        assert!((counted.per_second() - 495.0).abs() < 0.001);
    }
}
