-- no-transaction
create index concurrently if not exists notices_expiring on notices (expires_at) where expires_at > 0
