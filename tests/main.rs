//! The suite: every promise over real sockets, on both tiers. One binary, so that it links once.
//!
//! The folders are those of `src/`. `guarantees` has the promises that span features. `make test`
//! starts private engines and runs all of it. A missing Postgres or Redis fails the tests; nothing
//! is skipped. To add a test for a feature: a case in its folder in `features`, inside
//! `both_tiers!`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect is to fail; clippy's own exemption does not reach the helpers of a test binary"
)]
#![expect(unreachable_pub, reason = "a test binary has no outside; `pub` marks what the cases use of `support`")]

mod app;
mod docs;
mod features;
mod floors;
mod guarantees;
mod http;
mod maintenance;
mod summary;
mod support;
