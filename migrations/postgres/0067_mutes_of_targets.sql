-- no-transaction
create index concurrently if not exists mutes_target on mutes (target_id, user_id) where since >= 0
