-- no-transaction
create index concurrently if not exists directs_last_at on directs (user_id, last_at, peer_id)
