//! A user's own state, for every reader: from the cache where it is sure to be as new as the last
//! acknowledged write, else from SQL.
//!
//! An entry holds short fields with a text each. What users share is not in it; an
//! unread summary is both together.
//!
//! | field | text | what |
//! | --- | --- | --- |
//! | `u` | `812 918 6 2;b:news 5;c:mention 120 3;d:mall 4` | the user's own row: the enrolment (the head of the broadcast state then), the revision at which the list behind the feed changed last, unread direct messages, from how many peers (zeros at the end are left out); then the marks of channels, counters and dots as the row has them (`marks/user_marks.rs`) |
//! | `s` | `r:0;t:counters.like` | the user's settings as the row has them (`marks/settings.rs`); without it, all have their defaults |
//! | `m:notice` | `3 1` | notifications of a type: unread, and how many of these are unseen, where that is another number (they were called messages once; the letter stays, as entries outlive an upgrade) |
//! | `l` | `917 12 9` | the revisions at which the user's following list, block list and list of mutes changed last (the last one is left out where it is 0) |
//! | `g:42` | `120 1767225600123m 122-124` | a group: read up to, when the user was there last, what of it counts, single messages above that are read (`groups/part.rs`); empty: not in it any more |
//! | `t:7` | `1767225600123 3` | a direct chat that the sums do not count until a time, by its level or a mute: then, and how many messages are unread; empty: counted for ever, or not at all |
//!
//! `reader.rs` makes entries from rows, `together.rs` reads those of many polls at once, `lives_on.rs`
//! lets entries stay that are polled. `marks/parts.rs` and the features' row sets say how each
//! part is written.

mod lives_on;
mod reader;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::Semaphore;

use self::together::Together;
use super::erased;
use super::guard::{Guard, Trust};
use super::heads::{Heads, History};
use super::marks::parts::is_erased;
use super::turns::Turns;
use crate::base::error::{Error, Fault, Problem};
use crate::base::ids::UserId;
use crate::cache::{Cache, Derived, Entry, FillToken, Lookup, Parts, ReadEntry, Revision};
use crate::db::{Db, DbResult};

pub use self::lives_on::statement;
pub use self::reader::{EntryReader, EntryRow, EntryRows, UserRows};

/// How many bytes of loads are remembered for readers with the same fill token.
const MAX_LOAD_BYTES: u64 = 64 * 1024 * 1024;

/// How long a load is remembered.
const LOAD_TTL: Duration = Duration::from_secs(1);

/// How many bytes of users' last known states are kept while the cache is away, and for how long.
const MAX_LAST_KNOWN_BYTES: u64 = 256 * 1024 * 1024;
const LAST_KNOWN_TTL: Duration = Duration::from_secs(300);

/// How many polls at once try a database that did not answer recently, and for how long; the others
/// get what is last known at once.
const SQL_TRIALS: usize = 4;
const SQL_TRIAL: Duration = Duration::from_millis(500);

/// For how long, and of how many users, it is remembered that they are not erased, for what others ask
/// about them.
const NOT_ERASED_TTL: Duration = Duration::from_secs(1);
const MAX_NOT_ERASED: u64 = 100_000;

/// How many bytes of states are remembered for revisions that are ahead of the truth, and for how
/// long.
const MAX_MADE_UP_BYTES: u64 = 16 * 1024 * 1024;
const MADE_UP_TTL: Duration = Duration::from_secs(1);

/// How many entries of a query are filled at once.
const FILLS_AT_ONCE: usize = 32;

/// A cache of entries that take no more than so many bytes.
fn by_weight<K: std::hash::Hash + Eq + Send + Sync + 'static>(bytes: u64, ttl: Duration) -> moka::sync::Cache<K, Arc<ReadEntry>> {
    moka::sync::Cache::builder().weigher(ReadEntry::weight).max_capacity(bytes).time_to_live(ttl).build()
}

/// How long a poll waits for a look at what users share.
const MAX_CATCH_UP: Duration = Duration::from_secs(1);

/// A user's state as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As new as the last acknowledged write.
    Current(Arc<ReadEntry>),
    /// A store is away: what was last known.
    LastKnown(Arc<ReadEntry>),
    /// A store is away, and nothing is known.
    Unknown,
}

/// Refuses a user that was erased, by its entry.
///
/// # Errors
/// 410.
pub fn alive(parts: &Parts) -> Result<(), Problem> {
    if is_erased(parts) { Err(erased::problem([])) } else { Ok(()) }
}

/// The entries of users, as they are read.
#[derive(Debug)]
pub struct Entries {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
    heads: Arc<Heads>,
    reader: &'static EntryReader,
    together: Arc<Together>,
    /// One load for all readers that hold the same fill token: it stays the same until the next
    /// begin, so no writer came between them.
    loads: moka::future::Cache<(UserId, FillToken), Arc<ReadEntry>>,
    /// Revisions that clients claim to have seen and that SQL has not reached, with what SQL said.
    made_up: moka::sync::Cache<(UserId, Revision), Arc<ReadEntry>>,
    /// What SQL said while the cache was away, in which history of the database.
    last_known: moka::sync::Cache<(UserId, History), Arc<ReadEntry>>,
    /// Users that were found not to be erased a moment ago, for what others ask about them.
    not_erased: moka::sync::Cache<UserId, ()>,
    turns: Arc<Turns>,
    /// Polls that may try a database that did not answer recently.
    sql_trials: Semaphore,
}

