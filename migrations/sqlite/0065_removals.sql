-- What is removed in the background, in bounded batches: a user that is erased. It is also the operation that a caller polls.

create table removals (
    operation_id text not null primary key,
    -- 1: a user.
    kind integer not null,
    -- Whose rows; 0 once all is removed.
    subject_id integer not null,
    -- Who may read what came of it.
    caller text not null,
    -- The step that it is at, by name, and how far that step is; empty: it has not begun.
    step text not null,
    after_id integer not null,
    after_seq integer not null,
    after_name text not null,
    -- Not before this time. A node that works on it moves it on with each batch, so that no other one takes it meanwhile.
    due_at integer not null,
    created_at integer not null,
    -- 0: not yet.
    finished_at integer not null
);
create index removals_due on removals (due_at) where finished_at = 0;
create index removals_finished on removals (finished_at) where finished_at > 0;

-- Users that were erased, for ever: their ids may not be used again.
create table erased_users (
    -- SHA-256, in hex, of the id.
    id_hash text not null primary key,
    operation_id text not null
);
