-- Changes of messages that were there before: a member who has read a group hears what was recalled since. The ids of a group are issued
-- under the lock of its head, so they appear in their order.

create table group_changes (
    group_id bigint not null,
    id bigint not null,
    -- The message that was recalled.
    seq bigint not null,
    primary key (group_id, id)
);
create index group_changes_seq on group_changes (group_id, seq);
