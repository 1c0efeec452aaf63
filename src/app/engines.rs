//! The engines of a node.

use std::sync::Arc;

use crate::app::serve::Runtimes;
use crate::base::clock::Clock;
use crate::cache::Cache;
use crate::db::{Db, PageReads};
use crate::engine::entries::Entries;
use crate::engine::events::Publisher;
use crate::engine::guard::Guard;
use crate::engine::heads::Heads;
use crate::engine::lanes::Lanes;
use crate::features::groups::changes::GroupChanges;
use crate::features::groups::chats::Chats;
use crate::features::groups::fan_out_queue::FanOut;
use crate::features::receipts::Receipts;
use crate::features::relations::HotUsers;
use crate::features::users::LastSeen;
use crate::features::views;
use crate::http::auth::Auth;
use crate::http::polling::Polling;
use crate::summary::Summaries;

/// The engines of a running node.
#[derive(Debug)]
pub struct Engines {
    /// Who may call.
    pub auth: Arc<Auth>,
    /// The one way to write.
    pub lanes: Lanes,
    pub entries: Arc<Entries>,
    pub chats: Arc<Chats>,
    pub views: Arc<views::Reader>,
    pub summaries: Arc<Summaries>,
    pub db: Db,
    /// Where pages are read that may be a moment old.
    pub pages: PageReads,
    pub cache: Arc<Cache>,
    pub guard: Arc<Guard>,
    pub heads: Arc<Heads>,
    /// Who was seen.
    pub last_seen: Arc<LastSeen>,
    pub clock: Clock,
    /// The groups that are to be fanned out.
    pub fan_out: Arc<FanOut>,
    /// The changes that this node makes to groups.
    pub group_changes: Arc<GroupChanges>,
    /// Who has read what in groups.
    pub receipts: Arc<Receipts>,
    /// What is shown of much-read users from memory.
    pub hot: Arc<HotUsers>,
    /// What numbers events.
    pub events: Arc<Publisher>,
    pub polling: Arc<Polling>,
    /// Where metrics are read.
    pub metrics: metrics_exporter_prometheus::PrometheusHandle,
    /// What serves the connections.
    pub runtimes: Runtimes,
}

impl Engines {
    /// Whether no restart is needed, once all threads have answered. It waits without end where one does not. A store
    /// that is away is no reason: no restart brings it back.
    pub(crate) async fn are_healthy(&self) -> bool {
        self.runtimes.answered().await;
        !self.lanes.have_failed()
    }
}
