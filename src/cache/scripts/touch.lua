-- A writer enters, before its commit: the entries are dirty from here on, and fill tokens given out earlier die.
--
-- KEYS  the users' hashes (on a cluster only one)
-- ARGV  1 writer  2 lease_ms  3 ttl_ms (not below the lease, so that dirt outlives it)
-- Returns the number of keys.
-- Example: EVALSHA <sha> 2 hm:{u:42} hm:{u:43} 9f2c 5000 60000  ->  2

local now = now_ms()
local own = ARGV[1] .. '=' .. string.format('%.0f', now + ARGV[2])

each_key(function(key)
  local found = redis.call('HMGET', key, '!w', '!d', '!g', '!s')
  local kept, renewed, died = others(found[1], ARGV[1], now)
  local writers = own
  if kept ~= '' then
    writers = kept .. ';' .. own
  end
  local dirt = '1'
  if found[2] == '2' or #writers > LISTPACK_VALUE_BYTES then
    dirt = '2'
  end
  redis.call('HSET', key, '!d', dirt, '!w', writers)
  if found[3] then
    redis.call('HDEL', key, '!g')
  end
  if died and (renewed or kept ~= '') then
    redis.call('HSET', key, '!s', '1')
  elseif found[4] and not renewed and kept == '' then
    redis.call('HDEL', key, '!s')
  end
  redis.call('PEXPIRE', key, ARGV[3])
end)
return #KEYS
