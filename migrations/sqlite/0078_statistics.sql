-- What a large installation looks like, for the planner. Without these numbers SQLite guesses ten rows for
-- whatever a first column finds. So it read a user's whole inbox to find one chat.
-- The columns: table; index (the table's own name: its primary key); then how many rows there are, how
-- many have the same first column, how many the same first two, and so on.
analyze sqlite_master;
delete from sqlite_stat1
where tbl in ('inbox', 'directs', 'group_messages', 'mutes', 'notification_receivers', 'posts');
insert into sqlite_stat1 (tbl, idx, stat) values
    ('inbox', 'inbox', '10000000 1000 1'),
    ('inbox', 'inbox_of_peer', '5000000 500 20 1'),
    ('inbox', 'inbox_client', '5000000 500 20 10 1'),
    ('inbox', 'inbox_recalled', '100000 10 2 1'),
    ('inbox', 'inbox_put_at', '10000000 100 1'),
    ('directs', 'directs', '1000000 100 1'),
    ('directs', 'directs_last', '1000000 100 1 1'),
    ('directs', 'directs_last_at', '1000000 100 1 1'),
    ('directs', 'directs_timed', '1000 2 1'),
    ('group_messages', 'group_messages', '1000000 100 1'),
    ('group_messages', 'group_messages_client', '1000000 100 10 1'),
    ('group_messages', 'group_messages_sent_at', '1000000 1 1'),
    ('group_messages', 'group_messages_recalled', '10000 5 1'),
    ('group_messages', 'group_messages_mention_all', '10000 5 1'),
    ('mutes', 'mutes', '100000 50 1'),
    ('mutes', 'mutes_since', '100000 50 1 1'),
    ('mutes', 'mutes_target', '100000 10 1'),
    ('mutes', 'mutes_timed', '1000 2 1'),
    ('mutes', 'mutes_until', '1000 1 1 1'),
    ('notification_receivers', 'notification_receivers', '10000000 500 1'),
    ('notification_receivers', 'notification_receivers_of', '10000000 1000 1'),
    ('notification_receivers', 'notification_receivers_unread', '1000000 50 1'),
    ('notification_receivers', 'notification_receivers_unread_of_type', '1000000 50 15 1'),
    ('notification_receivers', 'notification_receivers_open', '100000 10 5 1 1'),
    ('posts', 'posts', '10000000 200 1'),
    ('posts', 'posts_seq', '10000000 200 1'),
    ('posts', 'posts_created_at', '10000000 10'),
    ('posts', 'posts_gone', '100000 5 1');
analyze sqlite_master;
