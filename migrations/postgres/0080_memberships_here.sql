-- no-transaction
create index concurrently if not exists memberships_here on memberships (group_id, ordinal) where to_seq < 0
