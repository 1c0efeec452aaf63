-- Requests to follow, as the one who is asked sees them.
create table follow_requests (
    followee_id integer not null,
    since integer not null,
    follower_id integer not null,
    primary key (followee_id, since, follower_id)
) without rowid;
