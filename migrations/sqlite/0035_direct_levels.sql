-- Direct chats have levels that may end, a read position, and messages that are unread again or recalled.

-- 0: the chat counts; 1: it counts in no sum.
alter table directs rename column muted to level;
-- When the level ends; 0: never.
alter table directs add column level_until bigint not null default 0;
-- The chat's last row in the inbox that the user has read.
alter table directs add column read_seq bigint not null default 0;
-- How many messages below the mark are unread again, and from which row of the inbox on.
alter table directs add column again bigint not null default 0;
alter table directs add column unread_from bigint not null default 0;
-- How many messages of the peer that count as unread were recalled and are kept.
alter table directs add column recalled bigint not null default 0;
update directs set read_seq = last_seq where mark >= head and last_seq > 0;
