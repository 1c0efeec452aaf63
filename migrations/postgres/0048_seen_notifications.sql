-- How far the user has seen the list of notifications.
alter table users add column notification_seen bigint not null default 0;
-- How many of those that are unread the user has seen.
alter table notification_types add column seen bigint not null default 0;
