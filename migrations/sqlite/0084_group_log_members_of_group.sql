create index group_log_members_of_group on group_log_members (group_id);
