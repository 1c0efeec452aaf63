-- What imports of chat logs have taken, so that they may be run again.

-- The last line of a user in a group that was taken from a log.
create table group_log_members (
    user_id integer not null,
    group_id integer not null,
    -- The second of that line.
    at_second integer not null,
    -- Which joins and leaves of that second were taken: eight bytes for each.
    events blob not null,
    primary key (user_id, group_id)
) without rowid;

-- The group of each channel that has a name.
create table group_channels (
    group_id integer not null primary key,
    channel text not null
) without rowid;
create unique index group_channels_channel on group_channels (channel);
