//! The pages of one group that are under way, in one lane or side by side in two.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::delivery::DeliveryPage;
use super::fan_out_queue::FanOut;
use super::pages::{PageInLane, Stage, Step};
use crate::base::error::Error;
use crate::base::ids::GroupId;
use crate::engine::lanes::{self, Lanes, Queued};
use crate::failpoint;

/// How many pages of a group are under way at once in one lane: the next ones are read while the first
/// commits. Side by side there are two.
const PAGES_AHEAD: usize = 3;

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
    /// Which of two lanes the last one went through.
    in_second: bool,
    /// What became of the last one that has ended.
    last: Step,
}

impl<'a> UnderWay<'a> {
    /// None yet.
    pub(super) fn new(lanes: &'a Lanes, fan_out: &'a FanOut, group: GroupId) -> Self {
        Self { lanes, fan_out, group, pages: VecDeque::new(), in_second: false, last: Step::Done }
    }

    /// Sends a page after those that are under way; false where one of them was not taken. In a lane they
    /// queue up. Beside one in another lane only the next may be: it writes its rows meanwhile, and waits
    /// with its progress for that of the first.
    pub(super) async fn send(&mut self, page: DeliveryPage) -> Result<bool, Error> {
        // A pass begins with the members with whom the last one may have ended.
        let is_beside = page.follows && page.from.up_to_ordinal > 0 && self.lanes.count() > 1;
        while self.pages.len() >= PAGES_AHEAD {
            self.end_first().await?;
            if self.last != Step::Done {
                return Ok(false);
            }
        }
        let mut before = None;
        if is_beside {
            self.in_second = !self.in_second;
            before = self.pages.back().map(|page| page.stage.clone());
            let earlier = self.pages.len().saturating_sub(1);
            for page in self.pages.iter_mut().take(earlier) {
                // Here and below an error tells that it has failed.
                _ = page.stage.wait_for(|stage| *stage == Stage::Committed).await;
            }
        }
        if let Some(before) = &mut before {
            _ = before.wait_for(|stage| *stage != Stage::Waiting).await;
        }
        let (rows, ends_pass) = (page.rows(), page.to.delivered > page.from.delivered);
        let (stage, seen) = watch::channel(Stage::Waiting);
        let lane_key = self.group.get().wrapping_add(i64::from(self.in_second));
        let command = Arc::new(PageInLane { page, lane_key, stage, before });
        let queued = self.lanes.queue(lanes::Job { command, key: None }).await?;
        self.pages.push_back(SentPage { queued, rows, ends_pass, stage: seen });
        Ok(true)
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
