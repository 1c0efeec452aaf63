-- Whose numbers changed without a write of their rows: they are told in pages.

create table unread_jobs (
    -- 0: all users with a push device; else those of them who are members of this group.
    scope_id integer not null primary key,
    -- Not before this time.
    due_at integer not null,
    -- When it is to begin once more; 0: not.
    next_at integer not null,
    -- The last user, or ordinal of the group, who was told; 0: it has not begun.
    after_id integer not null
);
create index unread_jobs_due on unread_jobs (due_at);

-- Up to where causes have become jobs: the last event that was looked at, and up to when broadcasts that expire. One row.
create table unread_progress (
    id integer not null primary key,
    event_id integer not null,
    expired_at integer not null
);
insert into unread_progress (id, event_id, expired_at) values (1, 0, 0);
