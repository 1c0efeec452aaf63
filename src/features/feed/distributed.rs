//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const FOLLOWED: &str = "with f as materialized (
        select f.followee_id from following f where f.follower_id = $1
    ), h as materialized (
        select h.owner_id, h.head from f join heads h on h.owner_id = f.followee_id and h.kind = 5 and h.name = ''
    )
    select 0 as creator_id, u.feed as head
    from users u
    where u.user_id = $1
    union all
    select f.followee_id, coalesce(h.head, 0)
    from f
    left join h on h.owner_id = f.followee_id
    order by 1";

/// As SQLite has it, too.
pub(super) const WRITTEN_HEADS: &str = "select h.owner_id, h.head, h.lane_id, h.batch, h.at
    from {rows} r
    join heads h on h.owner_id = r.user_id and h.kind = 5 and h.name = ''";
