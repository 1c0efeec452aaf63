-- The ids of the members whom the message mentions by name, each between spaces, and whether it mentions all.
alter table group_messages add column mentions text not null default '';
alter table group_messages add column mention_all bigint not null default 0;
