-- Users with a push device, of whom services hear every change of their numbers. The flag itself is in the user's own row.

create table push_users (
    user_id bigint not null primary key,
    -- When something ends that leaves a number out, which is no write; 0: nothing does.
    due_at bigint not null
);
create index push_users_due on push_users (due_at) where due_at > 0;
