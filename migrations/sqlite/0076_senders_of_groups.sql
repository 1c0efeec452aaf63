-- A group's message says who sent it; the rows of inboxes no longer do, so that nothing is left in them of a user who is erased.
update inbox set sender_id = 0 where group_id > 0 and sender_id <> 0;

-- The step of an erasure that walked through these rows is gone.
update removals set step = 'memberships', after_id = 0, after_seq = 0, after_name = '' where step = 'group_inboxes';
