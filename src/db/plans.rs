//! How Postgres is to plan the statements of this program.

use clap::ValueEnum;

/// When a statement is planned, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plans {
    /// Custom plans on a distributed database, generic ones on any other.
    Auto,
    /// Once, for any parameters.
    Generic,
    /// At each execution, for its parameters.
    Custom,
}

/// Every statement finds each of its rows by an index, however many it asks for.
///
/// Left to itself, Postgres would plan for what the tables held when it first saw a statement, or
/// scan a whole table once a batch asks for some thousands of its rows; the first is wrong after an
/// import has filled an empty table, the second costs the more the larger the table is. So it may
/// choose indexes only, and then one plan for every batch is enough. Scans stay possible where
/// there is no index.
const BY_INDEX: [(&str, &str); 5] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// Only a plan for the parameters at hand knows which shards have their rows. One connection to each
/// worker is enough for short statements, and keeps a transaction in one piece. What a transaction
/// sets for itself (how long it waits for locks) holds on the workers, too.
const DISTRIBUTED: [(&str, &str); 4] = [
    ("plan_cache_mode", "force_custom_plan"),
    ("citus.max_adaptive_executor_pool_size", "1"),
    ("citus.multi_shard_modify_mode", "sequential"),
    ("citus.propagate_set_commands", "local"),
];

const CUSTOM: [(&str, &str); 1] = [("plan_cache_mode", "force_custom_plan")];

impl Plans {
    /// The settings of each connection.
    pub(super) fn settings(self, is_distributed: bool) -> &'static [(&'static str, &'static str)] {
        match (self, is_distributed) {
            (Self::Auto | Self::Custom, true) => &DISTRIBUTED,
            (Self::Custom, false) => &CUSTOM,
            (Self::Auto | Self::Generic, false) | (Self::Generic, true) => &BY_INDEX,
        }
    }
}
