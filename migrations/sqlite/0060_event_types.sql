-- The types of a row's events, a bit for each, so that a reader of some types passes by the others. -1: of a version that kept none.

alter table events add column types integer not null default -1;
