//! What answers polls of users' numbers, put together over the stores.

use std::sync::Arc;

use crate::app::ENTRY_READER;
use crate::app::config::Config;
use crate::app::stores::Stores;
use crate::base::clock::Clock;
use crate::engine::entries::Entries;
use crate::engine::lanes::Lanes;
use crate::engine::turns::Turns;
use crate::features::badges::summary::CounterPart;
use crate::features::broadcasts::summary::BroadcastPart;
use crate::features::dots::summary::DotPart;
use crate::features::feed::Feeds;
use crate::features::feed::summary::FeedPart;
use crate::features::groups::chats::Chats;
use crate::features::notifications::summary::NotificationPart;
use crate::features::users::LastSeen;
use crate::features::views;
use crate::summary::{ChatPart, Parts, Summaries};

/// The readers of a node.
pub(super) struct Readers {
    pub(super) entries: Arc<Entries>,
    pub(super) last_seen: Arc<LastSeen>,
    pub(super) views: Arc<views::Reader>,
    pub(super) chats: Arc<Chats>,
    pub(super) summaries: Arc<Summaries>,
}

impl Readers {
    /// Over these stores, with the turns that all reads of SQL take; the lanes are for what a poll writes.
    pub(super) fn new(config: &Config, stores: &Stores, lanes: &Lanes, turns: &Arc<Turns>, clock: &Clock) -> Self {
        let Stores { db, cache, guard, heads, .. } = stores;
        let entries = Entries::new(db.clone(), Arc::clone(cache), Arc::clone(guard), Arc::clone(heads), Arc::clone(turns), &ENTRY_READER);
        let entries = Arc::new(entries);
        let last_seen = LastSeen::new(db.clone(), lanes.clone(), Arc::clone(guard), Arc::clone(&entries), Arc::clone(heads), clock.clone());
        let feeds = Feeds::new(&config.feed, db.clone(), Arc::clone(cache), Arc::clone(guard), Arc::clone(heads), Arc::clone(turns));
        let views = Arc::new(views::Reader::new(db.clone(), Arc::clone(heads)));
        let chats = Arc::new(Chats::new(db.clone(), Arc::clone(heads)));
        let parts = Parts {
            counters: CounterPart,
            broadcasts: BroadcastPart,
            dots: DotPart,
            feed: FeedPart { feeds: Arc::new(feeds), clock: clock.clone() },
            chats: ChatPart { db: db.clone(), entries: Arc::clone(&entries), chats: Arc::clone(&chats), clock: clock.clone() },
            notifications: NotificationPart,
        };
        let (heads_of, views_of) = (Arc::clone(heads), Arc::clone(&views));
        let summaries = Summaries { entries: Arc::clone(&entries), heads: heads_of, parts, views: views_of, clock: clock.clone() };
        Self { entries, last_seen: Arc::new(last_seen), views, chats, summaries: Arc::new(summaries) }
    }
}
