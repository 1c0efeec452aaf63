//! The unread summary: the user's own entry (`crate::engine::entries`) together with what users
//! share, which each node holds in memory (`crate::engine::heads`).
//!
//! `parts.rs` lists the kinds of badges, `read.rs` puts summaries together, `unread.rs` is one of
//! them, `kept.rs` what is kept of it for the next poll, `chats.rs` is the kind that two features
//! make together. `chat_list.rs` has their chats in one list, and `read_chats.rs` reads many at once.

pub mod chat_list;
pub mod chat_list_http;
mod chats;
pub mod feed_http;
pub mod http;
mod kept;
mod parts;
mod read;
mod read_chats;
mod unread;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::engine::turns::Turns;
use crate::http::shares::{Bounds, Shares};

pub use self::chats::ChatPart;
pub use self::parts::{ExplainOut, Parts, UnreadSummaryOut, Wanted};
pub use self::read::Summaries;
pub use self::unread::UnreadSummary;
pub use self::wanted::MAX_CAP;

/// How polls are served and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Polls")]
pub struct PollConfig {
    /// The polling interval that X-Poll-Interval asks of clients, in seconds.
    #[arg(long, env = "HEADMARK_POLL_INTERVAL", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub poll_interval: u32,

    /// The maximum number of statements with which polls and lists read the database at once. A poll that waits
    /// longer than HEADMARK_SQL_READ_WAIT_MS gets the last known values, marked as degraded; a list gets 503.
    #[arg(long, env = "HEADMARK_SQL_READS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sql_reads: u32,

    /// The time limit for a poll or a list to wait for its turn to read the database, in milliseconds.
    #[arg(long, env = "HEADMARK_SQL_READ_WAIT_MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=30_000))]
    pub sql_read_wait_ms: u64,

    /// The maximum number of polls that wait at once (`wait=`). Further polls get their response
    /// immediately. Must be below HEADMARK_MAX_IN_FLIGHT.
    #[arg(long, env = "HEADMARK_WAITING_POLLS", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub waiting_polls: u32,

    /// The maximum number of waiting polls for each service key. Further polls get 429. Must be
    /// below HEADMARK_WAITING_POLLS; default: nine tenths of it.
    #[arg(long, env = "HEADMARK_WAITING_POLLS_PER_SERVICE", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub waiting_polls_per_service: Option<u32>,

    /// The maximum number of waiting polls for each end user. Further polls get 429. Default: 50,
    /// or nine tenths of HEADMARK_WAITING_POLLS if that is less.
    #[arg(long, env = "HEADMARK_WAITING_POLLS_PER_USER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub waiting_polls_per_user: Option<u32>,
}

impl PollConfig {
    /// The turns to read the database, which has so many connections for reads.
    #[must_use]
    pub fn turns(&self, connections: usize) -> Arc<Turns> {
        Arc::new(Turns::new(self.sql_reads, connections, Duration::from_millis(self.sql_read_wait_ms)))
    }

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
        let detail = "This caller has reached its limit of waiting requests. Try again when one completes, or without wait.";
        Shares::new("waiting", detail, Bounds::of(total, open, (service, user), WAITING_PER_USER))
    }

    /// All, those of a service and those of a user.
    fn waiting_bounds(&self) -> (usize, Option<usize>, Option<usize>) {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        (size(self.waiting_polls), self.waiting_polls_per_service.map(size), self.waiting_polls_per_user.map(size))
    }
}

/// How many polls of one end user may wait, where that is not set: below its requests in flight, so
/// that it can write while it waits.
const WAITING_PER_USER: usize = 50;
