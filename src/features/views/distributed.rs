//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const OLD: &str = "with i as materialized (
        select i.created_at, i.stream, i.item_id, i.actor_id, i.seq
        from view_items i
        where i.gone = 0 and (i.created_at, i.stream, i.item_id) > ($1, $2, $3) and i.created_at < $4
        order by i.created_at, i.stream, i.item_id
        limit $5
    ), m as materialized (
        select m.user_id, m.name, m.mark from i join marks m on m.user_id = i.actor_id and m.kind = 4 and m.name = i.stream
    )
    select i.created_at, i.stream, i.item_id,
        cast(case when exists (select 1 from m where m.user_id = i.actor_id and m.name = i.stream and m.mark < i.seq) then 0 else 1 end as bigint)
    from i
    order by i.created_at, i.stream, i.item_id";
