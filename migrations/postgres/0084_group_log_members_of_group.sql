-- no-transaction
create index concurrently if not exists group_log_members_of_group on group_log_members (group_id)
