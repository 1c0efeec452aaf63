-- Which heads each batch of a lane has changed: so a node finds out what others changed. The index that did this before was written with
-- every change of a head. A sweep keeps the last batches of each lane; a node that is further behind reads its heads again.

create table head_changes (
    lane_id bigint not null,
    batch bigint not null,
    -- The keys of the heads.
    owner_ids bigint[] not null,
    kinds bigint[] not null,
    names text[] not null,
    primary key (lane_id, batch)
);
drop index heads_changed;
analyze head_changes;
