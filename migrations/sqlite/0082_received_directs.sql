create index if not exists inbox_received on inbox (user_id, peer_id, recalled, seq) where peer_id > 0 and own = 0 and recall = 0;

-- As 0078_statistics.sql does.
analyze sqlite_master;
insert into sqlite_stat1 (tbl, idx, stat) values ('inbox', 'inbox_received', '2500000 250 10 10 1');
analyze sqlite_master;
