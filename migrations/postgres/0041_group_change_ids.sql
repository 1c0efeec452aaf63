-- The id of the last change of a message of the group.

alter table chat_groups add column changes bigint not null default 0;
