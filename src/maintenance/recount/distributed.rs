//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

macro_rules! lost {
    ($of:literal) => {
        concat!(
            "with f as materialized (",
            $of,
            "), b as materialized (
        select f.follower_id, f.followee_id
        from f
        join followers b on b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id and f.secret = 0
    ), s as materialized (
        select f.follower_id, f.followee_id
        from f
        join secret_followers b on b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id and f.secret = 1
    )
    select f.follower_id, f.followee_id, f.since
    from f
    left join b on b.follower_id = f.follower_id and b.followee_id = f.followee_id
    left join s on s.follower_id = f.follower_id and s.followee_id = f.followee_id
    where b.follower_id is null and s.follower_id is null
    order by f.follower_id, f.followee_id
    limit 1000"
        )
    };
}

/// Follows without the row of the followee.
pub(super) const MISSING: &str = lost!(
    "
        select f.follower_id, f.followee_id, f.since, f.secret
        from {rows} r
        join following f on f.follower_id = r.user_id
        where (f.follower_id, f.followee_id) > (r.after_follower, r.after_followee)
    "
);

pub(super) const MISSING_OF: &str = lost!(
    "
        select f.follower_id, f.followee_id, f.since, f.secret
        from following f
        where f.followee_id = $1 and f.follower_id > $2
    "
);

macro_rules! lost_requests {
    ($of:literal) => {
        concat!(
            "with s as materialized (",
            $of,
            "), q as materialized (
        select s.follower_id, s.followee_id
        from s
        join follow_requests q on q.followee_id = s.followee_id and q.since = s.since and q.follower_id = s.follower_id
    )
    select s.follower_id, s.followee_id, s.since
    from s
    left join q on q.follower_id = s.follower_id and q.followee_id = s.followee_id
    where q.follower_id is null
    order by s.follower_id, s.followee_id
    limit 1000"
        )
    };
}

/// Requests without the row of the user who is asked.
pub(super) const MISSING_REQUESTS: &str = lost_requests!(
    "
        select s.follower_id, s.followee_id, s.since
        from {rows} r
        join sent_requests s on s.follower_id = r.user_id
        where (s.follower_id, s.followee_id) > (r.after_follower, r.after_followee)
    "
);

pub(super) const MISSING_REQUESTS_OF: &str = lost_requests!(
    "
        select s.follower_id, s.followee_id, s.since
        from sent_requests s
        where s.followee_id = $1 and s.follower_id > $2
    "
);

/// In each of these, `$own` is the side that is the truth, and `$kind` which of its rows are compared.
macro_rules! extra {
    ($table:literal, $own:literal, $kind:literal) => {
        concat!(
            "with b as materialized (
        select b.follower_id, b.followee_id, b.since
        from {rows} r
        join ",
            $table,
            " b on b.followee_id = r.user_id
        where (b.followee_id, b.since, b.follower_id) > (r.after_followee, r.after_since, r.after_follower)
    ), f as materialized (
        select b.follower_id, b.followee_id
        from b
        join ",
            $own,
            " f on f.follower_id = b.follower_id and f.followee_id = b.followee_id and f.since = b.since",
            $kind,
            "
    )
    select b.follower_id, b.followee_id, b.since
    from b
    left join f on f.follower_id = b.follower_id and f.followee_id = b.followee_id
    where f.follower_id is null
    order by b.followee_id, b.since, b.follower_id
    limit 1000"
        )
    };
}

pub(super) const EXTRA: &str = extra!("followers", "following", " and f.secret = 0");

pub(super) const EXTRA_SECRET: &str = extra!("secret_followers", "following", " and f.secret = 1");

pub(super) const EXTRA_REQUESTS: &str = extra!("follow_requests", "sent_requests", "");

macro_rules! add {
    ($table:literal, $own:literal, $kind:literal) => {
        concat!(
            "with f as materialized (
        select f.followee_id, f.since, f.follower_id
        from {rows} r
        join ",
            $own,
            " f on f.follower_id = r.follower_id and f.followee_id = r.followee_id",
            $kind,
            "
    ), b as materialized (
        select f.follower_id, f.followee_id
        from f
        join ",
            $table,
            " b on b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
    )
    insert into ",
            $table,
            " (followee_id, since, follower_id)
    select f.followee_id, f.since, f.follower_id
    from f
    left join b on b.follower_id = f.follower_id and b.followee_id = f.followee_id
    where b.follower_id is null"
        )
    };
}

pub(super) const ADD_MISSING: &str = add!("followers", "following", " and f.secret = 0");

pub(super) const ADD_MISSING_SECRET: &str = add!("secret_followers", "following", " and f.secret = 1");

pub(super) const ADD_MISSING_REQUESTS: &str = add!("follow_requests", "sent_requests", "");

macro_rules! remove {
    ($table:literal, $own:literal, $kind:literal) => {
        concat!(
            "with f as materialized (
        select r.follower_id, r.followee_id, r.since
        from {rows} r
        join ",
            $own,
            " f on f.follower_id = r.follower_id and f.followee_id = r.followee_id and f.since = r.since",
            $kind,
            "
    )
    delete from ",
            $table,
            "
    where (followee_id, since, follower_id) in (
        select r.followee_id, r.since, r.follower_id
        from {rows} r
        left join f on f.follower_id = r.follower_id and f.followee_id = r.followee_id and f.since = r.since
        where f.follower_id is null
    )"
        )
    };
}

