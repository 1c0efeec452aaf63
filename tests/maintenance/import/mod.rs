//! `headmark import`, as the command line has it.

mod beside;
mod follows;
mod messages;
mod posts;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::time::Duration;

use crate::support::{Client, World, run_with_input};

const NEW_DATABASE: &str = "was not there: this import goes into a new database";

/// A time in Unix seconds.
pub fn seconds_ago(seconds: i64) -> i64 {
    headmark::base::clock::Clock::System.now().0 / 1000 - seconds
}

/// What a command said, and its exit status. What it says of a new database is left out.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// A number of the summary.
    #[track_caller]
    pub fn told(&self, what: &str) -> i64 {
        let line = self.out.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no '{what}' in {self:?}")).trim().parse().unwrap()
    }

    /// Followed, unfollowed, known, refused by the limit, bad.
    #[track_caller]
    fn counts(&self) -> [i64; 5] {
        ["followed", "unfollowed", "known already", "refused by limit", "bad"].map(|what| self.told(what))
    }
}

/// Runs a command on the stores of this world.
pub async fn headmark(world: &World, command: &[&str], cache: bool, env: &[(&str, &str)], input: Vec<u8>) -> Ran {
    let mut args: Vec<String> = command.iter().map(ToString::to_string).collect();
    args.extend(world.store_args());
    if cache {
        args.extend(world.cache_args());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = tokio::time::timeout(Duration::from_secs(100), run_with_input(&args, env, input)).await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    // The first import into an embedded world says so, which no test here is about.
    let err = text(output.stderr).split_inclusive('\n').filter(|line| !line.contains(NEW_DATABASE)).collect();
    Ran { status: output.status.code(), out: text(output.stdout), err }
}

/// Imports this text through a pipe.
pub async fn import(world: &World, text: &str, more: &[&str]) -> Ran {
    headmark(world, &[&["import", "follows", "-"], more].concat(), true, &[], text.as_bytes().to_vec()).await
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A file of the examples.
pub fn sample(name: &str) -> String {
    let file = std::fs::File::open(format!("examples/data/{name}")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Users and since when, in the order of the list.
async fn list(client: &Client, user: i64, name: &str) -> Vec<(i64, String)> {
    let items = client.walk(&format!("/v1/users/{user}/{name}"), 100).await;
    items.iter().map(|item| (item["user_id"].as_str().unwrap().parse().unwrap(), item["since"].as_str().unwrap().to_owned())).collect()
}

/// Who follows whom.
pub type Edges = BTreeSet<(i64, i64)>;

/// Of each user: following, followers, mutuals.
fn degrees(edges: &Edges) -> BTreeMap<i64, [i64; 3]> {
    let mut degrees: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
    for (follower, followee) in edges {
        degrees.entry(*follower).or_default()[0] += 1;
        degrees.entry(*followee).or_default()[1] += 1;
        degrees.entry(*follower).or_default()[2] += i64::from(edges.contains(&(*followee, *follower)));
    }
    degrees
}

/// Every user's counts are those of the file, and every list is as long as its count.
pub async fn assert_degrees(client: &Client, edges: &Edges) {
    for (user, degrees) in degrees(edges) {
        let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
        assert_eq!(["following", "followers", "mutuals"].map(|name| counts[name].as_i64().unwrap()), degrees, "user {user}");
        for (name, length) in [("following", degrees[0]), ("followers", degrees[1])] {
            if length > 0 {
                assert_eq!(i64::try_from(list(client, user, name).await.len()).unwrap(), length, "{name} of {user}");
            }
        }
    }
}

/// The edges that a text of follows has.
pub fn edges(text: &str) -> Edges {
    let line = |line: &str| {
        let mut fields = line.split(',').map(|field| field.parse().unwrap());
        (fields.next().unwrap(), fields.next().unwrap())
    };
    text.lines().skip(1).map(line).collect()
}
