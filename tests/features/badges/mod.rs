//! Counter badges.

mod batch;
mod counters;
