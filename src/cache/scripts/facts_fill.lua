-- A reader brings what SQL told of a user and others, if no write of the user's facts began since it was given its token. The token stays: others hold it too. Facts of
-- another epoch go, and so do those that are too old or too many: all of them can be read again. Where they are all that there are of the user, they take the place
-- of those that were kept, and from then on one that is not there says that the two are nothing to each other.
--
-- KEYS  1 the user's hash of facts  2 the key of who writes them
-- ARGV  1 token  2 epoch  3 ttl_ms  4 '1' if they are all that there are; then pairs of another user and a code
-- Returns 1 if they were kept, else 0.
-- Example: EVALSHA <sha> 2 hm:{u:42}:r hm:{u:42}:rw 77aa 3 60000 0 7 1 8 0  ->  1

local MOST_IN_A_LIST = 32

local key = KEYS[1]
local now = now_ms()
local found = redis.call('HMGET', key, '!g', '!e', '!t')
if found[1] ~= ARGV[1] .. ':' .. ARGV[2] or others(redis.call('GET', KEYS[2]), '', now) ~= '' then
  return 0
end
local outdated = found[2] ~= ARGV[2] or not found[3] or tonumber(found[3]) <= now
local complete = ARGV[4] == '1'
if complete or outdated or redis.call('HLEN', key) > MOST_FACTS then
  redis.call('DEL', key)
  redis.call('HSET', key, '!e', ARGV[2], '!t', string.format('%.0f', now + ARGV[3]), '!g', found[1])
  redis.call('PEXPIRE', key, ARGV[3])
end
if complete then
  redis.call('HSET', key, '!c', '1')
end
set_fields(key, ARGV, 5)
if redis.call('HLEN', key) > MOST_IN_A_LIST then
  -- A small hash is a list, through which HMGET goes once for each field. A value that is too long for such a list makes it a table.
  redis.call('HSET', key, '!p', string.rep('.', LISTPACK_VALUE_BYTES + 1))
end
return 1
