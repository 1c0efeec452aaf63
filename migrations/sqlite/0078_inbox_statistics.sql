-- What a large installation looks like, for the planner: it plans by guesses otherwise, and took one user's whole inbox for smaller than one of its chats.
-- The columns: table, index (the table's name: its primary key), rows, then rows with the same first column, the same first two, and so on.
analyze sqlite_master;
delete from sqlite_stat1 where tbl = 'inbox';
insert into sqlite_stat1 (tbl, idx, stat) values
    ('inbox', 'inbox', '10000000 1000 1'),
    ('inbox', 'inbox_of_peer', '5000000 500 20 1'),
    ('inbox', 'inbox_client', '5000000 500 20 10 1'),
    ('inbox', 'inbox_recalled', '100000 10 2 1'),
    ('inbox', 'inbox_put_at', '10000000 100 1');
analyze sqlite_master;
