//! What the export of a user has of views.

use crate::db::{Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};

static VISITS: Statement = Statement::one(
    "select m.name, m.head, m.mark, m.retracted, m.at
    from marks m
    where m.user_id = $1 and m.kind = 4 and m.name > $2
    order by m.name
    limit $3",
    &[("user_id", Type::Int), ("name", Type::Text), ("max_rows", Type::Int)],
);

/// The views that the user has visited.
pub static PARTS: &[ExportPart] = &[ExportPart {
    kind: "view",
    about: "A view that the user has visited",
    tables: &["marks"],
    owners: None,
    statement: &VISITS,
    fields: &[
        field("view", Shown::Text, "The view and its id, as in `home:1`"),
        field("head", Shown::Number, "The last item when the user was there"),
        field("read_up_to", Shown::Number, "The item up to which the user has read"),
        field("removed", Shown::Text, "Items after that which do not count, as in `7 9-12`"),
        field("last_access_at", Shown::Time, "When the user was there last"),
    ],
    key: &[0],
}];
