-- The revision at which the list of those whom the user follows changed last. It stands in the user's row, which every follow
-- writes in any case. relation_counts.following_version was written by each follow before; the higher one of the two counts.
alter table users add column following_version bigint not null default 0;
