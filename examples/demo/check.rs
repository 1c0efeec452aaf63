//! The end: every inbox, polled one by one and asked for in batches, against a direct count over
//! the file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Result;
use crate::client::{Client, MAX_QUERY, Sheet};
use crate::data::{Counted, Log};
use crate::inbox::{Differences, Inbox, View};
use crate::replay::{Outcome, Stage, shifted};

/// Polls in flight while checking.
const CONCURRENCY: usize = 32;
/// Final polls of one inbox while the server says that a store is away, and the time between two.
const MAX_DEGRADED_POLLS: u32 = 10;
const DEGRADED_WAIT: Duration = Duration::from_millis(500);

/// What was compared, for the report.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) inboxes: usize,
    pub(crate) messages: i64,
    pub(crate) unread: i64,
    /// The busiest inboxes first.
    pub(crate) rows: Vec<Row>,
}

/// One inbox at the end.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) channel: u64,
    pub(crate) messages: i64,
    pub(crate) unread: i64,
    pub(crate) senders: usize,
}

/// The first user of the log who has a count in the badge already.
pub(crate) async fn used(client: &Client, log: &Log, offset: u64) -> Result<Option<u64>> {
    let users: Vec<u64> = log.channels().into_iter().map(|channel| shifted(channel, offset)).collect::<Result<_>>()?;
    for some in users.chunks(MAX_QUERY) {
        for (user, summary) in some.iter().zip(client.query(some).await?) {
            if summary.view(client.badge()).head != 0 {
                return Ok(Some(*user));
            }
        }
    }
    Ok(None)
}

/// Compares every inbox. `is_alone`: nobody else uses the server, so the unread summary's total is
/// the badge's number.
pub(crate) async fn run(stage: &Arc<Stage>, log: &Log, is_alone: bool) -> Result<Checked> {
    let counted = log.count();
    if !stage.inboxes.iter().map(|inbox| inbox.channel).eq(counted.keys().copied()) {
        stage.final_differences.add_line("the inboxes that were replayed are not those in the file".into());
    }
    let polled = poll_all(stage).await?;
    let mut checked = Checked { inboxes: 0, messages: 0, unread: 0, rows: Vec::new() };
    for (inbox, outcome) in stage.inboxes.iter().zip(&polled) {
        let expected = counted.get(&inbox.channel);
        let Some(view) = outcome.view else {
            stage.final_differences.add(inbox, "final poll", "degraded: a store of the server is away");
            continue;
        };
        compare(&stage.final_differences, inbox, view, expected);
        if is_alone && outcome.total != Some(view.unread) {
            stage.final_differences.add(inbox, "final poll", &format!("total {:?} with unread {}", outcome.total, view.unread));
        }
        checked.inboxes += 1;
        checked.messages += view.head;
        checked.unread += view.unread;
        let senders = expected.map_or(0, |counted| counted.senders.len());
        checked.rows.push(Row { channel: inbox.channel, messages: view.head, unread: view.unread, senders });
    }
    compare_batches(stage, &polled, is_alone).await?;
    checked.rows.sort_by_key(|row| (std::cmp::Reverse(row.messages), row.channel));
    Ok(checked)
}

fn compare(differences: &Differences, inbox: &Inbox, view: View, counted: Option<&Counted>) {
    let messages = counted.map_or(0, |counted| counted.messages);
    if view.head != messages {
        differences.add(inbox, "final poll", &format!("head {}, but {messages} rows in the file", view.head));
    }
    let unread = messages - inbox.mark();
    if view.unread != unread {
        differences.add(
            inbox,
            "final poll",
            &format!("unread {}, but {messages} rows less the mark {} is {unread}", view.unread, inbox.mark()),
        );
    }
}

/// Polls every inbox on its own, without a tag. The outcomes are in the order of the inboxes.
async fn poll_all(stage: &Arc<Stage>) -> Result<Vec<Outcome>> {
    let mut tasks = JoinSet::new();
    let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
    for first in 0..CONCURRENCY {
        let stage = Arc::clone(stage);
        tasks.spawn(async move {
            let mut share = Vec::new();
            for (position, inbox) in stage.inboxes.iter().enumerate().skip(first).step_by(CONCURRENCY) {
                share.push((position, poll_whole(&stage, inbox).await?));
            }
            Ok::<_, crate::Failure>(share)
        });
    }
    while let Some(share) = tasks.join_next().await {
        outcomes.extend(share??);
    }
    Ok(outcomes.into_values().collect())
}

/// Polls until the answer is no longer degraded, for a while: a store that comes back within it is
/// no difference.
async fn poll_whole(stage: &Stage, inbox: &Inbox) -> Result<Outcome> {
    for _ in 1..MAX_DEGRADED_POLLS {
        let outcome = stage.poll(inbox, false).await?;
        if outcome.view.is_some() {
            return Ok(outcome);
        }
        tokio::time::sleep(DEGRADED_WAIT).await;
    }
    stage.poll(inbox, false).await
}

/// The batch route must say the same as the polls, in the order asked.
async fn compare_batches(stage: &Stage, polled: &[Outcome], is_alone: bool) -> Result<()> {
    for (inboxes, outcomes) in stage.inboxes.chunks(MAX_QUERY).zip(polled.chunks(MAX_QUERY)) {
        let users: Vec<u64> = inboxes.iter().map(|inbox| inbox.user).collect();
        let summaries = stage.client.query(&users).await?;
        if summaries.len() != inboxes.len() {
            stage.final_differences.add_line(format!("batch query: {} summaries for {} users", summaries.len(), inboxes.len()));
        }
        for ((inbox, outcome), summary) in inboxes.iter().zip(outcomes).zip(&summaries) {
            if let Some(what) = disagreement(inbox, outcome, summary, stage.client.badge(), is_alone) {
                stage.final_differences.add(inbox, "batch query", &what);
            }
        }
    }
    Ok(())
}

fn disagreement(inbox: &Inbox, outcome: &Outcome, summary: &Sheet, badge: &str, is_alone: bool) -> Option<String> {
    if summary.user_id != inbox.user.to_string() {
        return Some(format!("the summary of user {} in this place", summary.user_id));
    }
    let (batch, single) = (summary.view(badge), outcome.view?);
    // Elsewhere somebody else may have changed the total in between.
    if batch != single || (is_alone && summary.total != outcome.total) {
        return Some(format!("{batch:?} with total {:?}, but a poll shows {single:?} with total {:?}", summary.total, outcome.total));
    }
    None
}
