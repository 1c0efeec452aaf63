create index if not exists inbox_recalled on inbox (user_id, peer_id, seq) where recalled = 1;
