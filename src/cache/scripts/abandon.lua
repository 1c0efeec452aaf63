-- A writer goes without having applied anything: its transaction was aborted, or the outcome is not known. The entries stay dirty.
--
-- KEYS  the users' hashes (on a cluster only one)
-- ARGV  1 writer
-- Returns the number of keys.
-- Example: EVALSHA <sha> 2 hm:{u:42} hm:{u:43} 9f2c  ->  2

local now = now_ms()
each_key(function(key)
  local found = redis.call('HMGET', key, '!w', '!d', '!r')
  abandon(key, (others(found[1], ARGV[1], now)), found[2], found[3])
end)
return #KEYS
