-- What of a group counts in sums. 0: every message, 1: nothing, 2: mentions only; so what was muted stays so.
alter table memberships rename column muted to level;
-- When the level ends and every message counts again; 0: never.
alter table memberships add column level_until integer not null default 0;
