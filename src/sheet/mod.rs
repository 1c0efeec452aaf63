//! The one way to read: a user's sheet, from the cache where it is sure to be as new as the last acknowledged write, else from SQL; together with what users
//! share, which each node holds in memory (`crate::heads`).
//!
//! `parts.rs` is how an entry holds each kind, `whole.rs` puts a sheet together, `out.rs` shows it.

mod chats;
mod explain;
mod feed;
mod out;
mod parts;
mod turns;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;

use crate::cache::{Cache, Entry, FillToken, Lookup, Parts, Revision};
use crate::db::Db;
use crate::error::{Code, Error, Problem};
use crate::feed::Feeds;
use crate::groups::chats::Chats;
use crate::guard::{Guard, Trust};
use crate::heads::Heads;
use crate::http::shares::{Bounds, Shares};
use crate::ids::UserId;
use crate::marks::snapshot::{Snapshot, read_users};
use crate::views;

pub use self::chats::{UserGroup, UserGroups};
pub use self::explain::{
    ChannelTermsOut, ChatTermsOut, CounterTermsOut, CreatorTermsOut, DirectTermsOut, DotTermsOut, ExplainOut, FeedTermsOut, GroupTermsOut,
    NotificationTermsOut, routes,
};
pub use self::out::{ChatsOut, CounterOut, DotOut, MAX_CAP, SheetOut, UnreadOut, ViewOut, Wanted};
pub use self::parts::{FORGOTTEN, entry_of, group_part, list_versions, lists_part, notification_part, part, user_parts};
pub use self::turns::Turns;
pub use self::whole::{FeedCount, ReadUpTo, Sheet};

/// How polls are served and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Polls")]
pub struct PollConfig {
    /// The pace that X-Poll-Interval asks of clients, in seconds.
    #[arg(long, env = "HEADMARK_POLL_INTERVAL", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub poll_interval: u32,

    /// How many polls may read the database at once; the rest get what is last known, marked degraded.
    #[arg(long, env = "HEADMARK_SQL_READS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sql_reads: u32,

    /// How long a poll waits for its turn to read the database, in milliseconds.
    #[arg(long, env = "HEADMARK_SQL_READ_WAIT_MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=30_000))]
    pub sql_read_wait_ms: u64,

    /// How many polls may wait (`wait=`) at once; beyond that they are answered at once. Below the limit on requests in flight.
    #[arg(long, env = "HEADMARK_WAITING_POLLS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub waiting_polls: u32,

    /// How many polls of one service (a key by its name) may wait at once; more are answered 429. Below HEADMARK_WAITING_POLLS; unset: nine tenths of it.
    #[arg(long, env = "HEADMARK_WAITING_POLLS_PER_SERVICE", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub waiting_polls_per_service: Option<u32>,

    /// The same for one end user. Unset: 50, or nine tenths of HEADMARK_WAITING_POLLS if that is less.
    #[arg(long, env = "HEADMARK_WAITING_POLLS_PER_USER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub waiting_polls_per_user: Option<u32>,
}

impl PollConfig {
    /// Checks the bounds on waiting polls against each other.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        let (total, service, user) = self.waiting_bounds();
        let set = [("HEADMARK_WAITING_POLLS_PER_SERVICE", service), ("HEADMARK_WAITING_POLLS_PER_USER", user)];
        Bounds::check(("HEADMARK_WAITING_POLLS", total), set)
    }

    /// What each caller may hold of the room for waiting polls; an `open` server has one caller.
    #[must_use]
    pub fn waiting_shares(&self, open: bool) -> Arc<Shares> {
        let (total, service, user) = self.waiting_bounds();
        let detail = "This caller has as many requests waiting as it may. Try again when some are answered, or without wait=.";
        Shares::new("waiting", detail, Bounds::of(total, open, (service, user), WAITING_PER_USER))
    }

    /// All, those of a service and those of a user.
    fn waiting_bounds(&self) -> (usize, Option<usize>, Option<usize>) {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        (size(self.waiting_polls), self.waiting_polls_per_service.map(size), self.waiting_polls_per_user.map(size))
    }
}

