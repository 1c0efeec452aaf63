-- One row for each node that reads a replica. The node writes it some times a second: what the replica shows of it tells how far the
-- replica is behind.
create table replica_beats (
    node_id bigint not null primary key,
    beat bigint not null,
    beaten_at bigint not null
);
