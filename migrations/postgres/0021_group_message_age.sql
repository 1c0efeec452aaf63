-- no-transaction
create index concurrently if not exists group_messages_sent_at on group_messages (sent_at, group_id)
