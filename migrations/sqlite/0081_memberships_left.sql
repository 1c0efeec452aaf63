create index memberships_left on memberships (group_id, to_seq) where to_seq >= 0;
