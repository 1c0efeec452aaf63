//! Lists, follows, and the import of a graph, against plain tables in the same Postgres.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::Result;
use crate::contest;
use crate::contest::{Series, Side, Work};
use crate::data;
use crate::load::{self, Order, Requests};
use crate::peers;
use crate::pgbench::Until;
use crate::process;
use crate::report::{Goal, Report};
use crate::stats::{float, grouped};
use crate::wire::{self, Connection};

use super::Stage;

/// Far above every other user.
const STAR: u64 = 9_000_000_001;
const NEW_STAR: u64 = 9_000_000_002;
/// Followers that the second star gains.
const GAINED: usize = 10_000;
/// Those who look others up, those who are looked up, how many in a request, how many requests, and
/// how many of users who look for the first time.
const LOOKING: u64 = 200;
const LOOKED_UP: u64 = 1000;
const AT_ONCE: u64 = 100;
const LOOK_UP_REQUESTS: u64 = 20_000;
const COLD_REQUESTS: u64 = 5_000;
/// Users in a page of the list, and the page that is compared with the first.
const PAGE: u64 = 20;
const DEEP_PAGE: u64 = 10_000;
/// Those who follow: they have polled before, as anyone who follows somebody in a product has, so
/// that no follow is also a first request of the day.
const FOLLOWERS: u64 = 20_000;
/// Most follows a second that there are requests for.
const MAX_FOLLOWS_PER_SECOND: usize = 25_000;

const FIRST_PAGE_SQL: &str = "\
select f.follower_id, f.since, (select count(*) from plain_following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id) \
from plain_followers f where f.followee_id = :star order by f.since desc, f.follower_id desc limit 21;
";

const DEEP_PAGE_SQL: &str = "\
select f.follower_id, f.since, (select count(*) from plain_following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id) \
from plain_followers f where f.followee_id = :star and (f.since, f.follower_id) < (:after, :after) \
order by f.since desc, f.follower_id desc limit 21;
";

/// The plain design: both users' counts are locked, in one order, for the whole transaction.
const FOLLOW_SQL: &str = "\
\\set a random(1, :followers)
\\set b random(1, :users)
\\set low least(:a, :b)
\\set high greatest(:a, :b)
begin;
select 1 from plain_counts where user_id = :low for update;
select 1 from plain_counts where user_id = :high for update;
insert into plain_following (follower_id, followee_id, since) values (:a, :b, 1) on conflict do nothing;
insert into plain_followers (followee_id, since, follower_id) values (:b, 1, :a) on conflict do nothing;
update plain_counts set following = following + 1 where user_id = :a;
update plain_counts set followers = followers + 1 where user_id = :b;
commit;
";

/// The same where everybody follows the same star.
const FOLLOW_STAR_SQL: &str = "\
\\set a random(2, :users)
begin;
select 1 from plain_counts where user_id = 1 for update;
select 1 from plain_counts where user_id = :a for update;
insert into plain_following (follower_id, followee_id, since) values (:a, 1, 2) on conflict do nothing;
insert into plain_followers (followee_id, since, follower_id) values (1, 2, :a) on conflict do nothing;
update plain_counts set following = following + 1 where user_id = :a;
update plain_counts set followers = followers + 1 where user_id = 1;
commit;
";

const IMPORT: Goal = Goal { work: "import of follows, on Postgres", at_least: Some(60_000.0), unit: "edges" };
const IMPORT_GRAPH: Goal = Goal { work: "import of the graph that was given", at_least: Some(60_000.0), unit: "edges" };
const FIRST: Goal = Goal { work: "followers of a star, first page", at_least: Some(0.7), unit: "pages" };
const DEEP: Goal = Goal { work: "followers of a star, 10,000th page", at_least: Some(0.7), unit: "pages" };
const EQUAL: Goal = Goal { work: "the 10,000th page against the first", at_least: Some(0.9), unit: "pages" };
const FOLLOW: Goal = Goal { work: "follows, durable", at_least: Some(4.0), unit: "follows" };
const LOOK_UPS: Goal = Goal { work: "for information: 100 look-ups in a request, from Redis", at_least: None, unit: "requests" };
const COLD_LOOK_UPS: Goal = Goal { work: "for information: 100 look-ups in a request, from SQL", at_least: None, unit: "requests" };
const GAIN: Goal = Goal { work: "for information: a star gains 10,000 followers", at_least: None, unit: "follows" };

