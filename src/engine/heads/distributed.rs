//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const LOOK: &str = "with l as materialized (
        select l.lane_id, l.batch
        from lanes l
        left join {rows} k on k.lane_id = l.lane_id
        where case when l.batch <= coalesce(k.batch, 0) then true else pg_advisory_xact_lock_shared(l.lane_id) is not null end
    ), s as materialized (
        select distinct s.owner_id, s.kind, s.name
        from l
        left join {rows} k on k.lane_id = l.lane_id
        cross join lateral (
            select c.owner_ids, c.kinds, c.names
            from head_changes c
            where l.batch > coalesce(k.batch, 0) and c.lane_id = l.lane_id and c.batch > coalesce(k.batch, 0)
            order by c.batch
            limit 20001
        ) c
        cross join lateral unnest(c.owner_ids, c.kinds, c.names) s (owner_id, kind, name)
        limit 20001
    ), h as materialized (
        select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
        from s
        join heads h on h.owner_id = s.owner_id and h.kind = s.kind and h.name = s.name
    )
    select cast(0 as bigint) as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version,
        0 as position, 0 as at, '' as mention_all
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0, ''
    from l
    union all
    select 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
    from h
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0, ''
    from notices n
    where n.changed > (select k.batch from {rows} k where k.lane_id = 0)
    union all
    select 4, count(*), 0, '', 0, '', 0, 0, 0, 0, ''
    from s";
