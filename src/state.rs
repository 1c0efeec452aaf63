//! What every handler works with.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::cache::Cache;
use crate::clock::Clock;
use crate::db::Db;
use crate::events::{EventConfig, Publisher};
use crate::feed::FeedConfig;
use crate::groups::fan_out::FanOut;
use crate::guard::Guard;
use crate::heads::Heads;
use crate::http::shares::Shares;
use crate::inbox::InboxConfig;
use crate::lane::Lanes;
use crate::notifications::NotificationConfig;
use crate::operations::Operations;
use crate::presence::{Presence, Witness};
use crate::receipts::Receipts;
use crate::relations::{Hot, Looks, RelationConfig};
use crate::sheet::Sheets;
use crate::views::ViewConfig;

/// The engines of a running node, shared: every request clones it, so a clone is one count.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Engines>);

impl AppState {
    /// Shares the engines.
    #[must_use]
    pub fn new(engines: Engines) -> Self {
        Self(Arc::new(engines))
    }
}

impl Deref for AppState {
    type Target = Engines;

    fn deref(&self) -> &Engines {
        &self.0
    }
}

/// The engines of a running node.
#[derive(Debug)]
pub struct Engines {
    /// Who may call.
    pub auth: Arc<Auth>,
    /// The one way to write.
    pub lanes: Lanes,
    /// The one way to read.
    pub sheets: Sheets,
    /// The truth.
    pub db: Db,
    /// What polls read.
    pub cache: Arc<Cache>,
    /// What all nodes agree on.
    pub guard: Arc<Guard>,
    /// The heads of the streams that users share.
    pub heads: Arc<Heads>,
    /// Who was seen.
    pub presence: Arc<Presence>,
    /// The time.
    pub clock: Clock,
    /// How follows are bounded, and what they raise.
    pub relations: RelationConfig,
    /// The groups that are to be fanned out.
    pub fan_out: Arc<FanOut>,
    /// Who has read what in groups.
    pub receipts: Arc<Receipts>,
    /// What is shown of much-read users from memory.
    pub hot: Arc<Hot>,
    /// Look-ups of relations, and whole lists.
    pub looks: Looks,
    /// What numbers events.
    pub events: Arc<Publisher>,
    /// How events are kept.
    pub event_config: EventConfig,
    /// Writes that are accepted before they are done.
    pub operations: Operations,
    /// How the feed is kept.
    pub feed: FeedConfig,
    /// How inboxes are kept.
    pub inbox: InboxConfig,
    /// How notifications are kept.
    pub notifications: NotificationConfig,
    /// How views are kept.
    pub views: ViewConfig,
    /// The pace asked of polling clients, in seconds.
    pub poll_interval: u32,
    /// After how many days a user who stays away is forgotten.
    pub forget_after_days: i64,
    /// Room left for waiting polls.
    pub waiting: Semaphore,
    /// What each caller holds of it.
    pub waiting_shares: Arc<Shares>,
    /// Room for waiting polls in all.
    pub waiting_room: usize,
    /// Cancelled when the node is to stop: waiting polls are answered, `/readyz` says no.
    pub draining: CancellationToken,
    /// Where metrics are read.
    pub metrics: metrics_exporter_prometheus::PrometheusHandle,
}

impl FromRef<AppState> for Witness {
    fn from_ref(state: &AppState) -> Self {
        Self(Some(Arc::clone(&state.presence)))
    }
}

impl FromRef<AppState> for Arc<Auth> {
    fn from_ref(state: &AppState) -> Self {
        Self::clone(&state.auth)
    }
}