pub(super) async fn run(stage: &Stage, report: &mut Report, graph: Option<&Path>) -> Result<()> {
    let counts = wire::request("GET", "/v1/users/1/relation-counts", &[]);
    if wire::ask_once(stage.server.address, &counts).await?.status == 404 {
        report.skip("lists, follows and the import of a graph: this build has no relation routes");
        return Ok(());
    }
    let users = stage.scale.users;
    eprintln!("relations");
    import(stage, report, graph).await?;
    stage.postgres.fill_relations(STAR, stage.scale.followers, users).await?;
    tokio::time::sleep(data::SETTLE).await;
    lists(stage, report).await?;
    follows(stage, report).await?;
    gain(stage, report).await?;
    look_ups(stage, report).await
}

/// Imports the made graph with its star, and the one that was given.
async fn import(stage: &Stage, report: &mut Report, graph: Option<&Path>) -> Result<()> {
    let scale = &stage.scale;
    let made = stage.folder().join("follows.csv");
    let edges = data::write_graph(&made, scale.users, scale.edges, STAR, scale.followers)?;
    let seconds = import_one(stage, &made).await?;
    report.rate(IMPORT, &Series::single("headmark import", float(edges) / seconds));
    std::fs::remove_file(&made)?;
    report.explain(&format!(
        "**The import** reads {} follows from a CSV file: grouped by follower, as lists are published, followees by a power law, and one star with {} followers; the whole run of the \
         command counts, from its start to its exit.",
        grouped(float(edges)),
        grouped(float(scale.followers)),
    ));
    report.command("The import", "DATABASE_URL=… REDIS_URL=… headmark import follows follows.csv".to_owned());
    if let Some(graph) = graph {
        let graph = graph.canonicalize().map_err(|error| format!("cannot read {}: {error}", graph.display()))?;
        let before = following(stage).await?;
        let seconds = import_one(stage, &graph).await?;
        let edges = following(stage).await?.saturating_sub(before);
        report.rate(IMPORT_GRAPH, &Series::single("headmark import", float(edges) / seconds));
        report.fact(format!("Graph that was given: {} new follows in {seconds:.1} s", grouped(float(edges))));
    }
    Ok(())
}

