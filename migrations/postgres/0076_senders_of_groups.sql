-- A group's message says who sent it; the rows of inboxes no longer do, so that nothing is left in them of a user who is erased.
update inbox set sender_id = 0 where group_id > 0 and sender_id <> 0;
