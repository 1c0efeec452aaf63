//! What the export of a user has of the inbox, direct chats and devices.

use serde_json::Value;

use crate::db::{Cell, Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};
use crate::features::level::Level;

static INBOX: Statement = Statement::one(
    "select i.seq, coalesce(i.sender_id, 0), coalesce(i.peer_id, 0), i.group_id, i.group_seq, i.own, i.recall, coalesce(i.recalled, 0),
        case when i.own = 1 then coalesce(i.client_id, '') else '' end, coalesce(i.content, ''), i.put_at, coalesce(i.sent_at, 0)
    from inbox i
    where i.user_id = $1 and i.seq > $2
    order by i.seq
    limit $3",
    &[("user_id", Type::Int), ("seq", Type::Int), ("max_rows", Type::Int)],
);

static DIRECTS: Statement = Statement::one(
    "select d.peer_id, d.head, d.mark, d.recalled, d.gone, d.gone_seqs, d.last_seq, d.last_at, d.read_seq, d.again, d.unread_from,
        d.hidden, d.level, d.level_until
    from directs d
    where d.user_id = $1 and d.peer_id > $2
    order by d.peer_id
    limit $3",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("max_rows", Type::Int)],
);

static DEVICES: Statement = Statement::one(
    "select d.device_id, d.seq, d.push, d.seen_at, d.created_at
    from devices d
    where d.user_id = $1 and d.device_id > $2
    order by d.device_id
    limit $3",
    &[("user_id", Type::Int), ("device_id", Type::Text), ("max_rows", Type::Int)],
);

/// The user's inbox, direct chats and devices.
pub static PARTS: &[ExportPart] = &[
    ExportPart {
        kind: "direct",
        about: "A direct chat, as the user sees it",
        tables: &["directs"],
        owners: None,
        statement: &DIRECTS,
        fields: &[
            field("peer_id", Shown::Id, "The other user"),
            field("head", Shown::Number, "The number of messages that the peer has sent"),
            field("read_up_to", Shown::Number, "The number of them that the user has read"),
            field("recalled", Shown::Number, "The number of unread ones that were recalled"),
            field("expired", Shown::Number, "The number of them that have expired"),
            field("expired_unread", Shown::Text, "The seqs of those that had not been read by then"),
            field("last_seq", Shown::Number, "The last row of the chat in the inbox"),
            field("last_at", Shown::Time, "When it came"),
            field("read_seq", Shown::Number, "The row up to which the user has read"),
            field("unread_again", Shown::Number, "The number of messages that the user marked as unread"),
            field("unread_from", Shown::Position, "The row from which on messages are unread, if some were marked so or have expired"),
            field("hidden", Shown::Text, "Of which rows the user hides the receipts, after the number of switches"),
            field("level", Shown::With(level), "What of the chat the user's sums count"),
            field("level_until", Shown::Time, "When that ends"),
        ],
        key: &[0],
    },
    ExportPart {
        kind: "inbox",
        about: "A row of the user's inbox. A group's message is with its sender",
        tables: &["inbox"],
        owners: None,
        statement: &INBOX,
        fields: &[
            field("seq", Shown::Number, "Its number"),
            field("sender_id", Shown::Id, "Who sent a direct message"),
            field("peer_id", Shown::Id, "The other side of a direct chat"),
            field("group_id", Shown::Id, "The group"),
            field("group_seq", Shown::Position, "The message of the group, or the row that was recalled"),
            field("own", Shown::Flag, "Whether the user sent it"),
            field("recall", Shown::Flag, "Whether the row says that a message was recalled"),
            field("recalled", Shown::Flag, "Whether the message was recalled"),
            field("client_id", Shown::Text, "The `client_id` of an own direct message"),
            field("content", Shown::Text, "What a direct message says; omitted once it is recalled"),
            field("put_at", Shown::Time, "When the row was made"),
            field("sent_at", Shown::Time, "When a direct message was sent"),
        ],
        key: &[0],
    },
    ExportPart {
        kind: "device",
        about: "A device of the user",
        tables: &["devices"],
        owners: None,
        statement: &DEVICES,
        fields: &[
            field("device_id", Shown::Text, "Its id"),
            field("cursor", Shown::With(cursor), "The row of the inbox up to which it has read; omitted before the first time"),
            field("push", Shown::Flag, "Whether services hear of every change of the user's numbers"),
            field("last_seen_at", Shown::Time, "When it was seen last"),
            field("created_at", Shown::Time, "When it was seen first"),
        ],
        key: &[0],
    },
];

fn cursor(cell: &Cell) -> Option<Value> {
    Some(cell.int()).filter(|seq| *seq >= 0).map(Value::from)
}

fn level(cell: &Cell) -> Option<Value> {
    serde_json::to_value(Level::from_code(cell.int())).ok()
}
