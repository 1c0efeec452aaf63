//! Counter badges.

mod batch;
mod counters;
mod deletion;
mod retracts;
