-- A writer brings what it committed: applied to each entry that shows the revision that the transaction found, if nobody else is inside or has
-- left in the meantime without applying (who may have committed later); otherwise the writer only leaves and the entry stays dirty. Polls that wait are woken either way, if something changed.
--
-- KEYS  the users' hashes (on a cluster only one)
-- ARGV  1 writer  2 epoch  3 key prefix (a user's channel is its key with 'wake:' after the prefix); then for each key:
--       revision before, number of words that follow, '!r' and the revision after, changed parts as field and value in turn
-- Returns for each key 1 if applied (the entry is clean), else 0.
-- Example: EVALSHA <sha> 2 hm:{u:42} hm:{u:43} 9f2c 3 hm: 8 4 !r 9 u '812;c:mention 120 4' 5 2 !r 5  ->  { 1, 0 }

local now = now_ms()

-- Writes a hash again whose writers outgrew a listpack value.
local function renew(key, epoch)
  local fields, life = redis.call('HGETALL', key), redis.call('PTTL', key)
  local parts = { '!e', epoch }
  for at = 1, #fields, 2 do
    if string.byte(fields[at]) ~= 33 then
      parts[#parts + 1] = fields[at]
      parts[#parts + 1] = fields[at + 1]
    end
  end
  redis.call('DEL', key)
  set_fields(key, parts, 1)
  redis.call('PEXPIRE', key, life)
end

-- The new revision and the parts are ARGV[first] to ARGV[last]. The entry lives as long as the touch, a moment ago, gave it.
local function publish(key, before, first, last)
  local found = redis.call('HMGET', key, '!w', '!r', '!e', '!d', '!s')
  local kept, present, died = others(found[1], ARGV[1], now)
  local alone = present and kept == '' and not died and not found[5]
  if not alone or found[2] ~= before or found[3] ~= ARGV[2] then
    leave(key, kept, found[4], found[2])
    return 0
  end
  if found[4] == '2' then
    renew(key, found[3])
  end
  set_fields(key, ARGV, first, last)
  redis.call('HDEL', key, '!d', '!g', '!w')
  return 1
end

local applied = {}
local at = 4
each_key(function(key, number)
  local before, after, first, last = ARGV[at], ARGV[at + 3], at + 2, at + 1 + ARGV[at + 1]
  at = last + 1
  applied[number] = publish(key, before, first, last)
  if before ~= after then
    redis.call('PUBLISH', ARGV[3] .. 'wake:' .. string.sub(key, #ARGV[3] + 1), '')
  end
end)
return applied
