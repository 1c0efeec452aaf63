//! What the export of a user has of groups: memberships, messages that the user sent, and what an
//! import took. What others sent is not in it.

use serde_json::Value;

use super::Reading;
use super::erase::NEXT_GROUP;
use crate::base::clock::UnixMs;
use crate::db::{Cell, Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};
use crate::features::level::Level;

static MEMBERSHIPS: Statement = Statement::one(
    "select m.group_id, m.span, m.ordinal, m.joined_at, m.from_seq, m.to_seq, m.read_seq, m.extra, m.unread_from, m.again, m.mentions,
        m.hidden, m.level, m.level_until, m.at
    from memberships m
    where m.user_id = $1 and (m.group_id, m.span) > ($2, $3)
    order by m.group_id, m.span
    limit $4",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("span", Type::Int), ("max_rows", Type::Int)],
);

static MESSAGES: Statement = Statement::one(
    "select g.group_id, g.seq, g.client_id, g.sent_at, g.recalled, g.content, g.mentions, g.mention_all
    from group_messages g
    where g.group_id = $2 and g.sender_id = $1 and g.client_id > $3
    order by g.client_id
    limit $4",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("client_id", Type::Text), ("max_rows", Type::Int)],
);

static IMPORTED: Statement = Statement::one(
    "select l.group_id, l.at_second
    from group_log_members l
    where l.user_id = $1 and l.group_id > $2
    order by l.group_id
    limit $3",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("max_rows", Type::Int)],
);

/// The user's memberships and messages.
pub static PARTS: &[ExportPart] = &[
    ExportPart {
        kind: "membership",
        about: "A time that the user was, or is, a member of a group",
        tables: &["memberships"],
        owners: None,
        statement: &MEMBERSHIPS,
        fields: &[
            field("group_id", Shown::Id, "The group"),
            field("span", Shown::Number, "1 for the first time, 2 for the second"),
            field("ordinal", Shown::Number, "The user's number in the group"),
            field("joined_at", Shown::Time, "When the user joined"),
            field("from_seq", Shown::Number, "The last message before that"),
            field("to_seq", Shown::With(left), "The last message when the user left; omitted while the user is a member"),
            field("read_seq", Shown::Number, "The message up to which the user has read"),
            field("read_alone", Shown::With(runs), "Messages after that which the user has read, as in `7 9-12`"),
            field("unread_from", Shown::Position, "The message from which on the user marked the group as unread"),
            field("read_again", Shown::With(runs), "Messages after that which do not count as unread"),
            field("mentions", Shown::Text, "Unread messages that mention the user"),
            field("hidden", Shown::Text, "Of which messages the user hides the receipts, after the number of switches"),
            field("level", Shown::With(level), "What of the group the user's sums count"),
            field("level_until", Shown::Time, "When that ends"),
            field("last_access_at", Shown::Time, "When the user was there last"),
        ],
        key: &[0, 1],
    },
    ExportPart {
        kind: "group_message",
        about: "A message that the user sent to a group",
        tables: &["group_messages"],
        owners: Some(&NEXT_GROUP),
        statement: &MESSAGES,
        fields: &[
            field("group_id", Shown::Id, "The group"),
            field("seq", Shown::Number, "Its number in the group"),
            field("client_id", Shown::Text, "Its `client_id`"),
            field("sent_at", Shown::Time, "When it was sent"),
            field("recalled", Shown::Flag, "Whether it was recalled"),
            field("content", Shown::Text, "What it says; omitted once it is recalled"),
            field("mentions", Shown::Text, "The members whom it mentions"),
            field("mention_all", Shown::Flag, "Whether it mentions everybody"),
        ],
        key: &[2],
    },
    ExportPart {
        kind: "imported_member",
        about: "How far an imported log of a group was taken for the user",
        tables: &["group_log_members"],
        owners: None,
        statement: &IMPORTED,
        fields: &[field("group_id", Shown::Id, "The group"), field("up_to", Shown::With(second), "The time of the user's last line")],
        key: &[0],
    },
];

fn left(cell: &Cell) -> Option<Value> {
    Some(cell.int()).filter(|seq| *seq >= 0).map(Value::from)
}

fn runs(cell: &Cell) -> Option<Value> {
    let runs = Reading::from_row(0, cell.bytes()).extra_runs().to_string();
    Some(runs).filter(|runs| !runs.is_empty()).map(Value::from)
}

fn level(cell: &Cell) -> Option<Value> {
    serde_json::to_value(Level::from_code(cell.int())).ok()
}

fn second(cell: &Cell) -> Option<Value> {
    Some(UnixMs(cell.int().saturating_mul(1000)).to_string().into())
}
