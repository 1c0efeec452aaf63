//! What the export of a user has of push.

use crate::db::{Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};

static USER: Statement = Statement::one(
    "select p.due_at
    from push_users p
    where p.user_id = $1",
    &[("user_id", Type::Int)],
);

/// That services hear of the user's numbers.
pub static PARTS: &[ExportPart] = &[ExportPart {
    kind: "push",
    about: "The user has a push device",
    tables: &["push_users"],
    owners: None,
    statement: &USER,
    fields: &[field("due_at", Shown::Time, "When something ends that leaves a number out")],
    key: &[],
}];
