-- How many requests to follow a user has sent that are open, and the revision at which they changed last.
alter table relation_counts add column requests bigint not null default 0;
alter table relation_counts add column requests_version bigint not null default 0;
