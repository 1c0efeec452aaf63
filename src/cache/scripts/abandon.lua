-- A writer goes without having applied anything: its transaction was aborted, or the outcome is not known. The entries stay dirty.
--
-- KEYS  the users' hashes, then the writers of missing entries (on a cluster one hash alone)
-- ARGV  1 writer  2 number of hashes
-- Returns the number of hashes.
-- Example: EVALSHA <sha> 3 hm:{u:42} hm:{u:43} hm:writers 9f2c 2  ->  2

local now = now_ms()
local users = tonumber(ARGV[2])
local _, failure = leave_absent(users, ARGV[1], now)
each_key(function(key)
  abandon_writer(key, ARGV[1], now)
end, users)
if failure then
  error(failure)
end
return users
