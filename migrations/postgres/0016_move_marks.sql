-- no-transaction
-- Moves the marks of so many users at a time, each time in a transaction of its own, and goes on where it was stopped.
do $$
declare
    after bigint := 0;
    last bigint;
begin
    loop
        select max(user_id) into last
        from (select distinct user_id from marks where user_id > after and kind in (1, 2, 3) order by user_id limit 5000) page;
        exit when last is null;
        insert into users (user_id, version, revision, marks)
        select user_id, 1, 0, string_agg(
                key || ' ' || head || case when head > mark or retracted <> '' then ' ' || (head - mark) else '' end
                    || case when retracted <> '' then ' ' || retracted else '' end,
                ';' order by key collate "C")
        from (
            select user_id, case kind when 1 then 'c:' when 2 then 'b:' else 'd:' end || name as key, head, mark, retracted
            from marks
            where user_id > after and user_id <= last and kind in (1, 2, 3) and head > 0
        ) one
        group by user_id
        order by user_id
        on conflict (user_id) do update set version = users.version + 1, marks = excluded.marks;
        delete from marks where user_id > after and user_id <= last and kind in (1, 2, 3);
        commit;
        after := last;
    end loop;
    -- An old node that ran meanwhile may have filled entries without what had moved.
    update cache_guard set epoch = epoch + 1;
end $$
