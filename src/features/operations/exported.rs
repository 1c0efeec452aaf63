//! What the export of a user has of requests that are kept: asynchronous writes and answers to
//! idempotency keys, of the user's own tokens. What services sent belongs to them, and what others
//! sent about the user is theirs.

use crate::db::{Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};

/// Users are the last callers in the order of names, and the index has them alone.
static OPERATIONS: Statement = Statement::one(
    "select o.operation_id, o.command, o.status, o.created_at, o.finished_at, o.answer_status, o.answer, o.seq
    from operations o
    where o.caller >= 'user:' and o.caller = 'user:' || cast($1 as text) and o.seq > $2
    order by o.seq
    limit $3",
    &[("user_id", Type::Int), ("seq", Type::Int), ("max_rows", Type::Int)],
);

static KEYS: Statement = Statement::one(
    "select k.key, k.created_at, k.status, k.body
    from idempotency_keys k
    where k.caller = 'user:' || cast($1 as text) and k.key > $2
    order by k.key
    limit $3",
    &[("user_id", Type::Int), ("key", Type::Text), ("max_rows", Type::Int)],
);

/// The user's own requests.
pub static PARTS: &[ExportPart] = &[
    ExportPart {
        kind: "operation",
        about: "An asynchronous write with a token of the user",
        tables: &["operations"],
        owners: None,
        statement: &OPERATIONS,
        fields: &[
            field("operation_id", Shown::Text, "Its id"),
            field("command", Shown::Json, "What was to be done"),
            field("status", Shown::Number, "0 pending, 1 done, 2 failed"),
            field("created_at", Shown::Time, "When it was accepted"),
            field("finished_at", Shown::Time, "When it was done"),
            field("answer_status", Shown::Position, "The HTTP status of its answer"),
            field("answer", Shown::Json, "The answer"),
        ],
        key: &[7],
    },
    ExportPart {
        kind: "idempotency_key",
        about: "The answer to an idempotency key of a token of the user",
        tables: &["idempotency_keys"],
        owners: None,
        statement: &KEYS,
        fields: &[
            field("key", Shown::Text, "The key"),
            field("created_at", Shown::Time, "When the request was made"),
            field("status", Shown::Number, "The HTTP status of the answer"),
            field("answer", Shown::Json, "The answer"),
        ],
        key: &[0],
    },
];
