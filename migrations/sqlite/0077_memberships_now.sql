create index memberships_now on memberships (user_id, to_seq) where to_seq < 0;
