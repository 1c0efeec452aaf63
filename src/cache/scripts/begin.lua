-- A write begins, before its commit: the entries are dirty from here on, and fill tokens given out earlier die.
--
-- KEYS  the users' hashes, then the writers of missing entries and the nodes that hold a read lease
--       (on a cluster one hash alone)
-- ARGV  1 writer  2 lease_ms  3 ttl_ms (not below the lease, so that dirt outlives it)  4 the writer's node ('' on a cluster)
--       5 read_lease_ms  6 ttl_ms of the last two keys
-- Returns '1' if other nodes may show copies of these entries for one read lease more, else '0';
-- then for each hash '1' if it is missing, else '0'.
-- Example: EVALSHA <sha> 4 hm:{u:42} hm:{u:43} hm:writers hm:readers 9f2c 5000 60000 77aa 5 86400000  ->  '101'

local FEW = 8

local now = now_ms()
local own = ARGV[1] .. '=' .. string.format('%.0f', now + ARGV[2])
local is_cluster = ARGV[4] == ''
local users = is_cluster and #KEYS or #KEYS - 2

-- These writers and this one.
local function join(kept)
  return kept == '' and own or kept .. ';' .. own
end

-- Takes out up to two entries whose writers died: what dead nodes leave does not pile up.
local function tidy(key)
  local found = redis.call('HRANDFIELD', key, 2, 'WITHVALUES')
  for at = 1, #found, 2 do
    if others(found[at + 1], '', now) == '' then
      redis.call('HDEL', key, found[at])
    end
  end
end

-- Enters entries that are not there.
local function enter_absent(absent)
  local key = KEYS[users + 1]
  tidy(key)
  local found, fields = redis.call('HMGET', key, unpack(absent)), {}
  if #absent > FEW then
    -- A long value makes the hash a table, in which a field is found at once. It need not stay.
    fields = { '!p', string.rep('.', LISTPACK_VALUE_BYTES + 1) }
  end
  for at = 1, #absent do
    fields[#fields + 1] = absent[at]
    fields[#fields + 1] = found[at] and join((others(found[at], ARGV[1], now))) or own
  end
  set_fields(key, fields, 1)
  if #absent > FEW then
    redis.call('HDEL', key, '!p')
  end
  redis.call('PEXPIRE', key, ARGV[6])
end

-- Enters an entry; false where it is not there, and nothing was done.
local function enter(key)
  local found = redis.call('HMGET', key, '!w', '!d', '!g', '!s', '!r')
  if not is_cluster and not (found[1] or found[2] or found[5]) then
    return false
  end
  local kept, renewed, died = others(found[1], ARGV[1], now)
  local writers = join(kept)
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
  return true
end

-- Which of them are not there.
local function enter_all()
  if not is_cluster and redis.call('EXISTS', unpack(KEYS, 1, users)) == 0 then
    enter_absent({ unpack(KEYS, 1, users) })
    return string.rep('1', users)
  end
  local absent, flags = {}, {}
  local done, failure = pcall(each_key, function(key, number)
    local entered = enter(key)
    flags[number] = entered and '0' or '1'
    if not entered then
      absent[#absent + 1] = key
    end
  end, users)
  if #absent > 0 then
    enter_absent(absent)
  end
  if not done then
    error(failure)
  end
  return table.concat(flags)
end

-- Whether a node other than this one may hold a read lease. Where the list of them was lost, nobody knows until the leases of then are over.
local function is_read_elsewhere(key)
  redis.set_repl(redis.REPL_NONE)
  if redis.call('HSETNX', key, '!from', string.format('%.0f', now)) == 1 then
    redis.call('PEXPIRE', key, ARGV[6])
    return '1'
  end
  local found = '0'
  local fields = redis.call('HGETALL', key)
  for at = 1, #fields, 2 do
    local node, time = fields[at], tonumber(fields[at + 1])
    if node == '!from' then
      found = now <= time + ARGV[5] and '1' or found
    elseif time <= now then
      redis.call('HDEL', key, node)
    elseif node ~= ARGV[4] then
      found = '1'
    end
  end
  return found
end

local absent = enter_all()
return (is_cluster and '0' or is_read_elsewhere(KEYS[#KEYS])) .. absent
