-- no-transaction
create index concurrently if not exists group_messages_mention_all on group_messages (group_id, seq) where mention_all = 1