pub(super) const REMOVE_EXTRA: &str = remove!("followers", "following", " and f.secret = 0");

pub(super) const REMOVE_EXTRA_SECRET: &str = remove!("secret_followers", "following", " and f.secret = 1");

pub(super) const REMOVE_EXTRA_REQUESTS: &str = remove!("follow_requests", "sent_requests", "");

pub(super) const COUNT: &str = "with p as materialized (
        select f.follower_id, f.followee_id from {rows} r join following f on f.follower_id = r.user_id and f.secret = 0
    ), m as materialized (
        select p.follower_id as user_id, count(*) as mutuals
        from p
        join following b on b.follower_id = p.followee_id and b.followee_id = p.follower_id and b.secret = 0
        group by p.follower_id
    )
    select user_id, following, following_counted, followers, followers_counted, mutuals, mutuals_counted,
        secret, secret_counted, special, special_counted, blocked, blocked_counted
    from (
        select r.user_id,
            coalesce(u.following, 0) as following,
            (select count(*) from following f where f.follower_id = r.user_id) as following_counted,
            coalesce((select cast(sum(c.followers) as bigint) from follower_counts c where c.user_id = r.user_id), 0) as followers,
            (select count(*) from followers b where b.followee_id = r.user_id)
                + (select count(*) from secret_followers b where b.followee_id = r.user_id) as followers_counted,
            coalesce((select cast(sum(c.mutuals) as bigint) from follower_counts c where c.user_id = r.user_id), 0) as mutuals,
            coalesce((select m.mutuals from m where m.user_id = r.user_id), 0) as mutuals_counted,
            coalesce(o.secret, 0) as secret,
            (select count(*) from following f where f.follower_id = r.user_id and f.secret = 1) as secret_counted,
            coalesce(o.special, 0) as special,
            (select count(*) from following f where f.follower_id = r.user_id and f.special = 1) as special_counted,
            coalesce(o.blocked, 0) as blocked,
            (select count(*) from blocks b where b.user_id = r.user_id) as blocked_counted
        from {rows} r
        left join users u on u.user_id = r.user_id
        left join relation_counts o on o.user_id = r.user_id
    ) counted
    where following <> following_counted or followers <> followers_counted or mutuals <> mutuals_counted
        or secret <> secret_counted or special <> special_counted or blocked <> blocked_counted
    order by user_id";

pub(super) const COUNT_GROUPS: &str = "with m as materialized (
        select m.group_id, count(*) filter (where m.to_seq < 0) as members, max(m.ordinal) as ordinals
        from {rows} r
        join memberships m on m.group_id = r.group_id
        group by m.group_id
    ), c as materialized (
        select c.group_id, max(c.id) as changes
        from {rows} r
        join group_changes c on c.group_id = r.group_id
        group by c.group_id
    )
    select g.group_id, g.members, coalesce(m.members, 0), g.ordinals, coalesce(m.ordinals, 0), g.changes, coalesce(c.changes, 0)
    from {rows} r
    join chat_groups g on g.group_id = r.group_id and g.deleted_by = ''
    left join m on m.group_id = g.group_id
    left join c on c.group_id = g.group_id
    where g.members <> coalesce(m.members, 0) or g.ordinals <> coalesce(m.ordinals, 0) or g.changes < coalesce(c.changes, 0)
    order by g.group_id";

pub(super) const LOST: &str = "with since as materialized (
        select r.user_id, coalesce(
            (
                select case when i.seq = 1 then -1 else i.put_at + r.apart_ms end
                from inbox i
                where i.user_id = r.user_id
                order by i.seq
                limit 1
            ),
            case when coalesce((select u.inbox_seq from users u where u.user_id = r.user_id), 0) = 0 then -1 else 9223372036854775807 end
        ) as sent_at
        from {rows} r
    ), m as materialized (
        select m.user_id, m.group_id, m.from_seq, m.to_seq, since.sent_at from since join memberships m on m.user_id = since.user_id
    ), i as materialized (
        select i.user_id, i.group_id, i.group_seq, i.recall from {rows} r join inbox i on i.user_id = r.user_id where i.group_id > 0
    ), sent as materialized (
        select m.user_id, g.group_id, g.seq as group_seq, g.recalled as recall
        from m
        join chat_groups c on c.group_id = m.group_id and c.jobs > 0 and c.deleted_by = ''
        join group_messages g on g.group_id = c.group_id and g.seq > m.from_seq and (m.to_seq < 0 or g.seq <= m.to_seq)
        where g.written = 1 and g.recalled = 0 and g.sent_at > m.sent_at
    ), recalled as materialized (
        select i.user_id, i.group_id, i.group_seq, g.recalled as recall
        from i
        join chat_groups c on c.group_id = i.group_id and c.deleted_by = ''
        join group_messages g on g.group_id = c.group_id and g.seq = i.group_seq
        where i.recall = 0 and g.recalled = 1
    ), due as materialized (
        select user_id, group_id, group_seq, recall from sent union all select user_id, group_id, group_seq, recall from recalled
    )
    select due.user_id, due.group_id, due.group_seq, due.recall
    from due
    where (due.user_id, due.group_id, due.group_seq, due.recall) > (
            select r.after_user, r.after_group, r.after_seq, r.after_recall from {rows} r limit 1
        )
        and not exists (select 1 from delivery_jobs t where t.group_id = due.group_id and t.seq = due.group_seq)
    except
    select i.user_id, i.group_id, i.group_seq, i.recall from i
    order by 1, 2, 3, 4
    limit 1000";

