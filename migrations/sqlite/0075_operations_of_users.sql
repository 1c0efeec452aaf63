-- The asynchronous writes of users, for their export. Users are the last callers in the order of names; those of services are not in it.
create index if not exists operations_of_users on operations (caller, seq) where caller >= 'user:';
