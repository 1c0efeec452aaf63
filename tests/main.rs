//! The suite: every promise over real sockets, on both tiers. One binary, so that it links once.
//!
//! `make test` starts private engines and runs it. A missing Postgres or Redis fails the tests; nothing is skipped. To add a test for a feature:
//! a file named after it, and `both_tiers!` around the cases.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect is to fail; clippy's own exemption does not reach the helpers of a test binary"
)]
#![expect(unreachable_pub, reason = "a test binary has no outside; `pub` marks what the cases use of `support`")]

mod access;
mod badges;
mod batches;
mod broadcasts;
mod contract;
mod docs;
mod edge;
mod events;
mod explain;
mod export;
mod fan_out;
mod feed;
mod floors;
mod fuzz;
mod groups;
mod idempotency;
mod import;
mod import_messages;
mod inbox;
mod notifications;
mod operations;
mod polling;
mod pressure;
mod problems;
mod receipts;
mod recount;
mod relations;
mod relations_looks;
mod relations_rules;
mod relations_secrecy;
mod scrub;
mod server;
mod settings;
mod sheets;
mod smoke;
mod support;
mod tokens;
mod traces;
mod views;
