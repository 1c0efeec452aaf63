insert into users (user_id, version, revision, marks)
select user_id, 1, 0, group_concat(
        key || ' ' || head || case when head > mark or retracted <> '' then ' ' || (head - mark) else '' end
            || case when retracted <> '' then ' ' || retracted else '' end,
        ';' order by key)
from (
    select user_id, case kind when 1 then 'c:' when 2 then 'b:' else 'd:' end || name as key, head, mark, retracted
    from marks
    where kind in (1, 2, 3) and head > 0
) one
group by user_id
order by user_id
on conflict (user_id) do update set version = users.version + 1, marks = excluded.marks;

delete from marks where kind in (1, 2, 3);
