//! A distributed Postgres: Citus, whose coordinator has this program's small tables and whose
//! workers have shards of the large ones, by the owners that `large_tables.rs` names
//! (`docs/adr/0025-citus.md`).
//!
//! A statement whose rows have one owner ([`Statement::by`](super::Statement::by)) is executed once
//! for each shard that its rows are in, and says so in its text. Then Citus sends it to that shard
//! as it is, whatever is in it. All other statements must be such that Citus can take them apart;
//! those that are not have a text of their own ([`Statement::distributed`](super::Statement::distributed)).

mod check;
mod distribute;

pub(super) use self::check::inspect;
pub use self::distribute::Distributed;
pub(super) use self::distribute::place_new_tables;
