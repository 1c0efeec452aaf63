-- no-transaction
create index concurrently if not exists operations_of_users on operations (caller, seq) where caller >= 'user:'