/// How many polls of one end user may wait, where that is not set: below its requests in flight, so that it can write while it waits.
const WAITING_PER_USER: usize = 50;

/// How many bytes of loads are remembered for readers with the same fill token.
const MAX_LOAD_BYTES: u64 = 64 * 1024 * 1024;

/// How long a load is remembered.
const LOAD_TTL: Duration = Duration::from_secs(1);

/// How many bytes of users' last known states are kept while the cache is away, and for how long.
const MAX_LAST_KNOWN_BYTES: u64 = 256 * 1024 * 1024;
const LAST_KNOWN_TTL: Duration = Duration::from_secs(300);

/// How many polls at once try a database that did not answer of late, and for how long; the others get what is last known at once.
const SQL_TRIALS: usize = 4;
const SQL_TRIAL: Duration = Duration::from_millis(500);

/// How long any read of SQL may take.
const MAX_SQL_READ: Duration = Duration::from_secs(4);

/// How many bytes of states are remembered for revisions that are ahead of the truth, and for how long.
const MAX_MADE_UP_BYTES: u64 = 16 * 1024 * 1024;
const MADE_UP_TTL: Duration = Duration::from_secs(1);

/// How many entries of a query are filled at once.
const FILLS_AT_ONCE: usize = 32;

/// A cache of entries that take no more than so many bytes.
fn by_weight<K: std::hash::Hash + Eq + Send + Sync + 'static>(bytes: u64, ttl: Duration) -> moka::sync::Cache<K, Arc<Entry>> {
    moka::sync::Cache::builder().weigher(Entry::weight).max_capacity(bytes).time_to_live(ttl).build()
}

/// A user's state as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As new as the last acknowledged write.
    Current(Arc<Entry>),
    /// A store is away: what was last known.
    LastKnown(Arc<Entry>),
    /// A store is away, and nothing is known.
    Unknown,
}

/// What is answered where a store is away and a guess will not do.
pub(crate) fn store_away() -> Error {
    Problem::new(Code::StoreUnavailable, "A store did not answer. Try again shortly.").into()
}

/// The front of the read path.
#[derive(Debug)]
pub struct Sheets {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
    heads: Arc<Heads>,
    feeds: Feeds,
    views: views::Reader,
    chats: Chats,
    /// One load for all readers that hold the same fill token: it stays the same until the next touch, so no writer came between them.
    loads: moka::future::Cache<(UserId, FillToken), Arc<Entry>>,
    /// Revisions that clients claim to have seen and that SQL has not reached, with what SQL said.
    made_up: moka::sync::Cache<(UserId, Revision), Arc<Entry>>,
    /// What SQL said while the cache was away.
    last_known: moka::sync::Cache<UserId, Arc<Entry>>,
    turns: Arc<Turns>,
    /// Polls that may try a database that did not answer of late.
    sql_trials: Semaphore,
}

impl Sheets {
    /// Over these stores.
    #[must_use]
    pub fn new(db: Db, cache: Arc<Cache>, guard: Arc<Guard>, heads: Arc<Heads>, turns: Arc<Turns>, feeds: Feeds) -> Self {
        Self {
            views: views::Reader::new(db.clone(), Arc::clone(&heads)),
            chats: Chats::new(db.clone(), Arc::clone(&heads)),
            db,
            cache,
            guard,
            heads,
            feeds,
            loads: moka::future::Cache::builder().weigher(Entry::weight).max_capacity(MAX_LOAD_BYTES).time_to_live(LOAD_TTL).build(),
            made_up: by_weight(MAX_MADE_UP_BYTES, MADE_UP_TTL),
            last_known: by_weight(MAX_LAST_KNOWN_BYTES, LAST_KNOWN_TTL),
            turns,
            sql_trials: Semaphore::new(SQL_TRIALS),
        }
    }

