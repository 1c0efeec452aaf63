-- A reader brings what it read from SQL: the whole entry, clean, if its token is still alive and no writer is inside.
--
-- KEYS  1 the user's hash
-- ARGV  1 token  2 epoch  3 ttl_ms  4 '!r'  5 revision  6 '!e'  7 epoch  8.. parts, field and value in turn
-- Returns 1 if the entry was set, else 0.
-- Example: EVALSHA <sha> 1 hm:{u:42} 77aa 3 60000 !r 8 !e 3 u '812;c:mention 120 3'  ->  1

local key = KEYS[1]
local found = redis.call('HMGET', key, '!g', '!w', '!r', '!e')
local now = now_ms()
local token, epoch, dies = string.match(found[1] or '', '^(.*):(.*):(.*)$')
if token ~= ARGV[1] or epoch ~= ARGV[2] or tonumber(dies) <= now then
  return 0
end
if others(found[2], '', now) ~= '' then
  return 0
end
-- Revisions count a user's changes: far below 2^53, up to which Lua's numbers are exact.
if found[3] and found[4] == ARGV[2] and tonumber(found[3]) > tonumber(ARGV[5]) then
  return 0
end
redis.call('DEL', key)
set_fields(key, ARGV, 4)
redis.call('PEXPIRE', key, ARGV[3])
return 1
