-- Messages that users read one by one are called notifications now; "message" is left to groups and direct chats.

-- SQLite cannot rename an index, so they are made again under their new names: half a second for a million rows.
drop index message_receivers_of;
drop index message_receivers_unread;
drop index message_receivers_unread_of_type;

alter table messages rename to notifications;
alter table notifications rename column message_id to notification_id;

alter table message_receivers rename to notification_receivers;
alter table notification_receivers rename column message_id to notification_id;
create unique index notification_receivers_of on notification_receivers (notification_id, user_id);
create index notification_receivers_unread on notification_receivers (user_id, seq) where read_at = 0 and gone = 0;
create index notification_receivers_unread_of_type on notification_receivers (user_id, type, seq) where read_at = 0 and gone = 0;

alter table message_types rename to notification_types;

alter table users rename column message_seq to notification_seq;
