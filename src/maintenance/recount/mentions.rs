//! What a recount compares of mentions: the positions in a group's head that mention all, against
//! the messages that do. As a head keeps them, the newest runs alone.

use super::{Difference, What};
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::engine::marks::{Intervals, MAX_MENTION_ALL_RUNS};

/// Which of these groups have anything that mentions all, by their heads or by their messages.
static WITH_ANY: Statement = Statement::new(
    "select r.owner_id
    from {rows} r
    left join heads h on h.owner_id = r.owner_id and h.kind = 6 and h.name = ''
    where coalesce(h.mention_all, '') <> ''
        or (coalesce(h.position, 0) = 0
            and (select m.seq from group_messages m where m.group_id = r.owner_id and m.mention_all = 1 limit 1) > 0)
    order by r.owner_id",
    &[("owner_id", Type::Int)],
)
.by("owner_id");

/// What a group's head says, and the newest runs of messages that mention all: as of one moment.
static RUNS: Statement = Statement::one(
    "select * from (
        select cast(0 as bigint) as first_seq, cast(0 as bigint) as last_seq,
            coalesce((select h.mention_all from heads h where h.owner_id = $1 and h.kind = 6 and h.name = ''), '') as stored
    ) head
    union all
    select * from (
        select min(seq), max(seq), ''
        from (
            select m.seq, m.seq - row_number() over (order by m.seq) as island
            from group_messages m
            where m.group_id = $1 and m.mention_all = 1
        ) numbered
        group by island
        order by 1 desc
        limit $2
    ) newest",
    &[("owner_id", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 2] {
    [&WITH_ANY, &RUNS]
}

/// Compares these groups. In a difference the group stands instead of the user.
pub(super) async fn count(conn: &mut Conn, groups: &[i64]) -> DbResult<Vec<Difference>> {
    let with_any: Vec<(i64,)> = conn.fetch(&WITH_ANY, &[Column::Int(groups.to_vec())]).await?;
    let mut found = Vec::new();
    for (group,) in with_any {
        let (stored, counted) = runs(conn, group).await?;
        if stored != counted {
            found.push(Difference::new(group, What::MentionAll, stored.len(), counted.len()));
        }
    }
    Ok(found)
}

/// The positions that mention all, as the head of a group has them and as its messages do.
pub(super) async fn runs(conn: &mut Conn, group: i64) -> DbResult<(Intervals, Intervals)> {
    let most = i64::try_from(MAX_MENTION_ALL_RUNS).unwrap_or(i64::MAX);
    let rows: Vec<(i64, i64, String)> = conn.fetch(&RUNS, &[Column::Int(vec![group]), Column::Int(vec![most])]).await?;
    let (mut stored, mut counted) = (Intervals::default(), Intervals::default());
    for (first, last, text) in rows {
        // No message has the number 0.
        if first == 0 { stored = Intervals::parse(&text) } else { counted.insert(first, last) }
    }
    Ok((stored, counted))
}
