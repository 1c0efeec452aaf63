-- A writer goes without having published: its transaction was aborted, or the outcome is not known. The entry stays dirty.
--
-- KEYS  1 the user's hash
-- ARGV  1 writer
-- Returns 1 if there is an entry, else 0.
-- Example: EVALSHA <sha> 1 hm:{u:42} 9f2c  ->  1

local key = KEYS[1]
if redis.call('EXISTS', key) == 0 then
  return 0
end
local found = redis.call('HMGET', key, '!w', '!d')
leave(key, (others(found[1], ARGV[1], now_ms())), found[2])
return 1
