-- Who follows whom, as two rows that begin with their owner: one for the follower, one for the followee. Both, and the counts, are written in one
-- transaction. What a pair is to each other (mutual) is derived from the rows of both directions, never stored.
--
-- A further property of a follow (secret, special) becomes a column with a default in both tables; a block is no follow and gets a table of its own.

-- What the follower sees: whom it follows.
create table following (
    follower_id bigint not null,
    followee_id bigint not null,
    since bigint not null,
    primary key (follower_id, followee_id)
);
-- The list, newest first.
create index following_since on following (follower_id, since, followee_id);

-- What the followee sees: its followers. The key is the order of the list; the time to find a row by is in the row above.
create table followers (
    followee_id bigint not null,
    since bigint not null,
    follower_id bigint not null,
    primary key (followee_id, since, follower_id)
);

-- How many follow a user, and how many of the follows are mutual: the sums over the user's slots. Each lane adds to a slot of its own, so that a user
-- whom thousands follow at once is no hot row. A slot alone may be negative.
create table follower_counts (
    user_id bigint not null,
    slot bigint not null,
    followers bigint not null,
    mutuals bigint not null,
    primary key (user_id, slot)
) with (fillfactor = 50);

-- How many the user follows: in the user's own row, which every follow of this user locks, so that the limit is exact.
alter table users add column following bigint not null default 0;