    /// The lists behind the feeds.
    #[must_use]
    pub fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// What counts groups.
    #[must_use]
    pub fn chats(&self) -> &Chats {
        &self.chats
    }

    /// What counts views.
    #[must_use]
    pub fn views(&self) -> &views::Reader {
        &self.views
    }

    /// Reads one user's state. `at_least` is the revision that the client has seen: what is older is read anew from SQL.
    pub async fn read(&self, user: UserId, at_least: Revision) -> State {
        let trust = self.guard.trust();
        let found = if trust == Trust::Full { self.cache.get(user).await.ok() } else { None };
        match found {
            Some(Lookup::Hit(entry)) if entry.revision >= at_least => State::Current(entry),
            // Boxed, so that the many polls that hit need not carry its room.
            found => Box::pin(self.read_missed(user, at_least, trust, found)).await,
        }
    }

    async fn read_missed(&self, user: UserId, at_least: Revision, trust: Trust, found: Option<Lookup>) -> State {
        match found {
            Some(Lookup::Hit(behind)) => self.read_ahead(user, at_least, behind).await,
            Some(Lookup::Miss { fill: Some(token), last_known }) => match self.load(user, token).await {
                Ok(entry) => State::Current(entry),
                Err(error) => self.fall_back(user, last_known, &error),
            },
            Some(Lookup::Miss { fill: None, last_known }) => self.read_sql_or(user, last_known).await,
            None if trust == Trust::Unsure => self.read_unsure(user).await,
            None => self.read_sql_or(user, None).await,
        }
    }

    /// Reads many users' states, all current, in the order asked (without repeats).
    ///
    /// # Errors
    /// 503 where not all can be had.
    pub async fn read_many(&self, users: &[UserId]) -> Result<Vec<Arc<Entry>>, Error> {
        let lookups = match self.guard.trust() {
            Trust::Full => self.cache.get_many(users).await.unwrap_or_default(),
            Trust::Bypass | Trust::Unsure => Vec::new(),
        };
        let mut lookups: BTreeMap<UserId, Lookup> = users.iter().copied().zip(lookups).collect();
        let missing: Vec<_> = users.iter().copied().filter(|user| !matches!(lookups.get(user), Some(Lookup::Hit(_)))).collect();
        let epoch = self.cache.epoch();
        let mut loaded = BTreeMap::new();
        if !missing.is_empty() {
            let _turn = self.turns.take().await?;
            metrics::counter!("headmark_sheet_sql_reads_total").increment(u64::try_from(missing.len()).unwrap_or_default());
            for snapshot in self.ask(&missing).await? {
                loaded.insert(snapshot.user, (snapshot.complete, Arc::new(entry_of(&snapshot))));
            }
        }
        let mut fills = Vec::new();
        for (user, (complete, entry)) in &loaded {
            if let (true, Some(Lookup::Miss { fill: Some(token), .. })) = (complete, lookups.get(user)) {
                fills.push(self.fill(*user, *token, epoch, entry));
            }
        }
        futures_util::stream::iter(fills).buffer_unordered(FILLS_AT_ONCE).collect::<()>().await;
        let pick = |user: &UserId| match lookups.remove(user) {
            Some(Lookup::Hit(entry)) => entry,
            _ => {
                loaded.get(user).map(|(_, entry)| Arc::clone(entry)).unwrap_or_else(|| Arc::new(Entry { revision: 0, parts: Parts::new() }))
            }
        };
        Ok(users.iter().map(pick).collect())
    }

