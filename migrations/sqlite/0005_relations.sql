-- Secret and special follows, blocks, the outbox of events, and writes that are accepted before they are done.

-- Whether only the two of them see the follow; whether the followee is special to the follower.
alter table following add column secret integer not null default 0;
alter table following add column special integer not null default 0;

-- The list of what everybody may see and that of what only the follower may, each in its own order: a page of one never passes over rows of the other.
drop index following_since;
create index following_public on following (follower_id, since, followee_id) where secret = 0;
create index following_secret on following (follower_id, since, followee_id) where secret = 1;
create index following_special on following (follower_id, since, followee_id) where special = 1;

-- What the followee sees of secret follows; those of the others are in followers. For the same reason a table of its own.
create table secret_followers (
    followee_id integer not null,
    since integer not null,
    follower_id integer not null,
    primary key (followee_id, since, follower_id)
) without rowid;

-- Who blocks whom, one row for each direction. Changed under the lock of the pair, as follows are.
create table blocks (
    user_id integer not null,
    target_id integer not null,
    since integer not null,
    primary key (user_id, target_id)
) without rowid;
-- The list. The condition always holds: a look-up of two users does not name it, so it is left to the key above, where the target stands second.
create index blocks_since on blocks (user_id, since, target_id) where since >= 0;

-- What a user's own relations count, beside the number of follows in users. Written under the lock of the user's row there.
create table relation_counts (
    user_id integer not null primary key,
    secret integer not null,
    special integer not null,
    blocked integer not null,
    -- The revision at which the list of those whom the user follows changed last, and the same for those whom the user blocks.
    following_version integer not null,
    blocks_version integer not null
);

-- What happened, for those who read along: the events of one transaction in one row. A publisher numbers the rows that are committed, so that no number
-- appears before a lower one. Rows of one pair, creator or channel are written under one lock, and so in the order of batch_id.
create table events (
    batch_id integer primary key autoincrement,
    -- How many there are in this row.
    size integer not null,
    -- The numbers of its first and last event; 0: not numbered yet.
    first_id integer not null,
    last_id integer not null,
    created_at integer not null,
    -- A JSON array of events without their numbers.
    content text not null
);
create index events_unnumbered on events (batch_id) where last_id = 0;
create unique index events_numbered on events (last_id) where last_id > 0;

-- One row: how far events are numbered, up to where they are kept no longer, and up to where they are on the stream in Redis. Its lock makes one node the
-- publisher.
create table event_head (
    id integer not null primary key,
    head integer not null,
    floor integer not null,
    streamed integer not null
);
insert into event_head (id, head, floor, streamed) values (1, 0, 0, 0);

-- Writes that were accepted before they were done. Those of a pair are done in the order of seq, which is given under the lock of the pair.
create table operations (
    seq integer primary key autoincrement,
    operation_id text not null unique,
    -- The pair, the lower id first.
    low_id integer not null,
    high_id integer not null,
    -- Who may read what came of it.
    caller text not null,
    -- The write, as JSON.
    command text not null,
    -- Which node accepted it: others leave it to that one for a while.
    node_id integer not null,
    -- 0: pending; 1: done; 2: failed.
    status integer not null,
    created_at integer not null,
    finished_at integer not null,
    -- The final answer or problem: HTTP status and JSON.
    answer_status integer not null,
    answer text not null
);
create index operations_of_pair on operations (low_id, high_id, seq) where status = 0;
create index operations_pending on operations (seq) where status = 0;
create index operations_finished on operations (finished_at) where status > 0;
