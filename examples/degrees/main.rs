//! Compares the counts of a running server with a file of follows that was imported into it:
//! `relation-counts` of every user of the file must be what a count over its lines gives. Prints
//! how degrees are distributed, and each user that differs.
//!
//! ```sh
//! headmark import follows follows.csv.gz && headmark &
//! cargo run --release --example degrees -- follows.csv.gz --id-offset 0 --url http://127.0.0.1:8080
//! ```
//!
//! The file has one line for each follow (no actions), its followers and followees in the first two
//! columns, plain or gzip.

#![expect(clippy::print_stdout, reason = "its result")]

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;

use clap::Parser;
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt as _;
use serde::Deserialize;

/// How many requests are under way at once.
const AT_ONCE: usize = 64;

#[derive(Debug, Parser)]
struct Args {
    /// The file that was imported.
    file: std::path::PathBuf,
    /// Where the server is.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The `--id-offset` of the import.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,
    /// A service key, if the server asks for one.
    #[arg(long, env = "DEGREES_KEY", hide_env_values = true, default_value = "")]
    key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
struct Degrees {
    following: i64,
    followers: i64,
    mutuals: i64,
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let args = Args::parse();
    let expected = count(&args)?;
    let http = reqwest::Client::new();
    let asked = expected.iter().map(|(user, degrees)| {
        let (http, url) = (http.clone(), format!("{}/v1/users/{user}/relation-counts", args.url));
        let key = args.key.clone();
        async move {
            let request = if key.is_empty() { http.get(url) } else { http.get(url).bearer_auth(key) };
            let told: Degrees = request.send().await?.error_for_status()?.json().await?;
            Ok::<_, reqwest::Error>((*user, *degrees, told))
        }
    });
    let mut answers = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
    let mut differing = 0_u64;
    while let Some(answer) = answers.next().await {
        let (user, expected, told) = answer?;
        if told != expected {
            println!("user {user}: the file has {expected:?}, the server says {told:?}");
            differing += 1;
        }
    }
    for (name, pick) in [("following", 0), ("followers", 1), ("mutuals", 2)] {
        println!("{name:10} {}", distribution(&expected, pick));
    }
    println!("{} users, {differing} differ", expected.len());
    Ok(if differing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn count(args: &Args) -> Result<BTreeMap<i64, Degrees>, Failure> {
    let mut text = String::new();
    if args.file.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(File::open(&args.file)?).read_to_string(&mut text)?;
    } else {
        File::open(&args.file)?.read_to_string(&mut text)?;
    }
    let mut edges = HashSet::new();
    for record in csv::Reader::from_reader(text.as_bytes()).records() {
        let record = record?;
        let id = |at| Ok::<i64, Failure>(record.get(at).ok_or("a line is too short")?.parse::<i64>()? + args.id_offset);
        edges.insert((id(0)?, id(1)?));
    }
    let mut degrees: BTreeMap<i64, Degrees> = BTreeMap::new();
    for (follower, followee) in &edges {
        let mine = degrees.entry(*follower).or_default();
        mine.following += 1;
        mine.mutuals += i64::from(edges.contains(&(*followee, *follower)));
        degrees.entry(*followee).or_default().followers += 1;
    }
    Ok(degrees)
}

/// The median, the higher percentiles and the maximum.
fn distribution(degrees: &BTreeMap<i64, Degrees>, pick: usize) -> String {
    let numbers = |degrees: &Degrees| [degrees.following, degrees.followers, degrees.mutuals];
    let mut sorted: Vec<i64> = degrees.values().filter_map(|degrees| numbers(degrees).get(pick).copied()).collect();
    sorted.sort_unstable();
    let at = |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default();
    format!("sum {}, p50 {}, p90 {}, p99 {}, max {}", sorted.iter().sum::<i64>(), at(50), at(90), at(99), at(100))
}
