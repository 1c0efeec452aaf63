-- The rows of the user's inbox of which the peer of a chat does not see whether the user has read them, as in memberships.hidden: '3;5-9
-- 20-9007199254740991'. It follows the user's switches in users.settings, and may be behind them. Empty: none.

alter table directs add column hidden text not null default '';
