-- inbox_received has the recalled messages, too.
drop index inbox_recalled;
