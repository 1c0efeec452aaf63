//! The end: rows, answers of every node, and what was acknowledged must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::Run;
use super::fleet::Fleet;
use super::ledger::{self, BADGES, LARGE_GROUP, STEADY_GROUPS};
use super::watchers::FRESHNESS;
use crate::support::{self, Client, Tier};

/// How long deliveries and caches have to come to rest.
const REST: Duration = Duration::from_secs(60);

/// How long a recount may take: after an hour there are millions of rows.
const RECOUNT: Duration = Duration::from_secs(600);

/// Compares everything. The load has ended.
pub async fn pronounce(fleet: &Fleet, run: &Run) {
    let clients = run.nodes.up();
    wait_for_rest(run, &clients).await;
    for client in &clients {
        for user in ledger::users() {
            counters(run, client, user).await;
            lists(run, client, user).await;
        }
        for group in STEADY_GROUPS {
            history(run, client, group).await;
        }
        let metrics = client.get("/metrics").await.text;
        let drift = metrics.lines().find(|line| line.starts_with("headmark_drift_total") && !line.ends_with(" 0"));
        run.findings.check(drift.is_none(), || format!("the scrubber found drift: {drift:?}"));
        let panics = metrics.lines().find(|line| line.starts_with("headmark_http_panics_total") && !line.ends_with(" 0"));
        run.findings.check(panics.is_none(), || format!("a node caught panics: {panics:?}"));
    }
    // What users share may take this long to show on the other nodes.
    tokio::time::sleep(FRESHNESS).await;
    agree(run, &clients).await;
    let rows = inboxes(run, &clients[0]).await + listeners(run, &clients[0]).await;
    run.findings.say(&format!("{rows} inbox rows compared"));
    recount(fleet, run).await;
}

