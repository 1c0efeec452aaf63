-- A write begins, before its commit: the entries are dirty from here on, and fill tokens given out earlier die.
--
-- KEYS  the users' hashes, then the nodes that hold a read lease (on a cluster one hash alone)
-- ARGV  1 writer  2 lease_ms  3 ttl_ms (not below the lease, so that dirt outlives it)  4 the writer's node ('' on a cluster)
--       5 read_lease_ms  6 ttl_ms of the list of nodes
-- Returns 1 if other nodes may show copies of these entries for one read lease more, else 0.
-- Example: EVALSHA <sha> 3 hm:{u:42} hm:{u:43} hm:readers 9f2c 5000 60000 77aa 5 86400000  ->  1

local now = now_ms()
local own = ARGV[1] .. '=' .. string.format('%.0f', now + ARGV[2])
local users = ARGV[4] == '' and #KEYS or #KEYS - 1

each_key(function(key)
  local found = redis.call('HMGET', key, '!w', '!d', '!g', '!s', '!r')
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
  local lives_on = false
  if found[5] == FACTS then
    -- Nothing else would ever tell that facts are wrong: so they live no longer than what was filled in lives.
    lives_on = not found[2] and redis.call('PTTL', key) >= tonumber(ARGV[2])
    if not lives_on then
      redis.call('HDEL', key, '!r')
    end
  end
  if died and (renewed or kept ~= '') then
    redis.call('HSET', key, '!s', '1')
  elseif found[4] and not renewed and kept == '' then
    redis.call('HDEL', key, '!s')
  end
  if not lives_on then
    redis.call('PEXPIRE', key, ARGV[3])
  end
end, users)

-- Whether a node other than this one may hold a read lease. Where the list of them was lost, nobody knows until the leases of then are over.
local function is_read_elsewhere(key)
  redis.set_repl(redis.REPL_NONE)
  if redis.call('HSETNX', key, '!from', string.format('%.0f', now)) == 1 then
    redis.call('PEXPIRE', key, ARGV[6])
    return 1
  end
  local found = 0
  local fields = redis.call('HGETALL', key)
  for at = 1, #fields, 2 do
    local node, time = fields[at], tonumber(fields[at + 1])
    if node == '!from' then
      found = now <= time + ARGV[5] and 1 or found
    elseif time <= now then
      redis.call('HDEL', key, node)
    elseif node ~= ARGV[4] then
      found = 1
    end
  end
  return found
end

return users < #KEYS and is_read_elsewhere(KEYS[#KEYS]) or 0
