-- A write ends, after its commit or without one. Should its lease have ended meanwhile, what was filled in since may be from before its commit.
--
-- KEYS  the users' hashes of facts, then the keys of who writes them, in the same order (on a cluster only one of each)
-- ARGV  1 writer; then for each user: number of others, others
-- Returns the number of users.
-- Example: EVALSHA <sha> 4 hm:{u:42}:r hm:{u:7}:r hm:{u:42}:rw hm:{u:7}:rw 9f2c 1 7 1 42  ->  2

local users = #KEYS / 2
local now = now_ms()
local own = ARGV[1] .. '='
local inside = redis.call('MGET', unpack(KEYS, users + 1))

-- The others that are inside, and whether this one was up to now. The key lives as long as the last of the leases in it: so one that is alone in it has its own.
local function take_out(writers)
  if not writers then
    return '', false
  elseif string.find(writers, own, 1, true) == 1 and not string.find(writers, ';', 1, true) then
    return '', true
  end
  return others(writers, ARGV[1], now)
end

local emptied = {}
local at = 2
each_key(function(key, user)
  local first, last = at + 1, at + ARGV[at]
  at = last + 1
  local kept, present = take_out(inside[user])
  if kept ~= '' then
    local last_ms = 0
    for expiry in string.gmatch(kept, '=(%d+)') do
      last_ms = math.max(last_ms, tonumber(expiry))
    end
    redis.call('SET', KEYS[users + user], kept, 'PXAT', string.format('%.0f', last_ms))
  elseif inside[user] then
    emptied[#emptied + 1] = KEYS[users + user]
  end
  if not present then
    redis.call('HDEL', key, '!g')
    forget_fields(key, redis.call('HGET', key, '!c'), ARGV, first, last)
  end
end, users)
if #emptied > 0 then
  redis.call('DEL', unpack(emptied))
end
return users