/// Waits until nothing is left to deliver.
async fn wait_for_rest(run: &Run, clients: &[Client]) {
    let give_up = tokio::time::Instant::now() + REST;
    loop {
        let inbox = all_rows(&clients[0], 1).await;
        let delivered = inbox.iter().filter(|row| is_of(row, STEADY_GROUPS[1])).count();
        let last = all_rows(&clients[0], ledger::listeners().next_back().unwrap_or_default()).await.len();
        let is_over = delivered >= sent_to(run, STEADY_GROUPS[1]).len() && last >= sent_to(run, LARGE_GROUP).len();
        if is_over || tokio::time::Instant::now() > give_up {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn counters(run: &Run, client: &Client, user: i64) {
    let reply = client.get(&format!("/v1/users/{user}/badges")).await;
    run.findings.check(reply.body["degraded"] == false, || format!("user {user} is degraded at the end: {}", reply.text));
    for badge in BADGES {
        let tally = run.ledger.note(|noted| noted.counters.get(&(user, badge)).cloned().unwrap_or_default());
        let unread = (tally.up_to + 1..=tally.added).filter(|position| !tally.retracted.contains(position)).count();
        let expected = (tally.added, i64::try_from(unread).unwrap());
        let shown = &reply.body["counters"][badge];
        let shown = (shown["head"].as_i64().unwrap_or_default(), shown["unread"].as_i64().unwrap_or_default());
        run.findings.check(shown == expected, || format!("user {user}: {badge} is {shown:?} (head, unread), not {expected:?}"));
    }
    let posts = run.ledger.note(|noted| noted.posts.get(&user).copied().unwrap_or_default());
    let shown = client.get(&format!("/v1/users/{user}/posts/count")).await.body["posts"].as_i64();
    run.findings.check(shown == Some(posts), || format!("user {user} has {shown:?} posts, not {posts}"));
}

/// A count equals its list; a follow stands in both lists; a mutual one is symmetric.
async fn lists(run: &Run, client: &Client, user: i64) {
    let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.body;
    for (list, count) in [("following", "following"), ("followers", "followers"), ("mutuals", "mutuals"), ("blocks", "blocked")] {
        let items = client.walk(&format!("/v1/users/{user}/{list}"), 20).await;
        let length = i64::try_from(items.len()).unwrap();
        run.findings.check(counts[count] == length, || format!("user {user}: {list} has {length}, counted {counts}"));
        if list == "following" {
            for item in items {
                let target = item["user_id"].as_str().unwrap_or_default().to_owned();
                let fans = client.walk(&format!("/v1/users/{target}/followers"), 100).await;
                let user = user.to_string();
                let is_there = fans.iter().any(|fan| fan["user_id"].as_str() == Some(&user));
                run.findings.check(is_there, || format!("{user} follows {target}, whose list lacks {user}"));
            }
        }
    }
}

/// A steady group has each acknowledged message, once, with dense seqs.
async fn history(run: &Run, client: &Client, group: i64) {
    let (mut after, mut shown) = (0, BTreeMap::new());
    loop {
        let page = client.get(&format!("/v1/groups/{group}/messages?after={after}&limit=100")).await.body;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        let Some(last) = items.last() else { break };
        after = last["seq"].as_i64().unwrap();
        for item in items {
            shown.insert(item["seq"].as_i64().unwrap(), item["content"].as_str().unwrap_or_default().to_owned());
        }
    }
    run.findings.check(shown.keys().copied().eq(1..=after), || format!("the seqs of group {group} have gaps below {after}"));
    let contents: BTreeSet<&String> = shown.values().collect();
    run.findings.check(contents.len() == shown.len(), || format!("group {group} has a message twice"));
    let noted: Vec<(i64, String)> = run.ledger.note(|noted| {
        noted.messages.iter().filter(|((of, _), _)| *of == group).map(|((_, seq), sent)| (*seq, sent.content.clone())).collect()
    });
    run.findings.check(noted.len() == shown.len(), || format!("group {group}: {} sent, {} there", noted.len(), shown.len()));
    for (seq, content) in noted {
        run.findings.check(shown.get(&seq) == Some(&content), || format!("message {group}/{seq} is {:?}, not {content}", shown.get(&seq)));
    }
}

/// Every node shows the same of every user.
async fn agree(run: &Run, clients: &[Client]) {
    for user in ledger::users() {
        let mut shown = Vec::new();
        for client in clients {
            let mut body = client.get(&format!("/v1/users/{user}/badges")).await.body;
            if let Some(fields) = body.as_object_mut() {
                fields.remove("shared_revision");
            }
            shown.push(body);
        }
        run.findings.check(shown.windows(2).all(|pair| pair[0] == pair[1]), || format!("nodes disagree on user {user}: {shown:?}"));
    }
}

fn is_of(row: &Value, group: i64) -> bool {
    row["group_id"].as_str() == Some(&group.to_string())
}

async fn all_rows(client: &Client, user: i64) -> Vec<Value> {
    let (mut rows, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/v1/users/{user}/inbox?after={after}&limit=100")).await.body;
        rows.extend(page["items"].as_array().cloned().unwrap_or_default());
        if page["has_more"] != true {
            return rows;
        }
        after = page["next_after"].as_i64().unwrap();
    }
}

/// Inboxes have every message to the steady group that delivers by writing, and every direct
/// message.
async fn inboxes(run: &Run, client: &Client) -> usize {
    let group = STEADY_GROUPS[1];
    let expected = sent_to(run, group);
    let mut compared = 0;
    for user in ledger::users() {
        let rows = all_rows(client, user).await;
        compared += rows.len();
        let seqs = rows.iter().map(|row| row["seq"].as_i64().unwrap());
        run.findings.check(seqs.eq(1..=i64::try_from(rows.len()).unwrap()), || format!("the inbox of {user} has gaps"));
        let directs = run.ledger.note(|noted| {
            let directs = noted.directs.iter().filter(|((receiver, _), _)| *receiver == user);
            directs.map(|((_, seq), sent)| (*seq, sent.content.clone())).collect::<Vec<_>>()
        });
        let delivered: Vec<i64> = rows.iter().filter(|row| is_of(row, group)).map(|row| row["group_seq"].as_i64().unwrap()).collect();
        let distinct: BTreeSet<i64> = delivered.iter().copied().collect();
        run.findings.check(distinct.len() == delivered.len(), || format!("the inbox of {user} has a group message twice"));
        let missing: Vec<&i64> = expected.difference(&distinct).collect();
        run.findings.check(missing.is_empty(), || format!("the inbox of {user} lacks {missing:?} of group {group}"));
        for (seq, content) in directs {
            let row = usize::try_from(seq - 1).ok().and_then(|at| rows.get(at));
            let is_there = row.is_some_and(|row| row["content"] == content);
            run.findings.check(is_there, || format!("the inbox of {user} at {seq} is {row:?}, not {content}"));
        }
    }
    compared
}

/// Each listener has every message to the large group, once and in order, and nothing else.
async fn listeners(run: &Run, client: &Client) -> usize {
    let expected: Vec<i64> = sent_to(run, LARGE_GROUP).into_iter().collect();
    let mut compared = 0;
    for user in ledger::listeners().step_by(50).chain(ledger::listeners().next_back()) {
        let rows = all_rows(client, user).await;
        compared += rows.len();
        let of = |name: &str| rows.iter().map(|row| row[name].as_i64().unwrap_or_default()).collect::<Vec<_>>();
        let (seqs, got) = (of("seq"), of("group_seq"));
        let is_dense = seqs.iter().copied().eq(1..=i64::try_from(rows.len()).unwrap());
        run.findings.check(is_dense && got == expected, || format!("the inbox of {user} has {got:?} of {expected:?}, at {seqs:?}"));
    }
    compared
}

/// The messages that were acknowledged of a group.
fn sent_to(run: &Run, group: i64) -> BTreeSet<i64> {
    run.ledger.note(|noted| noted.messages.keys().filter(|(of, _)| *of == group).map(|(_, seq)| *seq).collect())
}

/// `headmark recount --dry-run`, which on SQLite needs the file for itself or reads beside the
/// node.
async fn recount(fleet: &Fleet, run: &Run) {
    let mut args = vec!["recount".to_owned(), "--dry-run".to_owned()];
    args.extend(fleet.world.store_args());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = support::run_with_input(&args, &[], Vec::new());
    let Ok(output) = tokio::time::timeout(RECOUNT, output).await else {
        return run.findings.add(&format!("the recount did not end within {RECOUNT:?}"));
    };
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    run.findings.check(output.status.success(), || format!("recount ({:?}): {told}", fleet.world.tier));
    run.findings.check(fleet.world.tier == Tier::Embedded || told.contains("differences"), || format!("recount said {told}"));
}
