//! What each feature is given of the engines and settings. To add a feature: its context here, and
//! its routes in `router.rs`.

use std::sync::Arc;

use crate::app::config::Config;
use crate::app::engines::Engines;
use crate::base::lately::Lately;
use crate::features::badges::http::BadgeContext;
use crate::features::broadcasts::http::BroadcastContext;
use crate::features::dots::http::DotContext;
use crate::features::events::EventContext;
use crate::features::feed::http::FeedContext;
use crate::features::groups;
use crate::features::groups::fan_out::FanOutContext;
use crate::features::groups::http::GroupContext;
use crate::features::inbox::http::InboxContext;
use crate::features::notifications::http::NotificationContext;
use crate::features::operations::Operations;
use crate::features::operations::http::OperationContext;
use crate::features::receipts::http::ReceiptContext;
use crate::features::relations::http::RelationContext;
use crate::features::relations::worker::WorkerContext;
use crate::features::relations::{FamiliarReader, Lookups};
use crate::features::removals::{self, RemovalKind};
use crate::features::users::settings_http::UserContext;
use crate::features::users::{LastSeen, LastSeenContext};
use crate::features::views::http::ViewContext;
use crate::http::served::{Callers, Served};
use crate::maintenance::push::PushContext;
use crate::maintenance::removal::{RemovalContext, Steps, user_steps};
use crate::maintenance::scrub::ScrubContext;
use crate::maintenance::user_export::UserExportContext;
use crate::summary::chat_list::ChatListContext;
use crate::summary::http::SummaryContext;

/// What the handlers and tasks of each feature work with.
#[derive(Debug)]
pub struct Contexts {
    pub badges: Served<BadgeContext>,
    pub broadcasts: Served<BroadcastContext>,
    pub chat_list: Served<ChatListContext>,
    pub dots: Served<DotContext>,
    pub events: Served<EventContext>,
    pub fan_out: Arc<FanOutContext>,
    pub feed: Served<FeedContext>,
    pub groups: Served<GroupContext>,
    pub inbox: Served<InboxContext>,
    pub notifications: Served<NotificationContext>,
    pub operations: Served<OperationContext>,
    pub last_seen: LastSeenContext,
    pub push: Arc<PushContext>,
    pub receipts: Served<ReceiptContext>,
    pub relations: Served<RelationContext>,
    pub removal: Arc<RemovalContext>,
    pub scrub: Arc<ScrubContext>,
    pub summary: Served<SummaryContext>,
    pub users: Served<UserContext>,
    pub user_export: Served<UserExportContext>,
    pub views: Served<ViewContext>,
    pub worker: Arc<WorkerContext>,
}

impl Contexts {
    /// Of a node with these engines and settings.
    #[must_use]
    pub fn new(engines: &Engines, config: &Config) -> Self {
        let callers = Callers { auth: Arc::clone(&engines.auth), witness: Arc::<LastSeen>::clone(&engines.last_seen) };
        let operations = callers.serve(engines.operations(config));
        let worker = Arc::new(engines.worker(config, operations.clone()));
        let groups = callers.serve(engines.groups(config));
        let Engines { lanes, db, heads, .. } = engines;
        Self {
            badges: callers.serve(BadgeContext { lanes: lanes.clone() }),
            broadcasts: callers.serve(engines.broadcasts()),
            dots: callers.serve(DotContext { lanes: lanes.clone(), heads: Arc::clone(heads) }),
            events: callers.serve(engines.event_stream(config)),
            fan_out: Arc::new(engines.fan_out()),
            feed: callers.serve(FeedContext { lanes: lanes.clone(), db: db.clone(), config: config.feed.clone() }),
            chat_list: callers.serve(ChatListContext { groups: groups.clone(), summaries: Arc::clone(&engines.summaries) }),
            groups,
            inbox: callers.serve(engines.inbox(config)),
            notifications: callers.serve(engines.notifications(config)),
            last_seen: engines.last_seen(config),
            push: Arc::new(engines.push()),
            receipts: callers.serve(engines.receipts()),
            relations: callers.serve(engines.relations(config, worker.clone())),
            operations,
            removal: Arc::new(engines.removal(config)),
            scrub: Arc::new(engines.scrub()),
            summary: callers.serve(engines.summary()),
            users: callers.serve(engines.users()),
            user_export: callers.serve(UserExportContext::new(&config.user_export, engines.db.clone())),
            views: callers.serve(engines.views(config)),
            worker,
        }
    }
}

