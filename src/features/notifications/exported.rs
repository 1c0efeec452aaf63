//! What the export of a user has of notifications. Contents lie with the notification, so they are
//! read by what the user's rows say.

use crate::db::{Statement, Type};
use crate::features::export_part::{ExportPart, Field, Shown, field};

static ENTRIES: Statement = Statement::one(
    "with r as materialized (
        select r.seq, r.notification_id, r.type, r.group_key, r.notifications, r.created_at, r.updated_at, r.read_at, r.gone
        from notification_receivers r
        where r.user_id = $1 and r.seq > $2
        order by r.seq
        limit $3
    ), n as materialized (
        select n.notification_id, n.content, n.created_at
        from r
        join notifications n on n.notification_id = r.notification_id
        where r.gone = 0 and n.withdrawn = 0
    )
    select r.notification_id, r.seq, r.type, r.group_key, r.notifications,
        case when r.created_at > 0 then r.created_at else coalesce(n.created_at, 0) end, r.updated_at, r.read_at, r.gone,
        coalesce(n.content, '')
    from r
    left join n on n.notification_id = r.notification_id
    order by r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int), ("max_rows", Type::Int)],
);

static GROUPED: Statement = Statement::one(
    "with g as materialized (
        select g.entry_id, g.seq, g.notification_id, g.actor_id
        from grouped_notifications g
        where g.user_id = $1 and (g.entry_id, g.seq) > ($2, $3)
        order by g.entry_id, g.seq
        limit $4
    ), n as materialized (
        select n.notification_id, n.content
        from g
        join notifications n on n.notification_id = g.notification_id
        where n.withdrawn = 0
    )
    select g.entry_id, g.seq, g.notification_id, g.actor_id, coalesce(n.content, '')
    from g
    left join n on n.notification_id = g.notification_id
    order by g.entry_id, g.seq",
    &[("user_id", Type::Int), ("entry_id", Type::Int), ("seq", Type::Int), ("max_rows", Type::Int)],
);

static TYPES: Statement = Statement::one(
    "select t.type, t.unread, t.seen
    from notification_types t
    where t.user_id = $1 and t.type > $2
    order by t.type
    limit $3",
    &[("user_id", Type::Int), ("type", Type::Text), ("max_rows", Type::Int)],
);

const CONTENT: Field =
    field("content", Shown::Json, "What it says: `title`, `content`, `data`, `actor_id`, `group_key`. Omitted once it is gone");

/// The user's list of notifications.
pub static PARTS: &[ExportPart] = &[
    ExportPart {
        kind: "notification",
        about: "An entry of the user's list of notifications",
        tables: &["notification_receivers", "notifications"],
        owners: None,
        statement: &ENTRIES,
        fields: &[
            field("id", Shown::Id, "Its id, which is that of its first notification"),
            field(
                "seq",
                Shown::Number,
                "Its place in the list; below 0 where the user muted or blocked the actor, and the list never had it",
            ),
            field("type", Shown::Text, "Its type"),
            field("group_key", Shown::Text, "By what notifications join it"),
            field("notifications", Shown::Number, "The number of notifications in it"),
            field("created_at", Shown::Time, "When the first one was sent"),
            field("updated_at", Shown::Time, "When the last one joined"),
            field("read_at", Shown::Time, "When the user has read it"),
            field("deleted", Shown::Flag, "Whether the user has deleted it, or nothing is left in it"),
            CONTENT,
        ],
        key: &[1],
    },
    ExportPart {
        kind: "grouped_notification",
        about: "A notification in an entry with a group key",
        tables: &["grouped_notifications", "notifications"],
        owners: None,
        statement: &GROUPED,
        fields: &[
            field("entry_id", Shown::Id, "The entry"),
            field("seq", Shown::Number, "The place to which it moved the entry"),
            field("notification_id", Shown::Id, "The notification"),
            field("actor_id", Shown::Id, "Who acted"),
            CONTENT,
        ],
        key: &[0, 1],
    },
    ExportPart {
        kind: "notification_count",
        about: "How many entries of a type are unread",
        tables: &["notification_types"],
        owners: None,
        statement: &TYPES,
        fields: &[
            field("type", Shown::Text, "The type"),
            field("unread", Shown::Number, "Unread entries"),
            field("seen", Shown::Number, "Those of them that the user has seen in the list"),
        ],
        key: &[0],
    },
];
