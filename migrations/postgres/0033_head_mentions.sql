-- Of a group: the newest messages that mention all, as runs of positions like retracted.
alter table heads add column mention_all text not null default '';
