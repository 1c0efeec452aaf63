//! Counter badges.

mod batch;
mod counters;
mod retracts;
