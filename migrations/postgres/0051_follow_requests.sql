-- Requests to follow, as the one who is asked sees them.
create table follow_requests (
    followee_id bigint not null,
    since bigint not null,
    follower_id bigint not null,
    primary key (followee_id, since, follower_id)
);
