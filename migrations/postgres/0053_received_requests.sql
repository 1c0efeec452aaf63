-- How many requests to follow a user has received that are open.
alter table follower_counts add column requests bigint not null default 0;
