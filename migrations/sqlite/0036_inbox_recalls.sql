-- Direct messages can be recalled, by either side's row.

-- The number of the same direct message in the other side's inbox; 0: not known, or not a direct message.
alter table inbox add column other_seq bigint not null default 0;
-- Whether a direct message was recalled, and its content removed.
alter table inbox add column recalled bigint not null default 0;
