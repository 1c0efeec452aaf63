-- The revision at which the list of those whom the user mutes changed last.
alter table relation_counts add column mutes_version integer not null default 0;
