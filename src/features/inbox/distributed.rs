//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

/// The head is read first, and bounds the rows, as each part of it has a snapshot of its own. What has
/// expired since the rows were read is known by the first row, which is read after them.
pub(super) const READ_INBOX: &str = "with u as materialized (
        select u.inbox_seq, u.revision from users u where u.user_id = $1
    ), i as materialized (
        select n.seq, n.sender_id, n.peer_id, n.group_id, n.group_seq, n.own, n.recall, n.client_id, n.content, n.put_at, n.sent_at, n.recalled
        from inbox n
        where n.user_id = $1 and n.seq > $2 and n.seq <= (select u.inbox_seq from u)
        order by n.seq
        limit $3
    ), f as materialized (
        select f.seq from inbox f where f.user_id = $1 order by f.seq limit 1
    ), g as materialized (
        select distinct g.group_id, g.seq, g.sender_id, g.recalled, g.content, g.sent_at
        from i
        join group_messages g on g.group_id = i.group_id and g.seq = i.group_seq
    )
    select 0 as seq, coalesce((select u.inbox_seq from u), 0) as sender_id, coalesce((select u.revision from u), 0) as peer_id,
        coalesce((select f.seq from f), (select u.inbox_seq + 1 from u), 1) as group_id,
        0 as group_seq, 0 as own, 0 as recall, 0 as recalled, e.epoch as client_id, '' as content, 0 as sent_at
    from inbox_epoch e
    where e.id = 1
    union all
    select i.seq, case when i.own = 1 then $1 when i.group_id > 0 then coalesce(g.sender_id, 0) else i.sender_id end,
        coalesce(i.peer_id, 0), i.group_id, i.group_seq, i.own, i.recall,
        case when i.group_id > 0 then coalesce(g.recalled, 1) else i.recalled end,
        coalesce(i.client_id, ''), coalesce(g.content, i.content, ''),
        case when i.sent_at > 0 then i.sent_at when i.recall = 1 then i.put_at else coalesce(g.sent_at, i.put_at) end
    from i
    left join g on g.group_id = i.group_id and g.seq = i.group_seq
    order by 1";
