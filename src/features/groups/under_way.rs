//! The pages of one group that are under way, in one lane or side by side in two.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::delivery::DeliveryPage;
use super::fan_out_queue::FanOut;
use super::pages::{PageInLane, Stage, Step};
use crate::base::error::Error;
use crate::base::ids::GroupId;
use crate::engine::lanes::{self, Lanes, Queued};
use crate::failpoint;

/// How many pages of a group are under way at once: the next ones are read while the first commits. Side by
/// side there are two; the third is not answered yet, or queues up.
const PAGES_AHEAD: usize = 3;

/// How long a page waits until it can be beside the one before. Several times as long as a page takes.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A page that is under way.
struct SentPage {
    queued: Queued,
    rows: u64,
    ends_pass: bool,
    stage: watch::Receiver<Stage>,
}

/// The pages of a group that are under way.
pub(super) struct UnderWay<'a> {
    lanes: &'a Lanes,
    fan_out: &'a FanOut,
    group: GroupId,
    pages: VecDeque<SentPage>,
    /// By which key pages go through another lane than that of the group, if there is one.
    second_key: Option<i64>,
    /// Whether the last page did.
    in_second: bool,
    /// What became of the last one that has ended.
    last: Step,
}

impl<'a> UnderWay<'a> {
    /// None yet.
    pub(super) fn new(lanes: &'a Lanes, fan_out: &'a FanOut, group: GroupId) -> Self {
        let second_key = lanes.key_of_another(group.get());
        Self { lanes, fan_out, group, pages: VecDeque::new(), second_key, in_second: false, last: Step::Done }
    }

    /// Sends a page after those that are under way; false where one of them was not taken.
    pub(super) async fn send(&mut self, page: DeliveryPage) -> Result<bool, Error> {
        while self.pages.len() >= PAGES_AHEAD {
            self.end_first().await?;
            if self.last != Step::Done {
                return Ok(false);
            }
        }
        // A pass begins with the members with whom the last one may have ended.
        let may_be_beside = page.follows && page.from.up_to_ordinal > 0 && self.second_key.is_some();
        let before = if may_be_beside { self.begun().await } else { None };
        self.in_second ^= before.is_some();
        let (rows, ends_pass) = (page.rows(), page.to.delivered > page.from.delivered);
        let (stage, seen) = watch::channel(Stage::Waiting);
        let lane_key = self.second_key.filter(|_| self.in_second).unwrap_or(self.group.get());
        let command = Arc::new(PageInLane { page, lane_key, stage, before });
        let queued = self.lanes.queue(lanes::Job { command, key: None }).await?;
        self.pages.push_back(SentPage { queued, rows, ends_pass, stage: seen });
        Ok(true)
    }

    /// The last page, once the next one can be beside it in the other lane, to write its rows meanwhile: its own
    /// rows are locked, and all before it is committed. None where that takes long, as in a lane with many
    /// writes: then the next one queues up behind it.
    async fn begun(&mut self) -> Option<watch::Receiver<Stage>> {
        let last = self.pages.back()?.stage.clone();
        let count = self.pages.len();
        let ready = async {
            for (number, page) in (1..).zip(&mut self.pages) {
                let is_ready = |stage: &Stage| *stage == Stage::Committed || (number == count && *stage == Stage::Begun);
                // An error tells that it has failed.
                _ = page.stage.wait_for(is_ready).await;
            }
        };
        tokio::time::timeout(MAX_WAIT, ready).await.ok().map(|()| last)
    }

    /// Waits for the first of them.
    async fn end_first(&mut self) -> Result<(), Error> {
        let Some(page) = self.pages.pop_front() else { return Ok(()) };
        self.last = page.queued.answer().await?.value::<Step>()?;
        if self.last == Step::Done {
            if page.ends_pass {
                self.fan_out.end_round(self.group);
            }
            metrics::counter!("headmark_fan_out_rows_total").increment(page.rows);
            failpoint("fan_out::after_step");
        }
        Ok(())
    }

    /// Waits for all. The last one tells who goes on.
    pub(super) async fn end(mut self) -> Result<Step, Error> {
        while !self.pages.is_empty() {
            self.end_first().await?;
        }
        Ok(self.last)
    }
}
