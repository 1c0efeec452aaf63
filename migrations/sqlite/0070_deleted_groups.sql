-- The operation by which a group was deleted; empty: it is there. The row of one that was deleted stays, as its id may not be used again.

alter table chat_groups add column deleted_by text not null default '';
