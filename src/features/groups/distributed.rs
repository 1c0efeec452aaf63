//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

/// Citus plans no subquery that asks for each row of another table.
pub(super) const STRETCH: &str = "select distinct m.ordinal, m.user_id, m.from_seq, m.to_seq
    from memberships m
    cross join delivery_jobs t
    where m.group_id = $1 and m.ordinal > $2 and m.ordinal <= $3 and (m.to_seq < 0 or m.to_seq >= $4)
        and t.group_id = $1 and t.job > $5 and t.job <= $6 and m.from_seq < t.seq and (m.to_seq < 0 or t.seq <= m.to_seq)
    order by m.ordinal
    limit $7";

pub(super) const VIEW: &str = "with m as materialized (
        select m.from_seq from memberships m where m.user_id = $2 and m.group_id = $1 and m.to_seq < 0
    )
    select g.delivery, g.receipts, g.members, g.ordinals, g.jobs, g.created_at,
        coalesce((select h.head from heads h where h.owner_id = $1 and h.kind = 6 and h.name = ''), 0),
        coalesce((select m.from_seq from m), -1),
        g.changes, case when g.deleted_by = '' then 0 else 1 end
    from chat_groups g
    where g.group_id = $1";
