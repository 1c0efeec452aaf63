create index if not exists directs_timed on directs (user_id, peer_id) where level_until > 0;
