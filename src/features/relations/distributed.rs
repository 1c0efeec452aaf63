//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const OF_FOLLOWEE: &str = "with u as materialized (
        select u.follower_id, u.followee_id, u.since, u.secret
        from (
            select a.follower_id, a.followee_id, a.since, a.secret from (
                select f.follower_id, f.followee_id, f.since, cast(0 as bigint) as secret
                from followers f
                where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
                order by f.since, f.follower_id
                limit $4
            ) a
            union all
            select s.follower_id, s.followee_id, s.since, s.secret from (
                select f.follower_id, f.followee_id, f.since, cast(1 as bigint) as secret
                from secret_followers f
                where f.followee_id = $1 and (f.since, f.follower_id) > ($2, $3)
                order by f.since, f.follower_id
                limit $4
            ) s
        ) u
        order by u.since, u.follower_id
        limit $4
    ), f as materialized (
        select f.follower_id, f.special from u join following f on f.follower_id = u.follower_id and f.followee_id = u.followee_id
    )
    select u.follower_id, u.followee_id, u.since, u.secret, coalesce(f.special, 0)
    from u
    left join f on f.follower_id = u.follower_id
    order by u.since, u.follower_id";

pub(super) const REQUESTS_OF_FOLLOWEE: &str = "with u as materialized (
        select u.follower_id, u.followee_id, u.since
        from follow_requests u
        where u.followee_id = $1 and (u.since, u.follower_id) > ($2, $3)
        order by u.since, u.follower_id
        limit $4
    ), s as materialized (
        select s.follower_id, s.secret, s.special
        from u
        join sent_requests s on s.follower_id = u.follower_id and s.followee_id = u.followee_id
    )
    select u.follower_id, u.followee_id, u.since, coalesce(s.secret, 0), coalesce(s.special, 0)
    from u
    left join s on s.follower_id = u.follower_id
    order by u.since, u.follower_id";

macro_rules! page {
    ($of:literal) => {
        concat!(
            "with u as materialized (
        select f.followee_id as id, f.since, f.secret, f.special
        from following f
        where f.follower_id = $1 and ",
            $of,
            " and (f.since, f.followee_id) < ($2, $3)
        order by f.since desc, f.followee_id desc
        limit $4
    ), b as materialized (
        select b.follower_id, b.secret from u join following b on b.follower_id = u.id and b.followee_id = $1
    )
    select u.id, u.since, u.secret, u.special, (1 - u.secret) * coalesce(1 - b.secret, 0)
    from u
    left join b on b.follower_id = u.id
    order by u.since desc, u.id desc"
        )
    };
}

pub(super) const PUBLIC_FOLLOWING: &str = page!("f.secret = 0");

pub(super) const SPECIAL: &str = page!("f.special = 1");

pub(super) const ALL_FOLLOWING: &str = "with u as materialized (
        select u.id, u.since, u.secret, u.special
        from (
            select a.id, a.since, a.secret, a.special from (
                select f.followee_id as id, f.since, f.secret, f.special
                from following f
                where f.follower_id = $1 and f.secret = 0 and (f.since, f.followee_id) < ($2, $3)
                order by f.since desc, f.followee_id desc
                limit $4
            ) a
            union all
            select s.id, s.since, s.secret, s.special from (
                select f.followee_id as id, f.since, f.secret, f.special
                from following f
                where f.follower_id = $1 and f.secret = 1 and (f.since, f.followee_id) < ($2, $3)
                order by f.since desc, f.followee_id desc
                limit $4
            ) s
        ) u
        order by u.since desc, u.id desc
        limit $4
    ), b as materialized (
        select b.follower_id, b.secret from u join following b on b.follower_id = u.id and b.followee_id = $1
    )
    select u.id, u.since, u.secret, u.special, (1 - u.secret) * coalesce(1 - b.secret, 0)
    from u
    left join b on b.follower_id = u.id
    order by u.since desc, u.id desc";

/// All whom the user follows are read, of whom there is a most.
pub(super) const MUTUALS: &str = "with u as materialized (
        select f.followee_id as id, f.since, f.secret, f.special
        from following f
        where f.follower_id = $1 and f.secret = 0 and (f.since, f.followee_id) < ($2, $3)
    )
    select u.id, u.since, u.secret, u.special, cast(1 as bigint)
    from u
    join following b on b.follower_id = u.id and b.followee_id = $1 and b.secret = 0
    order by u.since desc, u.id desc
    limit $4";

pub(super) const LOOK: &str = "with f as materialized (
        select r.user_id, r.other_id, 1 + 2 * f.secret + 4 * f.special as flags
        from {rows} r
        join following f on f.follower_id = r.user_id and f.followee_id = r.other_id
    ), b as materialized (
        select r.user_id, r.other_id, 8 as flags from {rows} r join blocks b on b.user_id = r.user_id and b.target_id = r.other_id
    ), m as materialized (
        select r.user_id, r.other_id, case when m.until = 0 then 64 else 128 end as flags
        from {rows} r
        join mutes m on m.user_id = r.user_id and m.target_id = r.other_id
    ), o as materialized (
        select r.user_id, r.other_id, 16 * (1 + 2 * f.secret) as flags
        from {rows} r
        join following f on f.follower_id = r.other_id and f.followee_id = r.user_id
    ), q as materialized (
        select r.user_id, r.other_id, 9 + 2 * q.secret + 4 * q.special as flags
        from {rows} r
        join sent_requests q on q.follower_id = r.user_id and q.followee_id = r.other_id
    )
    select r.user_id, r.other_id,
        coalesce(f.flags, 0) + coalesce(b.flags, 0) + coalesce(m.flags, 0) + coalesce(o.flags, 0) + coalesce(q.flags, 0)
    from {rows} r
    left join f on f.user_id = r.user_id and f.other_id = r.other_id
    left join b on b.user_id = r.user_id and b.other_id = r.other_id
    left join m on m.user_id = r.user_id and m.other_id = r.other_id
    left join o on o.user_id = r.user_id and o.other_id = r.other_id
    left join q on q.user_id = r.user_id and q.other_id = r.other_id";

/// The two columns are lists of their own.
pub(super) const FOLLOWS: &str = "select f.follower_id, f.followee_id
    from {rows} r
    join following f on f.follower_id = r.follower_id and f.follower_id = any($1) and f.followee_id = any($2)
    where f.secret = 0";
