-- no-transaction
create index concurrently if not exists directs_timed on directs (user_id, peer_id) where level_until > 0
