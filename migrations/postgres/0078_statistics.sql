-- SQLite's alone: Postgres counts by itself what its tables look like.
select 1;
