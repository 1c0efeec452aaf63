-- A writer enters, before its commit: the entry is dirty from here on, and fill tokens given out earlier die.
--
-- KEYS  1 the user's hash
-- ARGV  1 writer  2 lease_ms  3 ttl_ms (not below the lease, so that dirt outlives it)
-- Returns 1.
-- Example: EVALSHA <sha> 1 hm:{u:42} 9f2c 5000 60000  ->  1

local key = KEYS[1]
local now = now_ms()
local found = redis.call('HMGET', key, '!w', '!d')
local kept, renewed, died = others(found[1], ARGV[1], now)
local writers = ARGV[1] .. '=' .. string.format('%.0f', now + ARGV[2])
if kept ~= '' then
  writers = kept .. ';' .. writers
end
local dirt = '1'
if found[2] == '2' or #writers > LISTPACK_VALUE_BYTES then
  dirt = '2'
end
redis.call('HSET', key, '!d', dirt, '!w', writers)
redis.call('HDEL', key, '!g')
if died and (renewed or kept ~= '') then
  redis.call('HSET', key, '!s', '1')
elseif not renewed and kept == '' then
  redis.call('HDEL', key, '!s')
end
redis.call('PEXPIRE', key, ARGV[3])
return 1
