//! What the export of a user has of relations: all that the user may read of them. Who blocks or
//! mutes the user is nowhere in it.

use crate::db::{Statement, Type};
use crate::features::export_part::{ExportPart, Field, Shown, field};

const BY_ID: &[(&str, Type)] = &[("user_id", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];
const BY_TIME: &[(&str, Type)] = &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];

static FOLLOWING: Statement = Statement::one(
    "select f.followee_id, f.since, f.secret, f.special, f.mark
    from following f
    where f.follower_id = $1 and f.followee_id > $2
    order by f.followee_id
    limit $3",
    BY_ID,
);

static FOLLOWERS: Statement = Statement::one(
    "select f.follower_id, f.since, cast(0 as bigint)
    from followers f
    where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
    order by f.since, f.follower_id
    limit $4",
    BY_TIME,
);

static SECRET_FOLLOWERS: Statement = Statement::one(
    "select f.follower_id, f.since, cast(1 as bigint)
    from secret_followers f
    where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
    order by f.since, f.follower_id
    limit $4",
    BY_TIME,
);

static SENT_REQUESTS: Statement = Statement::one(
    "select s.followee_id, s.since, s.secret, s.special
    from sent_requests s
    where s.follower_id = $1 and s.followee_id > $2
    order by s.followee_id
    limit $3",
    BY_ID,
);

static REQUESTS: Statement = Statement::one(
    "select q.follower_id, q.since
    from follow_requests q
    where q.followee_id = $1 and (q.since, q.follower_id) > ($2, $3)
    order by q.since, q.follower_id
    limit $4",
    BY_TIME,
);

static BLOCKS: Statement = Statement::one(
    "select b.target_id, b.since
    from blocks b
    where b.user_id = $1 and b.target_id > $2
    order by b.target_id
    limit $3",
    BY_ID,
);

static MUTES: Statement = Statement::one(
    "select m.target_id, m.since, m.until
    from mutes m
    where m.user_id = $1 and m.target_id > $2
    order by m.target_id
    limit $3",
    BY_ID,
);

static OWN_COUNTS: Statement = Statement::one(
    "select c.secret, c.special, c.blocked, c.requests
    from relation_counts c
    where c.user_id = $1",
    &[("user_id", Type::Int)],
);

static FOLLOWER_COUNTS: Statement = Statement::one(
    "select cast(sum(c.followers) as bigint), cast(sum(c.mutuals) as bigint), cast(sum(c.requests) as bigint)
    from follower_counts c
    where c.user_id = $1
    having sum(c.followers) + sum(c.mutuals) + sum(c.requests) > 0",
    &[("user_id", Type::Int)],
);

static APPROVAL_ENDS: Statement = Statement::one(
    "select a.since
    from approval_ends a
    where a.user_id = $1",
    &[("user_id", Type::Int)],
);

const OTHER: Field = field("user_id", Shown::Id, "The other user");
const SINCE: Field = field("since", Shown::Time, "Since when");
const SECRET: Field = field("secret", Shown::Flag, "Whether only the two users see it");
const SPECIAL: Field = field("special", Shown::Flag, "Whether the other user is special to the user");

const fn part(
    kind: &'static str,
    about: &'static str,
    tables: &'static [&'static str],
    statement: &'static Statement,
    fields: &'static [Field],
    key: &'static [usize],
) -> ExportPart {
    ExportPart { kind, about, tables, owners: None, statement, fields, key }
}

/// The user's follows, requests, blocks and mutes, and who follows the user or has asked to.
pub static PARTS: &[ExportPart] = &[
    part(
        "following",
        "A user whom the user follows",
        &["following"],
        &FOLLOWING,
        &[OTHER, SINCE, SECRET, SPECIAL, field("posts", Shown::Number, "The number of the other user's posts when the follow began")],
        &[0],
    ),
    part("follower", "A user who follows the user", &["followers"], &FOLLOWERS, &[OTHER, SINCE, SECRET], &[1, 0]),
    part("follower", "A user who follows the user", &["secret_followers"], &SECRET_FOLLOWERS, &[OTHER, SINCE, SECRET], &[1, 0]),
    part(
        "sent_request",
        "A user whom the user has asked to follow",
        &["sent_requests"],
        &SENT_REQUESTS,
        &[OTHER, SINCE, SECRET, SPECIAL],
        &[0],
    ),
    part("follow_request", "A user who has asked to follow the user", &["follow_requests"], &REQUESTS, &[OTHER, SINCE], &[1, 0]),
    part("block", "A user whom the user blocks", &["blocks"], &BLOCKS, &[OTHER, SINCE], &[0]),
    part(
        "mute",
        "A user whom the user mutes",
        &["mutes"],
        &MUTES,
        &[OTHER, SINCE, field("until", Shown::Time, "When it ends; omitted if it does not")],
        &[0],
    ),
    part(
        "own_relation_counts",
        "How many of the user's relations are of each sort",
        &["relation_counts"],
        &OWN_COUNTS,
        &[
            field("secret", Shown::Number, "Secret follows"),
            field("special", Shown::Number, "Special users"),
            field("blocked", Shown::Number, "Blocks"),
            field("requests_sent", Shown::Number, "Open requests of the user"),
        ],
        &[],
    ),
    part(
        "follower_counts",
        "How many users follow the user",
        &["follower_counts"],
        &FOLLOWER_COUNTS,
        &[
            field("followers", Shown::Number, "Followers"),
            field("mutuals", Shown::Number, "Public follows that go both ways"),
            field("requests", Shown::Number, "Open requests to follow the user"),
        ],
        &[],
    ),
    part(
        "approval_end",
        "The user approves follows no longer, and open requests are being accepted",
        &["approval_ends"],
        &APPROVAL_ENDS,
        &[SINCE],
        &[],
    ),
];
