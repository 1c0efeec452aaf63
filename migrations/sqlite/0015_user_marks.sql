-- A user's marks of counters, channels and dots are one text in the user's row: 'b:news 5;c:mention 120 3 118-119'.
-- Each is a letter for its kind, the name, the head, how far the mark is behind it, and the positions that were taken
-- back; what is 0 or empty at the end is left out. The next migration moves them; marks of views stay in marks.

alter table users add column marks text not null default '';
-- Names the last write of the row, whatever it changed. A writer that knows the row only changes the version that it knows.
alter table users add column version integer not null default 0;
-- The marks tell how many counters there are.
alter table users drop column counters;
