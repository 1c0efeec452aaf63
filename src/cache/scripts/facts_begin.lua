-- A write begins, before its commit: what users are to these others is no longer known, and nothing is kept of them while it is inside.
--
-- KEYS  the users' hashes of facts, then the keys of who writes them, in the same order (on a cluster only one of each)
-- ARGV  1 writer  2 lease_ms; then for each user: number of others, others
-- Returns the number of users.
-- Example: EVALSHA <sha> 4 hm:{u:42}:r hm:{u:7}:r hm:{u:42}:rw hm:{u:7}:rw 9f2c 5000 1 7 1 42  ->  2

local users = #KEYS / 2
local now = now_ms()
local own = ARGV[1] .. '=' .. string.format('%.0f', now + ARGV[2])

local inside = redis.call('MGET', unpack(KEYS, users + 1))
for user = 1, users do
  local kept = inside[user] and others(inside[user], ARGV[1], now) or ''
  if kept ~= '' then
    kept = kept .. ';'
  end
  redis.call('SET', KEYS[users + user], kept .. own, 'PX', ARGV[2])
end

-- Those of whom nothing is kept have no hash.
if redis.call('EXISTS', unpack(KEYS, 1, users)) == 0 then
  return users
end
local at = 3
each_key(function(key)
  local first, last = at + 1, at + ARGV[at]
  at = last + 1
  local found = redis.call('HMGET', key, '!t', '!g', '!c')
  if found[1] and (tonumber(found[1]) <= now or redis.call('HLEN', key) > MOST_FACTS) then
    redis.call('DEL', key)
    return
  end
  if found[1] then
    forget_fields(key, found[3], ARGV, first, last)
  end
  if found[2] then
    redis.call('HDEL', key, '!g')
  end
end, users)
return users
