-- inbox_received has the recalled messages, too. Nodes of the version before, which may run beside this one, still use
-- inbox_recalled: so it goes with a later version.
select 1;
