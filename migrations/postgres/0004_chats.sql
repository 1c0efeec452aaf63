-- Chats: groups with their members and messages, direct messages, and the inbox that devices read.

-- A group. Its stream, with the head that counts its messages, is the row of kind 6 in heads, whose lock guards this row and the memberships' coming and
-- going.
create table chat_groups (
    group_id bigint not null primary key,
    -- 0: members count from the shared head; 1: each message is also put into the inbox of each member.
    delivery bigint not null,
    receipts bigint not null,
    -- How many members there are, and how many there ever were.
    members bigint not null,
    ordinals bigint not null,
    -- The number of the last row in group_tasks.
    tasks bigint not null,
    created_at bigint not null
);

-- One row for each time that somebody was a member, from joining to leaving. What a member has read is here and nowhere else.
create table memberships (
    group_id bigint not null,
    -- A member's small number in the group, from 1 on; kept when rejoining.
    ordinal bigint not null,
    -- The first, second … time.
    span bigint not null,
    user_id bigint not null,
    -- The group's head when joining: what came after it is the member's.
    from_seq bigint not null,
    -- The head when leaving; -1: a member now.
    to_seq bigint not null,
    -- Read up to here, and, as a compressed bitmap, single messages above it.
    read_seq bigint not null,
    extra bytea not null,
    muted bigint not null,
    joined_at bigint not null,
    -- When the member was there last.
    at bigint not null,
    primary key (user_id, group_id, span)
) with (fillfactor = 80);
create unique index memberships_of_group on memberships (group_id, ordinal, span);

-- The messages of groups.
create table group_messages (
    group_id bigint not null,
    seq bigint not null,
    sender_id bigint not null,
    client_id text not null,
    content text not null,
    sent_at bigint not null,
    recalled bigint not null,
    primary key (group_id, seq)
);
create unique index group_messages_client on group_messages (group_id, sender_id, client_id);
create index group_messages_recalled on group_messages (group_id, seq) where recalled = 1;

-- What is to be put into the inboxes of a group's members, in this order. Gone when done.
create table group_tasks (
    group_id bigint not null,
    task bigint not null,
    seq bigint not null,
    -- 0: the message; 1: that it was recalled.
    recall bigint not null,
    primary key (group_id, task)
);

-- How far that is. One round puts the tasks up to round_task into the inboxes of the members, in the order of their ordinals.
create table group_deliveries (
    group_id bigint not null primary key,
    -- Every member has the tasks up to this one.
    delivered bigint not null,
    round_task bigint not null,
    -- The members up to this ordinal have those up to round_task.
    round_ordinal bigint not null,
    -- When it moved last.
    at bigint not null
) with (fillfactor = 70);

-- What devices fetch, for each receiver in the order of commit.
create table inbox (
    user_id bigint not null,
    -- Dense for each receiver.
    seq bigint not null,
    sender_id bigint not null,
    -- The other side of a direct chat; 0: of a group.
    peer_id bigint not null,
    -- How many messages the peer had sent by then, this one included; 0: of a group.
    peer_seq bigint not null,
    -- The group and the message there; 0: a direct message.
    group_id bigint not null,
    group_seq bigint not null,
    -- Sent by the user itself, from another device.
    own bigint not null,
    -- Says that the message was recalled.
    recall bigint not null,
    -- Of direct messages; empty where it is the group's.
    client_id text not null,
    content text not null,
    -- When the row was made. A direct message is sent at that moment; of a group's the group knows.
    put_at bigint not null,
    -- When a direct message was sent, which is earlier where it was imported; 0: it is the group's.
    sent_at bigint not null,
    primary key (user_id, seq)
);
create index inbox_client on inbox (user_id, peer_id, own, client_id) where client_id <> '';
create index inbox_of_peer on inbox (user_id, peer_id, seq) where peer_id > 0;
create index inbox_put_at on inbox (put_at, user_id);

-- A direct chat as one of its two sides sees it.
create table directs (
    user_id bigint not null,
    peer_id bigint not null,
    -- How many messages the peer ever sent, and how many of them the user has read.
    head bigint not null,
    mark bigint not null,
    -- The last row of the chat in the user's inbox, and when it came.
    last_seq bigint not null,
    last_at bigint not null,
    muted bigint not null,
    -- How many of the peer's messages have expired, and the inbox seqs of those of them that were not read by then.
    gone bigint not null,
    gone_seqs text not null,
    primary key (user_id, peer_id)
) with (fillfactor = 80);
create index directs_last on directs (user_id, last_seq, peer_id);

-- How far each device has read its user's inbox.
create table devices (
    user_id bigint not null,
    device_id text not null,
    seq bigint not null,
    seen_at bigint not null,
    created_at bigint not null,
    primary key (user_id, device_id)
) with (fillfactor = 80);
create index devices_seen_at on devices (seen_at);

-- Which numbering the inboxes are in: another after a restore, as a restored database uses numbers again. One row.
create table inbox_epoch (
    id bigint not null primary key,
    epoch text not null,
    -- Of which history of the database it is, where the engine tells.
    history text not null
);

-- How many groups the user is in.
alter table users add column chat_groups bigint not null default 0;
-- The seq of the last row of the user's inbox.
alter table users add column inbox_seq bigint not null default 0;
-- Direct messages that the user has not read, and from how many peers they are; those of muted chats aside.
alter table users add column direct_unread bigint not null default 0;
alter table users add column direct_chats bigint not null default 0;
