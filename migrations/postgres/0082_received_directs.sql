-- no-transaction
create index concurrently if not exists inbox_received on inbox (user_id, peer_id, recalled, seq) where peer_id > 0 and own = 0 and recall = 0
