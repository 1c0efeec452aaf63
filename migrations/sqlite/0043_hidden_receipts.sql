-- The messages of a membership of which nobody sees whether the member has read them, as '3;5-9 20-9007199254740991': how often the member
-- began or ended to hide them, and the messages as runs. Empty: none.

alter table memberships add column hidden text not null default '';