    /// For a client that claims to have seen more than the cache shows: the truth. A revision that SQL has not reached either is made up, or from before a
    /// restore; asking again at once costs no further read.
    async fn read_ahead(&self, user: UserId, at_least: Revision, behind: Arc<Entry>) -> State {
        if let Some(truth) = self.made_up.get(&(user, at_least)) {
            return State::Current(if truth.revision > behind.revision { truth } else { behind });
        }
        let state = self.read_sql_or(user, Some(behind)).await;
        if let State::Current(truth) = &state
            && truth.revision < at_least
        {
            self.made_up.insert((user, at_least), Arc::clone(truth));
        }
        state
    }

    /// Loads once for all readers with this token, and fills the cache.
    async fn load(&self, user: UserId, token: FillToken) -> Result<Arc<Entry>, Arc<Error>> {
        let load = async {
            let epoch = self.cache.epoch();
            let (complete, entry) = self.read_sql(user).await?;
            if complete {
                self.fill(user, token, epoch, &entry).await;
            }
            Ok(entry)
        };
        self.loads.try_get_with((user, token), load).await
    }

    /// Fills, unless the world changed since the read began.
    async fn fill(&self, user: UserId, token: FillToken, epoch: i64, entry: &Entry) {
        if self.guard.trust() != Trust::Full || self.cache.epoch() != epoch {
            return;
        }
        if let Err(error) = self.cache.fill(user, token, entry).await {
            // The entry stays dirty; the next reader loads again.
            tracing::debug!(%error, "could not fill a cache entry");
        }
    }

    /// The truth, and whether it is complete, so that the cache may be filled with it.
    async fn read_sql(&self, user: UserId) -> Result<(bool, Arc<Entry>), Error> {
        let _turn = self.turns.take().await?;
        let snapshots = self.ask(&[user]).await?;
        metrics::counter!("headmark_sheet_sql_reads_total").increment(1);
        let complete = snapshots.first().is_none_or(|snapshot| snapshot.complete);
        let entry = snapshots.first().map_or(Entry { revision: 0, parts: Parts::new() }, entry_of);
        Ok((complete, Arc::new(entry)))
    }

    /// Reads SQL, for no longer than a statement may take: a network that swallows everything must not hold a turn for ever.
    async fn ask(&self, users: &[UserId]) -> Result<Vec<Snapshot>, Error> {
        let asked = tokio::time::timeout(MAX_SQL_READ, read_users(&self.db, users)).await;
        Ok(asked.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
    }

    /// Reads SQL without filling; where that fails, what was last known.
    async fn read_sql_or(&self, user: UserId, last_known: Option<Arc<Entry>>) -> State {
        match self.read_sql(user).await {
            Ok((_, entry)) => {
                if self.cache.is_shared() {
                    self.last_known.insert(user, Arc::clone(&entry));
                }
                State::Current(entry)
            }
            Err(error) => self.fall_back(user, last_known, &error),
        }
    }

    /// The database does not answer this node: what the cache shows may be old, but is the best there is.
    async fn read_unsure(&self, user: UserId) -> State {
        // A few find out whether it answers again; a database that hangs must not hold up all the others.
        if let Ok(_trial) = self.sql_trials.try_acquire()
            && let Ok(Ok((_, entry))) = tokio::time::timeout(SQL_TRIAL, self.read_sql(user)).await
        {
            return State::Current(entry);
        }
        let last_known = match self.cache.get(user).await {
            Ok(Lookup::Hit(entry)) => Some(entry),
            Ok(Lookup::Miss { last_known, .. }) => last_known,
            Err(_) => None,
        };
        self.fall_back(user, last_known, &"the database does not answer")
    }

    fn fall_back(&self, user: UserId, last_known: Option<Arc<Entry>>, error: &dyn std::fmt::Debug) -> State {
        tracing::debug!(?error, "answering a poll degraded");
        metrics::counter!("headmark_sheet_degraded_total").increment(1);
        match last_known.or_else(|| self.last_known.get(&user)) {
            Some(entry) => State::LastKnown(entry),
            None => State::Unknown,
        }
    }
}