pub(super) const APPEND: &str = "with u as materialized (
        select r.user_id, r.place, r.group_id, r.group_seq, r.recall, r.at, u.inbox_seq
        from {rows} r
        join users u on u.user_id = r.user_id
    ), g as materialized (
        select u.user_id, u.inbox_seq + u.place as seq, g.sender_id, g.group_id, g.seq as group_seq, u.recall, u.at
        from u
        join group_messages g on g.group_id = u.group_id and g.seq = u.group_seq
    )
    insert into inbox (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at)
    select g.user_id, g.seq, 0, 0, 0, g.group_id, g.group_seq, case when g.sender_id = g.user_id then 1 else 0 end, g.recall, '', '', g.at, 0
    from g";

pub(super) const BEYOND_VIEWS: &str = "with m as materialized (
        select m.user_id, m.name, m.mark from {rows} r join marks m on m.user_id = r.user_id and m.kind = 4
    ), h as materialized (
        select h.name, h.head from m join heads h on h.owner_id = 0 and h.kind = 4 and h.name = m.name group by 1, 2
    ), i as materialized (
        select i.stream, max(i.seq) as seq from view_items i where i.stream in (select m.name from m) group by 1
    )
    select m.user_id, m.name, m.mark, greatest(coalesce(h.head, 0), coalesce(i.seq, 0))
    from m
    left join h on h.name = m.name
    left join i on i.stream = m.name
    where m.mark > greatest(coalesce(h.head, 0), coalesce(i.seq, 0))
    order by 1, 2";

pub(super) const HEADS: &str = "with n as materialized (
        select n.channel, max(n.seq) as seq from notices n group by n.channel
    )
    select h.kind, h.name, h.head, coalesce((select n.seq from n where h.kind = 2 and n.channel = h.name), 0)
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3)
    order by h.kind, h.name";

pub(super) const BEYOND_GROUPS: &str = "with m as materialized (
        select m.user_id, m.group_id, m.span, m.read_seq from {rows} r join memberships m on m.user_id = r.user_id
    ), h as materialized (
        select h.owner_id, h.head from heads h where h.owner_id in (select m.group_id from m) and h.kind = 6 and h.name = ''
    ), g as materialized (
        select g.group_id, max(g.seq) as seq from group_messages g where g.group_id in (select m.group_id from m) group by 1
    )
    select m.user_id, m.group_id, m.span, m.read_seq, greatest(coalesce(h.head, 0), coalesce(g.seq, 0))
    from m
    left join h on h.owner_id = m.group_id
    left join g on g.group_id = m.group_id
    where m.read_seq > greatest(coalesce(h.head, 0), coalesce(g.seq, 0))
    order by 1, 2, 3";

pub(super) const BEYOND_POSTS: &str = "with f as materialized (
        select f.follower_id, f.followee_id, f.mark from {rows} r join following f on f.follower_id = r.user_id and f.mark > 0
    ), h as materialized (
        select h.owner_id, h.head from heads h where h.owner_id in (select f.followee_id from f) and h.kind = 5 and h.name = ''
    ), p as materialized (
        select p.user_id, max(p.seq) as seq from posts p where p.user_id in (select f.followee_id from f) group by 1
    )
    select f.follower_id, f.followee_id, f.mark, greatest(coalesce(h.head, 0), coalesce(p.seq, 0))
    from f
    left join h on h.owner_id = f.followee_id
    left join p on p.user_id = f.followee_id
    where f.mark > greatest(coalesce(h.head, 0), coalesce(p.seq, 0))
    order by 1, 2";

pub(super) const COUNT_VIEWS: &str = "with h as materialized (
        select h.name, h.head, h.retracted, h.floor, h.position
        from {rows} r
        join heads h on h.owner_id = 0 and h.kind = 4 and h.name = r.name
    ), i as materialized (
        select r.name, max(i.seq) as seq, count(*) filter (where i.gone = 1 and i.seq > coalesce(h.floor, 0)) as gone
        from {rows} r
        left join h on h.name = r.name
        join view_items i on i.stream = r.name
        group by r.name
    )
    select cast(0 as bigint), r.name, coalesce(h.head, 0), coalesce(h.retracted, ''), coalesce(h.floor, 0), coalesce(h.position, 0),
        coalesce(i.seq, 0), coalesce(i.gone, 0), cast(0 as bigint)
    from {rows} r
    left join h on h.name = r.name
    left join i on i.name = r.name
    order by r.name";
