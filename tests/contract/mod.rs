//! The promises of the design, each tried as hard as a test can: on both tiers, on several nodes, with processes killed and stores taken away.
//!
//! `truth.rs` says what is so by asking the rows themselves, and `storm.rs` is a crowd that checks what it sees while something is done to
//! the nodes or their stores. To add a promise: a file named after it, or a case in the one that it belongs to. A case that starts engines of its
//! own has `engine_` in its name, one that kills processes `kill_`: few of those run at once.

pub mod block;
mod board;
mod bounds;
mod bypass;
mod commit;
mod concurrent;
mod contents;
mod crash;
mod enrolment;
mod errors;
mod follows;
mod kill;
mod lapse;
mod locks;
mod migrations;
mod model;
mod nodes;
mod relations;
mod stores;
mod storm;
mod truth;
mod whole;
