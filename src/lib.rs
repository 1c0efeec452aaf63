//! Headmark: everything that a social or chat product polls for, in one HTTP service. `docs/architecture.md` is the map.

pub mod app;
pub mod auth;
pub mod badges;
pub mod broadcasts;
pub mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod db;
mod docs;
pub mod dots;
pub mod epoch;
pub mod error;
pub mod events;
pub mod feed;
pub mod fingerprint;
pub mod groups;
pub mod guard;
pub mod heads;
pub mod http;
pub mod idempotency;
pub mod ids;
pub mod import;
pub mod inbox;
pub mod lane;
pub mod marks;
pub mod notifications;
pub mod operations;
pub mod page;
pub mod poll;
pub mod presence;
pub mod probes;
pub mod receipts;
pub mod recount;
pub mod relations;
pub mod router;
pub mod scrub;
pub mod secret;
pub mod serve;
pub mod sheet;
pub mod state;
pub mod stores;
pub mod telemetry;
pub mod traces;
pub mod views;
pub mod waiting;

/// A named step at which a test can stop, delay or kill the process: with the feature `failpoints`, `FAILPOINTS=lane::after_commit=return` in the
/// environment kills it there. Nothing without the feature.
pub(crate) fn failpoint(step: &str) {
    #[cfg(feature = "failpoints")]
    if !fail::list().is_empty() {
        // A pause holds the task that comes by here, not the tasks that its thread would run next.
        tokio::task::block_in_place(|| {
            fail::fail_point!(step, |_| std::process::abort());
        });
    }
    let _ = step;
}

/// Reads `FAILPOINTS` for the life of the process. Nothing without the feature.
pub(crate) fn start_failpoints() {
    #[cfg(feature = "failpoints")]
    std::mem::forget(fail::FailScenario::setup());
}