async fn import_one(stage: &Stage, file: &Path) -> Result<f64> {
    let mut import = process::headmark(&stage.program, &stage.server_stores);
    import.args(["import", "follows"]).arg(file);
    let begun = Instant::now();
    process::run(import, "headmark import follows").await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// How many follows the database of the server has.
async fn following(stage: &Stage) -> Result<u64> {
    stage.postgres.count_follows().await
}

fn path_of_page(cursor: Option<&str>, limit: u64) -> String {
    let cursor = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
    format!("/v1/users/{STAR}/followers?limit={limit}{cursor}")
}

/// Walks the list until so many users are passed; returns the cursor there.
async fn cursor_after(stage: &Stage, passed: u64) -> Result<String> {
    let mut connection = Connection::open(stage.server.address).await?;
    let (mut left, mut cursor) = (passed, None::<String>);
    while left > 0 {
        let limit = left.min(100);
        let answer = connection.ask(&wire::request("GET", &path_of_page(cursor.as_deref(), limit), &[])).await?;
        let next = answer.json()?.get("next_cursor").and_then(|cursor| cursor.as_str()).map(str::to_owned);
        cursor =
            Some(next.ok_or_else(|| format!("the list of the star ends {left} users before page {DEEP_PAGE}: status {}", answer.status))?);
        left -= limit;
    }
    cursor.ok_or_else(|| "no users to pass".into())
}

async fn lists(stage: &Stage, report: &mut Report) -> Result<()> {
    let followers = stage.scale.followers;
    let passed = ((DEEP_PAGE - 1) * PAGE).min(followers / 2);
    let cursor = cursor_after(stage, passed).await?;
    let page = |name: &str, cursor: Option<&str>| {
        Requests::new(stage.folder(), name, Order::Random, vec![wire::request("GET", &path_of_page(cursor, PAGE), &[])])
    };
    let (first, deep) = (page("page-first", None)?, page("page-deep", Some(&cursor))?);
    let (star, after) = (("star", STAR), ("after", followers - passed + 1));
    let first_sql = stage.script(report, "The first page, plain", "first-page.sql", FIRST_PAGE_SQL, &[star])?;
    let deep_sql = stage.script(report, "The deep page, plain", "deep-page.sql", DEEP_PAGE_SQL, &[star, after])?;
    report.explain(&format!(
        "**List pages** are `GET /v1/users/{{star}}/followers?limit=20` of a star with {} followers, the first page and the one after {} followers, \
         reached by walking; pgbench runs a keyset query for 21 rows on a table of the same followers, and makes no JSON of them.",
        grouped(float(followers)),
        grouped(float(passed)),
    ));
    let side = |name: &str, requests| Side {
        name: name.to_owned(),
        work: Work::Http { process: &stage.server, requests, connections: stage.scale.connections, counts_for: 1 },
    };
    let plain = |name: &str, script| Side { name: name.to_owned(), work: Work::Pgbench { pgbench: &stage.postgres.pgbench, script } };
    let sides = [
        side("first page", &first),
        plain("pgbench, first page", first_sql),
        side("deep page", &deep),
        plain("pgbench, deep page", deep_sql),
    ];
    let series = contest::run(&stage.client, stage.scale.rounds, &sides).await?;
    if let [first, first_plain, deep, deep_plain] = series.as_slice() {
        report.compare(FIRST, first, first_plain);
        report.compare(DEEP, deep, deep_plain);
        report.compare(EQUAL, deep, first);
    }
    Ok(())
}

async fn follows(stage: &Stage, report: &mut Report) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(11);
    let users = stage.scale.users;
    let followers = FOLLOWERS.min(users);
    let turns = stage.scale.rounds.count + 1;
    let count = usize::try_from(stage.scale.rounds.each.as_secs())? * MAX_FOLLOWS_PER_SECOND * turns;
    let polls = (1..=followers).map(|user| wire::request("GET", &format!("/v1/users/{user}/badges"), &[])).collect();
    load::send_all(stage.server.address, polls, stage.scale.connections).await?;
    let follows = (0..count)
        .map(|_| {
            let follower = rng.random_range(1..=followers);
            let followee = 1 + (follower + rng.random_range(0..users - 1)) % users;
            wire::request("PUT", &format!("/v1/users/{follower}/following/{followee}"), &[])
        })
        .collect();
    let requests = Requests::new(stage.folder(), "follows", Order::Each, follows)?;
    let script = stage.script(report, "The plain follow", "follow.sql", FOLLOW_SQL, &[("followers", followers), ("users", users)])?;
    report.explain(&format!(
        "**Follows** are of users drawn from all of them, by {} who have polled before. The plain design is one transaction each, which locks both users' rows \
         of counts, in one order, then writes both directions and both counts.",
        grouped(float(followers)),
    ));
    let sides = [
        Side { name: "pgbench, plain follows".to_owned(), work: Work::Pgbench { pgbench: &stage.postgres.pgbench, script } },
        Side {
            name: "follows".to_owned(),
            work: Work::Http { process: &stage.server, requests: &requests, connections: stage.scale.connections, counts_for: 1 },
        },
    ];
    stage.postgres.checkpoint().await?;
    let series = contest::run(&stage.client, stage.scale.rounds, &sides).await?;
    if let [plain, ours] = series.as_slice() {
        report.compare(FOLLOW, ours, plain);
    }
    Ok(())
}

