-- Requests to follow, as the one who asks sees them. A request is a follow that waits for the other user, with the same options. Changed
-- under the lock of the pair, as follows are.
create table sent_requests (
    follower_id integer not null,
    followee_id integer not null,
    since integer not null,
    secret integer not null,
    special integer not null,
    -- The followee's badge that the request raised, and to which head; empty: it raised none.
    badge text not null,
    badge_at integer not null,
    primary key (follower_id, followee_id)
) without rowid;
-- The list, newest first. The condition always holds: a look-up of two users does not name it, so it is left to the key above.
create index sent_requests_since on sent_requests (follower_id, since, followee_id) where since >= 0;