impl Entries {
    #[must_use]
    pub fn new(db: Db, cache: Arc<Cache>, guard: Arc<Guard>, heads: Arc<Heads>, turns: Arc<Turns>, reader: &'static EntryReader) -> Self {
        Self {
            together: Together::new(db.clone(), reader, Arc::clone(&turns)),
            db,
            cache,
            guard,
            heads,
            reader,
            loads: moka::future::Cache::builder().weigher(ReadEntry::weight).max_capacity(MAX_LOAD_BYTES).time_to_live(LOAD_TTL).build(),
            made_up: by_weight(MAX_MADE_UP_BYTES, MADE_UP_TTL),
            not_erased: moka::sync::Cache::builder().max_capacity(MAX_NOT_ERASED).time_to_live(NOT_ERASED_TTL).build(),
            last_known: by_weight(MAX_LAST_KNOWN_BYTES, LAST_KNOWN_TTL),
            turns,
            sql_trials: Semaphore::new(SQL_TRIALS),
        }
    }

    /// Waits for a look that begins now, so that what users share is as new as SQL has it; whether
    /// one came through in time. Not tried where the database has not answered recently.
    pub async fn catch_up(&self) -> bool {
        self.guard.trust() != Trust::Unsure && matches!(tokio::time::timeout(MAX_CATCH_UP, self.heads.catch_up()).await, Ok(Ok(())))
    }

    /// Reads something else of SQL, in a turn, and for no longer than a statement may take.
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub async fn in_turn<T>(&self, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        self.turns.read(read).await
    }

    /// The same for what is no poll of a user's own numbers, such as a list ([`Turns::read_list`]).
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub async fn in_list_turn<T>(&self, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        self.turns.read_list(read).await
    }

    /// The same for what takes long and what a user may ask for many times at once ([`Turns::read_long_list`]).
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub async fn in_long_list_turn<T>(&self, user: UserId, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        self.turns.read_long_list(user, read).await
    }

    /// As [`Self::in_turn`], for a part of an answer that can do without: None where the database cannot be
    /// asked now.
    pub async fn in_turn_or_none<T>(&self, what: &'static str, read: impl Future<Output = DbResult<T>>) -> Option<T> {
        if self.guard.trust() == Trust::Unsure {
            return None;
        }
        match self.in_turn(read).await {
            Ok(found) => Some(found),
            Err(error) => {
                // It is shown as missing, and read by the next request.
                tracing::debug!(?error, what, "cannot be read now");
                None
            }
        }
    }

    /// Reads one user's state. `at_least` is the revision that the client has seen: what is older
    /// is read again from SQL.
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
    pub async fn read_many(&self, users: &[UserId]) -> Result<Vec<Arc<ReadEntry>>, Error> {
        let lookups = match self.guard.trust() {
            Trust::Full => self.cache.get_many(users).await.unwrap_or_default(),
            Trust::Bypass | Trust::Unsure => Vec::new(),
        };
        let mut lookups: BTreeMap<UserId, Lookup> = users.iter().copied().zip(lookups).collect();
        let missing: Vec<_> = users.iter().copied().filter(|user| !matches!(lookups.get(user), Some(Lookup::Hit(_)))).collect();
        let epoch = self.cache.epoch();
        let read = if missing.is_empty() { Vec::new() } else { self.together.ask(&missing).await? };
        let loaded: BTreeMap<_, _> = missing.into_iter().zip(read).collect();
        let mut fills = Vec::new();
        for (user, (complete, entry)) in &loaded {
            if let (true, Some(Lookup::Miss { fill: Some(token), .. })) = (complete, lookups.get(user)) {
                fills.push(self.fill(*user, *token, epoch, entry));
            }
        }
        futures_util::stream::iter(fills).buffer_unordered(FILLS_AT_ONCE).collect::<()>().await;
        let pick = |user: &UserId| match lookups.remove(user) {
            Some(Lookup::Hit(entry)) => entry,
            _ => loaded.get(user).map(|(_, entry)| Arc::clone(entry)).unwrap_or_else(|| Arc::new(Entry::default().into())),
        };
        Ok(users.iter().map(pick).collect())
    }

    /// Refuses a user that was erased. Where nothing is known of the user now, the route finds out.
    ///
    /// # Errors
    /// 410.
    pub async fn refuse_erased(&self, user: UserId) -> Result<(), Problem> {
        match self.read(user, 0).await {
            State::Current(entry) | State::LastKnown(entry) => alive(&entry.parts),
            State::Unknown => Ok(()),
        }
    }

