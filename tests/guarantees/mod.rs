//! The promises, each tried as hard as a test can: on both tiers, on several nodes, with processes
//! killed and stores taken away.
//!
//! - An acknowledged write is kept and counts once: `commit`, `crash`, `disk_full`,
//!   `failover`, `half_open`, `kill`, `nodes`, `open_files`.
//! - No poll shows an older state than the last acknowledged write, on any node: `bypass`,
//!   `enrolment`, `lapse`, `lives_on`, `redis_cluster`, `refusals`, `sentinel`, `shared_heads`, `stores`, `together`.
//! - Every number is what a naive model says: `all_kinds`, `concurrent`, `model`,
//!   `skew`.
//! - Counts equal lists, and nobody sees what is secret: `follows`, `relations`, `contents`.
//! - Whatever the load, everything is bounded: `bounds`, `locks`, `turns`.
//! - Whoever has a push device, the last change of its numbers is told: `push`.
//! - A replica is read for what may be a moment old, and never when it is older: `replicas`.
//! - Both engines run every statement, and migrations run while nodes serve: `errors`,
//!   `migrations`, `statements`, `sqlite_rows`, `upgrade`.
//! - After a restore nobody is shown what was lost: `restore`.
//! - Statements find their rows by an index, and keep to the partitions of these; and rows move to another number of
//!   them whatever stops the command: `scans`, `plans`, `partitions`.
//!
//! `truth` asks the rows themselves. `storm` is a crowd that checks what it sees while a test
//! disturbs the nodes or their stores. To add a promise: a file named after it, or a case in the
//! one that it belongs to. A case that starts engines of its own has `engine_` in its name, one
//! that kills processes `kill_`: few of those run at once.

mod all_kinds;
mod bounds;
mod bypass;
mod commit;
mod concurrent;
mod contents;
mod crash;
mod disk_full;
mod enrolment;
mod errors;
mod failover;
mod follows;
mod half_open;
mod kill;
mod known_users;
mod lapse;
mod lives_on;
mod locks;
mod migrations;
mod model;
mod nodes;
mod open_files;
mod partitions;
mod plans;
mod push;
mod reads;
mod redis_cluster;
mod refusals;
mod relations;
mod replicas;
mod requests;
mod restore;
mod scans;
mod sentinel;
mod shared_heads;
mod skew;
mod sqlite_rows;
mod statements;
mod stores;
mod storm;
mod together;
mod truth;
mod turns;
mod upgrade;
mod user_marks;
