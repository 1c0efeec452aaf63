//! The count of statements.

use std::sync::LazyLock;

/// Counts what is sent to the database. Taken once, so that a statement costs one atomic addition:
/// the recorder must be installed before the first one.
static SENT: LazyLock<metrics::Counter> = LazyLock::new(|| metrics::counter!("headmark_database_statements_total"));

/// So many statements are sent.
pub(super) fn sent(statements: u64) {
    SENT.increment(statements);
}
