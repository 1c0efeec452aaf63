-- What a user has set, as 't:broadcasts.system counters.like;r:0': what the total leaves out, and 'r:0' where the user shares no receipts.
-- Empty: the defaults.

alter table users add column settings text not null default '';