/// Ten thousand users follow one star, all at once: its count must be no place where they queue.
async fn gain(stage: &Stage, report: &mut Report) -> Result<()> {
    let connections = stage.scale.connections;
    let fans = (1..=GAINED).map(|fan| wire::request("PUT", &format!("/v1/users/{fan}/following/{NEW_STAR}"), &[])).collect();
    let elapsed = load::send_all(stage.server.address, fans, connections).await?;
    let script = stage.script(report, "A plain star", "follow-star.sql", FOLLOW_STAR_SQL, &[("users", stage.scale.users)])?;
    let plain = stage.postgres.pgbench.run(&script, Until::Done(GAINED.div_ceil(connections))).await?;
    let rate = |elapsed: Duration| float(GAINED.try_into().unwrap_or(u64::MAX)) / elapsed.as_secs_f64();
    report.compare(GAIN, &Series::single("a star", rate(elapsed)), &Series::single("pgbench, a plain star", plain.per_second()));
    report.explain(&format!(
        "**A star that gains 10,000 followers** over {connections} connections took {:.2} s, and {:.2} s in the plain design, where all wait for the star's row.",
        elapsed.as_secs_f64(),
        float(u64::try_from(GAINED)?) / plain.per_second(),
    ));
    Ok(())
}

/// What each of a hundred others is to a user, both ways, against one HMGET of a hundred fields
/// that gives the same bytes.
async fn look_ups(stage: &Stage, report: &mut Report) -> Result<()> {
    let connections = stage.scale.connections;
    let (looking, looked_up) = (1..=LOOKING, LOOKING + 1..=LOOKING + LOOKED_UP);
    let ask = |user: u64, number: u64| {
        let ids: Vec<_> = (0..AT_ONCE).map(|at| (LOOKING + 1 + (number * 7 + at) % LOOKED_UP).to_string()).collect();
        wire::request("GET", &format!("/v1/users/{user}/relations?ids={}", ids.join(",")), &[])
    };
    let path = |number: u64| ask(1 + number % LOOKING, number);
    let requests = || (0..LOOK_UP_REQUESTS).map(path).collect::<Vec<_>>();
    let rate = |requests: u64, elapsed: Duration| float(requests) / elapsed.as_secs_f64();
    // Users who look for the first time, but were seen before: that is a write.
    let first = LOOKING + LOOKED_UP + 1;
    let polls = (first..first + COLD_REQUESTS).map(|user| wire::request("GET", &format!("/v1/users/{user}/badges"), &[])).collect();
    load::send_all(stage.server.address, polls, connections).await?;
    let cold =
        load::send_all(stage.server.address, (0..COLD_REQUESTS).map(|number| ask(first + number, number)).collect(), connections).await?;
    // All that is asked about, once.
    load::send_all(stage.server.address, requests(), connections).await?;
    let warm = load::send_all(stage.server.address, requests(), connections).await?;
    let answer = wire::ask_once(stage.server.address, &path(0)).await?;
    peers::fill_fields(&stage.redis, &looking.collect::<Vec<_>>(), &looked_up.collect::<Vec<_>>()).await?;
    let peer = peers::start(peers::Peer::Fields, &answer, &stage.redis, stage.folder()).await?;
    let plain = load::send_all(peer.address, requests(), connections).await?;
    let plain = Series::single("one HMGET", rate(LOOK_UP_REQUESTS, plain));
    report.compare(LOOK_UPS, &Series::single("look-ups", rate(LOOK_UP_REQUESTS, warm)), &plain);
    report.compare(COLD_LOOK_UPS, &Series::single("look-ups", rate(COLD_REQUESTS, cold)), &plain);
    report.explain(
        "**Look-ups** ask what each of 100 others is to a user, in both directions, so 200 facts, none older than the last acknowledged write; the HMGET reads 100 fields of \
         one hash, which nobody keeps right, and gives the same bytes. From Redis: where they were looked up before. From SQL: users who look for the first time, so that Redis is asked in vain, and what SQL tells is left there.",
    );
    Ok(())
}