    /// The same for what others ask about a user. The user's entry would tell them, by how long it takes
    /// to read, that something of the user has changed, also in secret. So the hash is looked for.
    ///
    /// # Errors
    /// 410.
    pub async fn refuse_erased_to_others(&self, user: UserId) -> Result<(), Problem> {
        self.refuse_erased_among(&[user], |_| String::new()).await
    }

    /// The same for what one polls of a chat with a peer.
    ///
    /// # Errors
    /// 410.
    pub async fn refuse_erased_peer(&self, peer: UserId) -> Result<(), Problem> {
        self.refuse_found(&[peer], |_| String::new(), false).await
    }

    /// The same for users that a request names, each with its place in the body or the query. It comes before
    /// look-ups, so it has a turn of theirs.
    ///
    /// # Errors
    /// 410; 503 where no turn comes in time.
    pub async fn refuse_erased_among(&self, users: &[UserId], pointer: impl Fn(usize) -> String) -> Result<(), Problem> {
        self.refuse_found(users, pointer, true).await
    }

    /// It costs one statement, whatever their number, and none where all were asked for within a second. Where the
    /// database cannot be asked now, nobody is refused. But that many look up others must show nobody who is erased.
    async fn refuse_found(&self, users: &[UserId], pointer: impl Fn(usize) -> String, is_list: bool) -> Result<(), Problem> {
        let asked: BTreeSet<_> = users.iter().copied().filter(|user| !self.not_erased.contains_key(user)).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let all: Vec<_> = asked.into_iter().collect();
        let read = erased::read(&self.db, &all);
        let found = match is_list {
            true if self.guard.trust() == Trust::Unsure => None,
            true => match self.in_list_turn(read).await {
                Err(Error::Problem(problem)) => return Err(*problem),
                Err(Error::Fault(Fault::Db(sqlx::Error::PoolTimedOut))) => return Err(Problem::store_unavailable()),
                found => found.ok(),
            },
            false => self.in_turn_or_none("an erased peer", read).await,
        };
        let Some(found) = found else { return Ok(()) };
        if found.is_empty() {
            all.iter().for_each(|user| self.not_erased.insert(*user, ()));
            return Ok(());
        }
        let found: BTreeSet<_> = found.into_iter().map(|(user, _)| user).collect();
        let pointers: Vec<_> = users.iter().enumerate().filter(|(_, user)| found.contains(user)).map(|(at, _)| pointer(at)).collect();
        Err(erased::problem(pointers.iter().map(String::as_str)))
    }

    /// A user was erased by this node, which remembers no longer that it was not.
    pub fn forget_not_erased(&self, user: UserId) {
        self.not_erased.invalidate(&user);
    }

    /// For a client that claims to have seen more than the cache shows: the truth. A revision that
    /// SQL has not reached either is made up, or from before a restore; asking again at once costs
    /// no further read.
    async fn read_ahead(&self, user: UserId, at_least: Revision, behind: Arc<ReadEntry>) -> State {
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
    async fn load(&self, user: UserId, token: FillToken) -> Result<Arc<ReadEntry>, Arc<Error>> {
        let load = async {
            let epoch = self.cache.epoch();
            let (complete, entry) = self.together.read(user).await?;
            if complete {
                self.fill(user, token, epoch, &entry).await;
            }
            Ok::<_, Arc<Error>>(entry)
        };
        self.loads.try_get_with((user, token), load).await.map_err(Arc::unwrap_or_clone)
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

    /// Keeps what was made of a user's entry, for the next reader of the same entry.
    pub fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        self.cache.keep(user, entry, derived);
    }

    /// Users' rows as SQL has them now, in the order asked.
    pub async fn rows(&self, users: &[UserId]) -> DbResult<Vec<UserRows>> {
        self.reader.read(&self.db, users).await
    }

    /// Reads SQL without filling; where that fails, what was last known.
    async fn read_sql_or(&self, user: UserId, last_known: Option<Arc<ReadEntry>>) -> State {
        let history = self.heads.history();
        match self.together.read(user).await {
            Ok((_, entry)) => {
                if self.cache.is_shared() {
                    self.last_known.insert((user, history), Arc::clone(&entry));
                }
                State::Current(entry)
            }
            Err(error) => self.fall_back(user, last_known, &error),
        }
    }

    /// The database does not answer this node: what the cache shows may be old, but is the best
    /// there is.
    async fn read_unsure(&self, user: UserId) -> State {
        // A few find out whether it answers again; a database that hangs must not hold up all the
        // others.
        if let Ok(_trial) = self.sql_trials.try_acquire()
            && let Ok(Ok(entry)) = tokio::time::timeout(SQL_TRIAL, self.together.read_alone(user)).await
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

    fn fall_back(&self, user: UserId, last_known: Option<Arc<ReadEntry>>, error: &dyn std::fmt::Debug) -> State {
        tracing::debug!(?error, "answering a poll degraded");
        metrics::counter!("headmark_summary_degraded_total").increment(1);
        match last_known.or_else(|| self.last_known.get(&(user, self.heads.history()))) {
            Some(entry) => State::LastKnown(entry),
            None => State::Unknown,
        }
    }
}
