//! What is right for every feature: group commit, streams with their heads and marks, what nodes
//! agree on, the outbox. No feature is named here, and no HTTP.

pub mod entries;
pub mod epoch;
pub mod erased;
pub mod events;
pub mod get_or_read;
pub mod guard;
pub mod heads;
pub mod idempotency;
pub mod lanes;
pub mod marks;
mod own_turns;
pub mod pairs;
pub mod turns;
