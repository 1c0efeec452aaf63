//! What works on changed numbers of users with a push device works with this.

use std::sync::Arc;

use crate::base::clock::{Clock, UnixMs};
use crate::db::Db;
use crate::engine::guard::Guard;
use crate::engine::lanes::Lanes;
use crate::features::push::SHOWN_EVERYWHERE_MS;
use crate::summary::Summaries;

/// How far apart two passes of a job begin at least, where one node alone shows everything at once.
const TOLD_EVERY_MS: i64 = 1000;

/// The engines and what knows of ends.
#[derive(Debug)]
pub struct PushContext {
    pub lanes: Lanes,
    pub db: Db,
    pub guard: Arc<Guard>,
    /// What knows when numbers change by themselves.
    pub summaries: Arc<Summaries>,
    pub clock: Clock,
}

impl PushContext {
    /// When what was committed by now is told: once all nodes show it, and not without a pause.
    pub(super) fn told_at(&self) -> UnixMs {
        let later_ms = if self.db.is_shared() { SHOWN_EVERYWHERE_MS } else { TOLD_EVERY_MS };
        UnixMs(self.clock.now().0 + later_ms)
    }

    /// What ended until then has ended by the clock of every node.
    pub(super) fn ended_everywhere(&self) -> UnixMs {
        UnixMs(self.clock.now().0 - SHOWN_EVERYWHERE_MS)
    }
}
