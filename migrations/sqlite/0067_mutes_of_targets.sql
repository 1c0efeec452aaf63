create index mutes_target on mutes (target_id, user_id) where since >= 0;
