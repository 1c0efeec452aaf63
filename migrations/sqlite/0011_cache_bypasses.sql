-- One row for each node that commits without touching the cache, or did so a moment ago. While any of
-- them holds, nobody may read or fill the cache. A node removes its own row as soon as that is safe,
-- which it could not do with one time for all nodes: cache_guard.bypass_until is no longer used.
create table cache_bypasses (
    -- Random, new with each start of a node.
    node_id bigint not null primary key,
    -- By the database's clock.
    bypass_until bigint not null
);
