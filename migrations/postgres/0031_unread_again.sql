-- Unread again: messages from here on show as unread; 0: as read_seq and extra say. again has, as a compressed bitmap, those of them that show as read: the
-- member's own, and single ones that were read since.
alter table memberships add column unread_from bigint not null default 0;
alter table memberships add column again bytea not null default '';
-- Unread messages that mention the member by name, as runs of positions.
alter table memberships add column mentions text not null default '';
