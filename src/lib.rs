//! Headmark: everything that a social or chat product polls for, in one HTTP service.
//! `docs/architecture.md` is the map.
//!
//! The modules are floors. Imports go down only, in this order; `tests/floors.rs` rejects the rest.

// The program.
pub mod app;

// What works through whole tables.
pub mod maintenance;

// The one poll that answers everything.
pub mod summary;

// One folder for each thing that clients poll for.
pub mod features;

// The edge.
pub mod http;

// What is right for every feature.
pub mod engine;

// The stores.
pub mod cache;
pub mod db;

// What every floor uses.
pub mod base;

/// A named step at which a test can stop, delay or kill the process: with the feature `failpoints`,
/// `FAILPOINTS=lane::after_commit=return` in the environment kills it there. Nothing without the
/// feature.
pub(crate) fn failpoint(step: &str) {
    #[cfg(feature = "failpoints")]
    if !fail::list().is_empty() {
        let act = || fail::fail_point!(step, |_| std::process::abort());
        // A pause holds the task that comes by here, and where it can, not the tasks that its thread
        // would run next.
        match tokio::runtime::Handle::current().runtime_flavor() {
            tokio::runtime::RuntimeFlavor::MultiThread => tokio::task::block_in_place(act),
            _ => act(),
        }
    }
    let _ = step;
}

/// Reads `FAILPOINTS` for the life of the process. Nothing without the feature.
pub(crate) fn start_failpoints() {
    #[cfg(feature = "failpoints")]
    std::mem::forget(fail::FailScenario::setup());
}
