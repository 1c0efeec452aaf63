-- A reader that did not find all that it asked for wants to fill in what SQL will tell.
--
-- KEYS  1 the user's hash of facts  2 the key of who writes them
-- ARGV  1 nonce (the token, if a new one is given)  2 ttl_ms of a new hash  3 epoch
-- Returns the token; '' while a writer is inside.
-- Example: EVALSHA <sha> 2 hm:{u:42}:r hm:{u:42}:rw 77aa 60000 3  ->  '77aa'

local key = KEYS[1]
if others(redis.call('GET', KEYS[2]), '', now_ms()) ~= '' then
  return ''
end
-- A token of another epoch is not shared: its reader may have read before a commit that bypassed the cache.
local theirs, epoch = string.match(redis.call('HGET', key, '!g') or '', '^(.*):(.*)$')
if epoch == ARGV[3] then
  return theirs
end
redis.call('HSET', key, '!g', ARGV[1] .. ':' .. ARGV[3])
if redis.call('PTTL', key) < 0 then
  redis.call('PEXPIRE', key, ARGV[2])
end
return ARGV[1]
