-- Keeps what a user is to others, beside the version that all of it belongs to. Facts of an older version go; to a newer one nothing is added. A hash that has grown
-- too large begins anew: all of it can be read again.
--
-- KEYS  the user's hash of relations
-- ARGV  1 version, 2 time to live in ms, then pairs of another user and a code
-- Returns 1 if they were kept, else 0.
-- Example: EVALSHA <sha> 1 hm:{u:42}:r 918 60000 7 1 8 0  ->  1

local MOST = 4096

local version = tonumber(redis.call('HGET', KEYS[1], '!v') or '-1')
local given = tonumber(ARGV[1])
if version > given then
  return 0
end
if version < given or redis.call('HLEN', KEYS[1]) > MOST then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], '!v', ARGV[1])
end
for at = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
