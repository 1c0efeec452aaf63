-- A row of `notification_receivers` is an entry of the receiver's list, and `notification_id` is the entry's id: its first notification.
-- What was there before are entries of one notification each.

-- What notifications of a type join the entry by; empty: none do.
alter table notification_receivers add column group_key text not null default '';
-- How many notifications are in the entry, withdrawn and expired ones aside.
alter table notification_receivers add column notifications integer not null default 1;
-- When its first notification was sent, and when the last one joined. 0: ask the notification.
alter table notification_receivers add column created_at integer not null default 0;
alter table notification_receivers add column updated_at integer not null default 0;

-- The notifications of entries with a group key, one row for each receiver.
create table grouped_notifications (
    user_id integer not null,
    -- Which entry it is in.
    entry_id integer not null,
    -- The place that the entry moved to when it came.
    seq integer not null,
    notification_id integer not null,
    -- 0: nobody.
    actor_id integer not null,
    primary key (user_id, entry_id, seq)
) without rowid;
create unique index grouped_notifications_of on grouped_notifications (notification_id, user_id);
