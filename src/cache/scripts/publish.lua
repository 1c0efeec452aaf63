-- A writer brings what it committed: applied if the entry shows the revision that the transaction found, and nobody else is inside or has
-- left in the meantime without applying (who may have committed later); otherwise the writer only leaves and the entry stays dirty. Polls that wait are woken either way, if something changed.
--
-- KEYS  1 the user's hash
-- ARGV  1 writer  2 epoch  3 ttl_ms  4 revision before  5 revision after  6 wake channel  7.. changed parts, field and value in turn
-- Returns 1 if applied (the entry is clean), else 0.
-- Example: EVALSHA <sha> 1 hm:{u:42} 9f2c 3 60000 8 9 hm:wake:{u:42} c:mention '4 120'  ->  1

local key = KEYS[1]
local found = redis.call('HMGET', key, '!w', '!r', '!e', '!d', '!s')
local kept, present, died = others(found[1], ARGV[1], now_ms())
local applied = 0
local alone = present and kept == '' and not died and not found[5]
if alone and found[2] == ARGV[4] and found[3] == ARGV[2] then
  if found[4] == '2' then
    local fields = redis.call('HGETALL', key)
    local parts = { '!e', found[3] }
    for at = 1, #fields, 2 do
      if string.byte(fields[at]) ~= 33 then
        parts[#parts + 1] = fields[at]
        parts[#parts + 1] = fields[at + 1]
      end
    end
    redis.call('DEL', key)
    set_fields(key, parts, 1)
  end
  set_fields(key, ARGV, 7)
  redis.call('HSET', key, '!r', ARGV[5])
  redis.call('HDEL', key, '!d', '!g', '!w')
  redis.call('PEXPIRE', key, ARGV[3])
  applied = 1
elseif redis.call('EXISTS', key) == 1 then
  leave(key, kept, found[4])
end
if ARGV[4] ~= ARGV[5] then
  redis.call('PUBLISH', ARGV[6], '')
end
return applied
