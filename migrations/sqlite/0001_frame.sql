-- Times are Unix milliseconds, bound by the program. Where a row has an owner, its key begins with it.

-- One row for each user who was ever written for. Locked (in the order of user_id) by every write that changes the user's own rows.
create table users (
    user_id integer not null primary key,
    -- Counts the changes of this user's own rows; never goes back.
    revision integer not null,
    -- How many counters the user has in marks, so that the limit needs no scan.
    counters integer not null
);

-- How far a user has read a stream. kind 1: a counter, a stream of the user's own, whose head is here too.
create table marks (
    user_id integer not null,
    kind integer not null,
    name text not null,
    -- How many things ever happened in the stream.
    head integer not null,
    -- How far the user has read: 0 <= mark <= head.
    mark integer not null,
    -- The positions above the mark that were taken back, as sorted disjoint intervals: '117 119-121'.
    retracted text not null,
    primary key (user_id, kind, name)
) without rowid;

-- The first answer to each idempotency key, kept for a day, written in the transaction of its effect.
create table idempotency_keys (
    caller text not null,
    key text not null,
    -- SHA-256 of the request (method, path and body) in hex: the same key with another request is refused.
    digest text not null,
    status integer not null,
    body text not null,
    created_at integer not null,
    primary key (caller, key)
) without rowid;
create index idempotency_keys_created_at on idempotency_keys (created_at);

-- One row for each running lane, raised by one in every transaction of that lane: after a connection was lost during a commit, the
-- number tells whether the commit took effect.
create table lanes (
    lane_id integer not null primary key,
    batch integer not null,
    committed_at integer not null
);

-- One row. What all nodes must know of the shared cache; each refreshes it every second.
create table cache_guard (
    id integer not null primary key,
    -- Cache entries of another epoch are misses.
    epoch integer not null,
    -- Until then (by the database's clock) some node commits without touching the cache: nobody may read or fill it.
    bypass_until integer not null,
    -- Which run of Redis the entries were made in.
    run_id text not null
);
insert into cache_guard (id, epoch, bypass_until, run_id) values (1, 1, 0, '');