impl Engines {
    fn broadcasts(&self) -> BroadcastContext {
        BroadcastContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            pages: self.pages.clone(),
            withdrawn: Lately::default(),
            heads: Arc::clone(&self.heads),
            entries: Arc::clone(&self.entries),
            clock: self.clock.clone(),
        }
    }

    fn event_stream(&self, config: &Config) -> EventContext {
        EventContext {
            db: self.db.clone(),
            events: Arc::clone(&self.events),
            polling: Arc::clone(&self.polling),
            config: config.events.clone(),
        }
    }

    fn fan_out(&self) -> FanOutContext {
        FanOutContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            guard: Arc::clone(&self.guard),
            fan_out: Arc::clone(&self.fan_out),
            clock: self.clock.clone(),
        }
    }

    fn push(&self) -> PushContext {
        PushContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            guard: Arc::clone(&self.guard),
            summaries: Arc::clone(&self.summaries),
            clock: self.clock.clone(),
        }
    }

    fn removal(&self, config: &Config) -> RemovalContext {
        let (db, lanes, cache, clock) = (self.db.clone(), self.lanes.clone(), Arc::clone(&self.cache), self.clock.clone());
        let engines = Arc::new(removals::Engines { db, lanes, cache, events: Arc::clone(&self.events), clock });
        RemovalContext {
            engines,
            guard: Arc::clone(&self.guard),
            steps: Steps::new([
                (RemovalKind::User, user_steps(config.relations.terms().badges, &config.notifications)),
                (RemovalKind::Group, groups::deletion::steps()),
            ]),
        }
    }

    fn receipts(&self) -> ReceiptContext {
        ReceiptContext { entries: Arc::clone(&self.entries), receipts: Arc::clone(&self.receipts), polling: Arc::clone(&self.polling) }
    }

    fn users(&self) -> UserContext {
        UserContext {
            lanes: self.lanes.clone(),
            entries: Arc::clone(&self.entries),
            group_changes: Arc::clone(&self.group_changes),
            clock: self.clock.clone(),
        }
    }

    fn groups(&self, config: &Config) -> GroupContext {
        GroupContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            pages: self.pages.clone(),
            recalled: Lately::default(),
            entries: Arc::clone(&self.entries),
            chats: Arc::clone(&self.chats),
            heads: Arc::clone(&self.heads),
            changes: Arc::clone(&self.group_changes),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            config: config.groups.clone(),
        }
    }

    fn inbox(&self, config: &Config) -> InboxContext {
        InboxContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            entries: Arc::clone(&self.entries),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            config: config.inbox.clone(),
            repeated: Lately::default(),
        }
    }

    fn notifications(&self, config: &Config) -> NotificationContext {
        NotificationContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            entries: Arc::clone(&self.entries),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            config: config.notifications.clone(),
        }
    }

    fn operations(&self, config: &Config) -> OperationContext {
        let operations = Operations::new(config.operations.clone(), self.auth.is_open());
        OperationContext { db: self.db.clone(), clock: self.clock.clone(), operations }
    }

    fn worker(&self, config: &Config, accepted: Served<OperationContext>) -> WorkerContext {
        WorkerContext { lanes: self.lanes.clone(), relations: config.relations.clone(), accepted }
    }

    fn last_seen(&self, config: &Config) -> LastSeenContext {
        LastSeenContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            last_seen: Arc::clone(&self.last_seen),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            forget_after_days: config.last_seen.forget_after_days,
        }
    }

    fn relations(&self, config: &Config, worker: Arc<WorkerContext>) -> RelationContext {
        let Self { db, cache, guard, hot, .. } = self;
        let turns = &self.receipts.turns;
        RelationContext {
            lanes: self.lanes.clone(),
            db: db.clone(),
            pages: self.pages.clone(),
            entries: Arc::clone(&self.entries),
            looks: Lookups::new(&config.relations, db.clone(), Arc::clone(cache), Arc::clone(guard), Arc::clone(turns), Arc::clone(hot)),
            familiar: FamiliarReader::new(db.clone(), self.pages.clone(), Arc::clone(turns), Arc::clone(hot)),
            hot: Arc::clone(hot),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            config: config.relations.clone(),
            worker,
        }
    }

    fn scrub(&self) -> ScrubContext {
        ScrubContext {
            db: self.db.clone(),
            cache: Arc::clone(&self.cache),
            entries: Arc::clone(&self.entries),
            guard: Arc::clone(&self.guard),
            last_seen: Arc::clone(&self.last_seen),
        }
    }

    fn summary(&self) -> SummaryContext {
        SummaryContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            summaries: Arc::clone(&self.summaries),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
        }
    }

    fn views(&self, config: &Config) -> ViewContext {
        ViewContext {
            lanes: self.lanes.clone(),
            db: self.db.clone(),
            entries: Arc::clone(&self.entries),
            reader: Arc::clone(&self.views),
            heads: Arc::clone(&self.heads),
            polling: Arc::clone(&self.polling),
            clock: self.clock.clone(),
            config: config.views.clone(),
        }
    }
}
