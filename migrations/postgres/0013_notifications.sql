-- Messages that users read one by one are called notifications now; "message" is left to groups and direct chats.

alter table messages rename to notifications;
alter table notifications rename column message_id to notification_id;
alter index messages_pkey rename to notifications_pkey;

alter table message_receivers rename to notification_receivers;
alter table notification_receivers rename column message_id to notification_id;
alter index message_receivers_pkey rename to notification_receivers_pkey;
alter index message_receivers_of rename to notification_receivers_of;
alter index message_receivers_unread rename to notification_receivers_unread;
alter index message_receivers_unread_of_type rename to notification_receivers_unread_of_type;

alter table message_types rename to notification_types;
alter index message_types_pkey rename to notification_types_pkey;

alter table users rename column message_seq to notification_seq;
