-- no-transaction
create index concurrently if not exists memberships_left on memberships (group_id, to_seq) where to_seq >= 0
