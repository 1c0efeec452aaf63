-- no-transaction
create index concurrently if not exists notification_receivers_open on notification_receivers (user_id, type, group_key, seq)
    where read_at = 0 and gone = 0 and group_key <> ''
