//! Numbers events that are committed, and appends those that are numbered to the stream in Redis.
//!
//! Every node has a publisher; whichever has the lock of `event_head` does the work. What is
//! appended was numbered in an earlier transaction, so the stream never has a number that the
//! database might give again. It has each at least once as far as the node lives; what Redis loses
//! is read from the database.
//!
//! After a failover that lost writes, numbers after the head may be those of lost events. So nothing
//! is numbered until another epoch has begun, which raises the head.

use std::io::Error as IoError;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::stall::Stall;
use super::{Bell, EventConfig, EventTypes, Published, store};
use crate::base::seldom::Seldom;
use crate::cache::{Cache, RedisStream};
use crate::db::{Conn, Db, DbResult};
use crate::engine::epoch::{EVENTS_STEP, is_in_noted_history};

/// How often a publisher looks by itself: others may have written.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The pause between two rounds, in which more gathers: each is a commit, for which on SQLite the
/// writes wait.
const ROUNDS_APART: Duration = Duration::from_millis(50);

/// The pause after a store did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// How long one round may take.
const MAX_ROUND: Duration = Duration::from_secs(5);

/// For how long a round begins to append more, however slow Redis is: what it has done is committed well before the
/// round is cut off, which would undo its numbers too.
const MAX_APPENDING: Duration = Duration::from_secs(1);

/// How many rows are read at once for the stream, each of which may hold the events of a whole
/// batch; and from how many events on a round has done enough.
const ROWS_AT_ONCE: i64 = 20;
const ENOUGH_EVENTS: usize = 5000;

/// How many events are appended at once. So far the stream is then, whatever becomes of those after them: a repeat goes
/// on from there.
const APPENDED_AT_ONCE: usize = 250;

/// How often each warning is logged at most.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The publisher of a node.
#[derive(Debug)]
pub struct Publisher {
    pub(super) db: Db,
    pub(super) cache: Arc<Cache>,
    bell: Bell,
    pub(super) stream: Option<RedisStream>,
    stream_warnings: Seldom,
    history_warnings: Seldom,
    published: watch::Sender<Published>,
}

/// What a round came to.
enum Round {
    /// There may be more.
    More,
    /// Nothing is left, or another node is at it.
    Done,
}

impl Publisher {
    #[must_use]
    pub fn new(config: &EventConfig, cache_prefix: &str, db: Db, cache: Arc<Cache>, bell: Bell) -> Self {
        let key = config.stream_key(cache_prefix);
        let stream = (cache.is_shared() && config.event_stream_length > 0 && !key.is_empty()).then(|| RedisStream {
            key,
            max_entries: config.event_stream_length,
            ttl: config.ttl(),
        });
        let [stream_warnings, history_warnings] = [(); 2].map(|()| Seldom::new(WARN_EVERY));
        Self { db, cache, bell, stream, stream_warnings, history_warnings, published: watch::Sender::default() }
    }

