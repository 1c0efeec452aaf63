-- no-transaction
create index concurrently if not exists blocks_target on blocks (target_id, user_id) where since >= 0
