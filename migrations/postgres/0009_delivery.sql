-- Whether the message was put into the inboxes of the group's members. A recall reaches the same inboxes, also after the group's delivery was switched.
alter table group_messages add column written bigint not null default 0;
update group_messages set written = 1
where group_id in (select g.group_id from chat_groups g where g.tasks > 0)
    and (group_id, seq) in (
        select i.group_id, i.group_seq from inbox i where i.group_id > 0 and i.recall = 0
        union all
        select t.group_id, t.seq from group_tasks t where t.recall = 0
    );

-- A chat without a message that is not muted says nothing.
delete from directs where last_seq = 0 and head = 0 and muted = 0;
