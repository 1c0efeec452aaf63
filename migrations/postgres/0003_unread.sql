-- Streams with a head that users share, and what users keep to compare with it: broadcasts, dots, the feed, views; and messages that are read by hand.

-- One row for each shared stream. kind 2: a channel of broadcasts; 3: a dot; 4: a view ('home:1'); 5: the posts of a creator (owner_id); 7: the board,
-- whose head counts all that ever happened to channels and dots.
create table heads (
    -- Whose stream it is; 0 where it is nobody's.
    owner_id bigint not null,
    kind bigint not null,
    name text not null,
    -- How many things ever happened in it.
    head bigint not null,
    -- The positions that were taken back, above the floor, as sorted disjoint intervals: '117 119-121'.
    retracted text not null,
    -- Up to this position what was taken back is no longer in this row, only in the rows of the things themselves.
    floor bigint not null,
    -- Raised by each change, also by one that leaves the head.
    version bigint not null,
    -- For channels and dots: the head of the board when this head was raised last. For posts: how many of them are gone.
    position bigint not null,
    -- When the head was raised last.
    at bigint not null,
    -- Which batch of which lane changed it last: so a node finds out what others changed.
    lane_id bigint not null,
    batch bigint not null,
    primary key (owner_id, kind, name)
) with (fillfactor = 70);
create index heads_changed on heads (lane_id, batch);

-- One row for each notice of a channel, none for a user.
create table notices (
    channel text not null,
    seq bigint not null,
    -- The head of the board when it was sent; no two notices share one.
    position bigint not null,
    -- Title, body and data, as one JSON object.
    content text not null,
    created_at bigint not null,
    -- From when on it is gone by itself; 0: never.
    expires_at bigint not null,
    withdrawn bigint not null,
    -- The head of the board at its last change: so a node finds out what others changed.
    changed bigint not null,
    primary key (channel, seq)
);
create index notices_changed on notices (changed);

-- One row for each post, so that its id counts once. Those that are gone stay: marks that lie far back are counted from them.
create table posts (
    user_id bigint not null,
    post_id text not null,
    -- Its position in the creator's stream.
    seq bigint not null,
    -- When this row was written: from then on its id is kept for as long as is set.
    created_at bigint not null,
    gone bigint not null,
    primary key (user_id, post_id)
);
create index posts_created_at on posts (created_at) where gone = 0;
create index posts_gone on posts (user_id, seq) where gone = 1;

-- The creators that a user followed at the last reset of the feed, with their heads then: sorted, delta-coded.
create table feed_snapshots (
    user_id bigint not null primary key,
    data bytea not null
);

-- One row for each thing in a view, so that its id counts once.
create table view_items (
    -- View and id: 'home:1'.
    stream text not null,
    item_id text not null,
    seq bigint not null,
    -- Who made it; 0: not said.
    actor_id bigint not null,
    created_at bigint not null,
    gone bigint not null,
    primary key (stream, item_id)
);
create index view_items_gone on view_items (stream, seq) where gone = 1;
-- What a user made does not count for that user; asked where it is more than the mark has room for.
create index view_items_actor on view_items (stream, actor_id, seq) where actor_id > 0;

-- Messages that are read by hand.
create table messages (
    message_id bigint not null primary key,
    type text not null,
    -- Title and content, as one JSON object.
    content text not null,
    created_at bigint not null,
    recipients bigint not null,
    withdrawn bigint not null
);

-- What each receiver has of them.
create table message_receivers (
    user_id bigint not null,
    -- Dense for each receiver, in the order of commit.
    seq bigint not null,
    message_id bigint not null,
    type text not null,
    -- 0: not read.
    read_at bigint not null,
    -- Whether the receiver deleted it, or it was withdrawn.
    gone bigint not null,
    primary key (user_id, seq)
) with (fillfactor = 80);
create unique index message_receivers_of on message_receivers (message_id, user_id);
create index message_receivers_unread on message_receivers (user_id, seq) where read_at = 0 and gone = 0;
create index message_receivers_unread_of_type on message_receivers (user_id, type, seq) where read_at = 0 and gone = 0;

-- How many of each type a receiver has not read.
create table message_types (
    user_id bigint not null,
    type text not null,
    unread bigint not null,
    primary key (user_id, type)
) with (fillfactor = 70);

-- The head of the board when the user was first seen; -1: not seen yet, or forgotten. What came to channels and dots before it is not counted.
alter table users add column enrolled bigint not null default -1;
-- The day (since 1970, UTC) on which the user was seen last.
alter table users add column seen_day bigint not null default 0;
-- The revision at which the list behind the feed changed last: a follow, an unfollow, a reset.
alter table users add column feed bigint not null default 0;
-- The seq of the last message that is read by hand.
alter table users add column message_seq bigint not null default 0;
create index users_seen_day on users (seen_day) where enrolled >= 0;

-- When the user was there last, where that is asked for (views).
alter table marks add column at bigint not null default 0;

-- The creator's head when the follow was made: what was posted before it is not counted.
alter table following add column mark bigint not null default 0;