    /// To be told of new numbers.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<Published> {
        self.published.subscribe()
    }

    /// Publishes until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let (mut conn, mut renewals, mut stall) = (None, self.db.renewals(), Stall::default());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.bell.rung() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            loop {
                if self.db.renewals() != renewals {
                    (conn, renewals) = (None, self.db.renewals());
                }
                let round = tokio::time::timeout(MAX_ROUND, self.round(&mut conn, &mut stall)).await;
                stall.measure(Instant::now());
                let pause = match round.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                    Ok(Round::Done) => break,
                    Ok(Round::More) => ROUNDS_APART,
                    Err(error) => {
                        // Nothing is lost: the rows wait for their numbers.
                        tracing::debug!(%error, "cannot publish events yet");
                        conn = None;
                        PAUSE
                    }
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }

    async fn round(&self, kept: &mut Option<Conn>, stall: &mut Stall) -> DbResult<Round> {
        let seen = store::peek(&self.db).await?;
        // Another node may have given these numbers, to events of any type.
        self.published.send_if_modified(|published| published.reach(seen.head));
        let behind = self.stream.is_some() && seen.streamed < seen.head;
        stall.note(Instant::now(), seen.waiting || behind, if behind { seen.streamed } else { seen.head });
        if !seen.waiting && !behind {
            return Ok(Round::Done);
        }
        // Held by nobody while it works: a round that is cut off closes it, which gives the lock
        // back.
        let mut conn = match kept.take() {
            Some(conn) => conn,
            None => self.open().await?,
        };
        conn.begin().await?;
        let Some(at) = store::lock(&mut conn).await? else {
            conn.rollback().await?;
            *kept = Some(conn);
            return Ok(Round::Done);
        };
        let numbered = store::number(&mut conn, at.head).await?;
        let head = numbered.last().map_or(at.head, |row| row.last);
        let streamed = self.append(&mut conn, at.streamed, at.head).await?;
        let stuck = numbered.is_empty() && streamed == Some(at.streamed);
        store::set_head(&mut conn, head, streamed.unwrap_or(head)).await?;
        conn.commit().await?;
        *kept = Some(conn);
        self.tell(numbered.iter().map(|row| (row.types, row.last)));
        metrics::counter!("headmark_events_total").increment(u64::try_from(head - at.head).unwrap_or_default());
        Ok(if stuck { Round::Done } else { Round::More })
    }

    /// A connection to a database in which no lost event had the next numbers.
    async fn open(&self) -> DbResult<Conn> {
        let mut conn = self.db.connect().await?;
        if is_in_noted_history(&mut conn).await? {
            return Ok(conn);
        }
        if self.history_warnings.may() {
            tracing::warn!("events wait for their numbers, as the database has another history: the installation must begin another epoch");
        }
        Err(sqlx::Error::Io(IoError::other("the database has another history than the epoch")))
    }

    /// Appends what was numbered before, after `streamed` and up to `head`; up to where the stream
    /// is now. None without a stream.
    async fn append(&self, conn: &mut Conn, streamed: i64, head: i64) -> DbResult<Option<i64>> {
        let Some(stream) = &self.stream else { return Ok(None) };
        if streamed >= head {
            return Ok(Some(streamed));
        }
        let mut from = begins_after(streamed, head, stream.max_entries);
        let (mut reached, mut appended) = (streamed, 0);
        let began = Instant::now();
        while from < head && appended < ENOUGH_EVENTS && began.elapsed() < MAX_APPENDING {
            let (mut entries, mut last) = (Vec::new(), None);
            for row in store::read_in(conn, from, EventTypes::ALL, ROWS_AT_ONCE).await? {
                let events: Vec<&RawValue> = serde_json::from_str(&row.content).unwrap_or_default();
                let these = (row.first..).zip(events).filter(|(id, _)| *id > from && *id <= head);
                for (id, event) in these {
                    last = Some(id);
                    entries.extend(is_there(event).then(|| (id, with_id(id, event))));
                }
            }
            // Those that were left are swept.
            let Some(last) = last else { return Ok(Some(head)) };
            for part in entries.chunks(APPENDED_AT_ONCE) {
                if appended > 0 && began.elapsed() >= MAX_APPENDING {
                    return Ok(Some(reached));
                }
                match self.cache.append(stream, part).await {
                    Ok(true) => {}
                    Ok(false) => self.warn_of_others(stream),
                    Err(error) => {
                        // They are appended when Redis is back.
                        tracing::debug!(%error, "cannot append events to the stream");
                        return Ok(Some(reached));
                    }
                }
                appended += part.len();
                reached = part.last().map_or(reached, |(id, _)| *id);
            }
            (from, reached) = (last, last);
        }
        Ok(Some(reached))
    }

    /// Says that the stream has other events under the numbers of ours, which are not on it.
    fn warn_of_others(&self, stream: &RedisStream) {
        if self.stream_warnings.may() {
            tracing::warn!(
                stream = stream.key,
                "the stream in Redis refused events, as it has others of their numbers or higher ones; GET /v1/events has all. If another \
                 installation uses this Redis, give each its own HEADMARK_CACHE_PREFIX and HEADMARK_EVENT_STREAM. If the database was \
                 restored, run `headmark epoch --renew`: the stream takes what comes after it"
            );
        }
    }

    fn tell(&self, rows: impl IntoIterator<Item = (EventTypes, i64)>) {
        self.published.send_if_modified(|published| {
            let before = published.head;
            // What is known already says more of its types.
            rows.into_iter().filter(|(_, last)| *last > before).fold(false, |is_new, (types, last)| published.add(types, last) || is_new)
        });
    }
}

/// After which number to append. What the stream would drop at once is passed by, but not where another epoch has left
/// numbers out: they do not say how many events there are.
fn begins_after(streamed: i64, head: i64, max_entries: u64) -> i64 {
    if head - streamed >= EVENTS_STEP {
        return streamed;
    }
    streamed.max(head.saturating_sub(i64::try_from(max_entries).unwrap_or(i64::MAX)))
}

/// In place of an event that names a user who was erased: readers pass by it.
pub(super) const GONE: &str = "null";

/// Whether an event is still there.
pub(crate) fn is_there(event: &RawValue) -> bool {
    event.get() != GONE
}

/// An event as it is shown: its row's JSON with its number in front.
pub(crate) fn with_id(id: i64, event: &RawValue) -> String {
    let rest = event.get().strip_prefix('{').unwrap_or_default();
    format!("{{\"id\":{id},{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_before_numbers_that_were_left_out_are_appended() {
        assert_eq!([begins_after(7, 9, 100), begins_after(7, 900, 100)], [7, 800]);
        let raised = EVENTS_STEP + 10;
        assert_eq!(begins_after(7, raised, 100), 7, "8 to 10 are still to come");
        assert_eq!([begins_after(raised, raised + 5, 100), begins_after(raised, raised + 500, 100)], [raised, raised + 400]);
    }
}
