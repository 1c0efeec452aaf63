//! What the export of a user has of posts and of the feed.

use serde_json::{Value, json};

use super::snapshot::Snapshot;
use crate::db::{Cell, Statement, Type};
use crate::features::export_part::{ExportPart, Shown, field};

static HEAD: Statement = Statement::one(
    "select h.head, h.position, h.at
    from heads h
    where h.owner_id = $1 and h.kind = 5 and h.name = ''",
    &[("user_id", Type::Int)],
);

static POSTS: Statement = Statement::one(
    "select p.post_id, p.seq, p.created_at, p.gone
    from posts p
    where p.user_id = $1 and p.post_id > $2
    order by p.post_id
    limit $3",
    &[("user_id", Type::Int), ("post_id", Type::Text), ("max_rows", Type::Int)],
);

static SNAPSHOT: Statement = Statement::one(
    "select s.data
    from feed_snapshots s
    where s.user_id = $1",
    &[("user_id", Type::Int)],
);

/// The user's posts, and what the user has seen of those of others.
pub static PARTS: &[ExportPart] = &[
    ExportPart {
        kind: "post_count",
        about: "How many posts the user has made",
        tables: &["heads"],
        owners: None,
        statement: &HEAD,
        fields: &[
            field("head", Shown::Number, "The number of posts ever made"),
            field("deleted", Shown::Number, "The number of them that were deleted"),
            field("last_at", Shown::Time, "When the last one was made"),
        ],
        key: &[],
    },
    ExportPart {
        kind: "post",
        about: "A post of the user, while its id is kept",
        tables: &["posts"],
        owners: None,
        statement: &POSTS,
        fields: &[
            field("post_id", Shown::Text, "Its id"),
            field("head", Shown::Number, "Its position among the user's posts"),
            field("created_at", Shown::Time, "When it was made"),
            field("deleted", Shown::Flag, "Whether it was deleted"),
        ],
        key: &[0],
    },
    ExportPart {
        kind: "feed",
        about: "What the user had seen of the feed at the last reset",
        tables: &["feed_snapshots"],
        owners: None,
        statement: &SNAPSHOT,
        fields: &[field("seen", Shown::With(seen), "An array of `{\"user_id\", \"posts\"}`: the posts of each creator up to then")],
        key: &[],
    },
];

fn seen(cell: &Cell) -> Option<Value> {
    let snapshot = Snapshot::decode(cell.bytes())?;
    Some(snapshot.iter().map(|(creator, posts)| json!({"user_id": creator, "posts": posts})).collect())
}
