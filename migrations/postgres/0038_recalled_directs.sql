-- no-transaction
create index concurrently if not exists inbox_recalled on inbox (user_id, peer_id, seq) where recalled = 1
