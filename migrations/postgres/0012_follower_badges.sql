-- What a new follower raised, so that unfollowing can take it back; and direct chats with users whom one blocks count in no sum.

-- The followee's badge that the follow raised, and to which head; empty: it raised none.
alter table following add column badge text not null default '';
alter table following add column badge_at bigint not null default 0;

-- Polls show these sums, so the revision is raised.
update users
set revision = revision + 1,
    direct_unread = coalesce((
        select cast(sum(d.head - d.mark) as bigint)
        from directs d
        where d.user_id = users.user_id and d.muted = 0 and d.head > d.mark
            and not exists (select 1 from blocks b where b.user_id = d.user_id and b.target_id = d.peer_id)
    ), 0),
    direct_chats = (
        select count(*)
        from directs d
        where d.user_id = users.user_id and d.muted = 0 and d.head > d.mark
            and not exists (select 1 from blocks b where b.user_id = d.user_id and b.target_id = d.peer_id)
    )
where user_id in (
    select b.user_id
    from blocks b
    join directs d on d.user_id = b.user_id and d.peer_id = b.target_id
    where d.muted = 0 and d.head > d.mark
);
