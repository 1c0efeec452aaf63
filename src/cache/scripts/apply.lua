-- A writer brings what it committed: applied to each entry that shows the revision that the transaction found, if nobody has abandoned it
-- in the meantime (who may have committed later); otherwise this writer abandons it. The entry is clean if nobody else is inside.
-- Polls that wait are woken either way, if something changed. Facts are applied only by a writer that was alone from its begin on.
-- Where the entry is not there, nothing is applied.
--
-- KEYS  the users' hashes, then the writers of missing entries (on a cluster one hash alone)
-- ARGV  1 writer  2 epoch  3 key prefix (a user's channel is its key with 'wake:' after the prefix)
--       4 number of hashes; then for each of them:
--       revision before, number of words that follow, '!r' and the revision after, changed parts as field and value in turn;
--       of facts: '', number of words that follow, changed facts as field and value in turn;
--       of what was not there at the begin: '+' if it changed and polls are to be woken, else '-', and 0
-- Returns for each key 1 if the entry is clean, 2 if the writer was not inside any more (so that others may have filled it with what was there
-- before), else 0.
-- Example: EVALSHA <sha> 3 hm:{u:42} hm:{u:43} hm:writers 9f2c 3 hm: 2 8 4 !r 9 u '812;c:mention 120 4' 5 2 !r 5  ->  { 1, 0 }

local MOST_FACTS = 16384

local now = now_ms()

-- Writes a hash again whose writers outgrew a listpack value.
local function renew(key, epoch, revision)
  local fields, life = redis.call('HGETALL', key), redis.call('PTTL', key)
  local parts = { '!e', epoch, '!r', revision }
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

-- The entry's writers but this one, and whether what this one brings may be applied: it was inside, and nobody abandoned the entry.
local function leave(found)
  local kept, present, died = others(found[1], ARGV[1], now)
  return kept, present, present and not died and not found[5] and found[2] and found[3] == ARGV[2]
end

-- Takes this writer out of an entry that shows what it brought.
local function end_write(key, kept)
  if kept ~= '' then
    redis.call('HSET', key, '!w', kept)
    redis.call('HDEL', key, '!g')
    return 0
  end
  redis.call('HDEL', key, '!d', '!g', '!w')
  return 1
end

-- The new revision and the parts are ARGV[first] to ARGV[last]. The entry lives as long as the begin, a moment ago, gave it.
local function apply(key, before, first, last)
  local found = redis.call('HMGET', key, '!w', '!r', '!e', '!d', '!s')
  local kept, present, sound = leave(found)
  local changes = before ~= ARGV[first + 1]
  -- Where nothing changed, an entry at a later revision fits too: who committed after this one has applied that.
  local shows_more = found[2] and found[3] == ARGV[2] and tonumber(found[2]) > tonumber(before)
  local fits = sound and (found[2] == before or shows_more and not changes)
  if not fits then
    if shows_more and present and changes then
      -- Nobody fills it in while this writer is inside, so it may show what a failover has lost. It shows nothing more: else a later change
      -- could fit by chance.
      redis.call('HDEL', key, '!r')
      found[2] = false
    end
    abandon(key, kept, found[4], found[2])
    return present and 0 or 2
  end
  if found[4] == '2' and kept == '' then
    renew(key, found[3], found[2])
  end
  if changes then
    set_fields(key, ARGV, first, last)
  end
  return end_write(key, kept)
end

-- What changed is ARGV[first] to ARGV[last], or nothing.
local function apply_facts(key, first, last)
  local found = redis.call('HMGET', key, '!w', '!r', '!e', '!d', '!s')
  local kept, present, sound = leave(found)
  if not sound or kept ~= '' or redis.call('HLEN', key) > MOST_FACTS then
    abandon(key, kept, found[4], found[2])
    return present and 0 or 2
  end
  set_fields(key, ARGV, first, last)
  return end_write(key, kept)
end

local users = tonumber(ARGV[4])
local left, failure = leave_absent(users, ARGV[1], now)
local answers = {}
local at = 5
each_key(function(key, number)
  local before, first, last = ARGV[at], at + 2, at + 1 + ARGV[at + 1]
  at = last + 1
  local changed = before == '+'
  if left[number] then
    answers[number] = 0
  elseif before == '+' or before == '-' then
    -- This writer is not inside any more: others may have filled in what was there before.
    abandon_writer(key, ARGV[1], now)
    answers[number] = 2
  elseif before == '' then
    answers[number] = apply_facts(key, first, last)
  else
    answers[number] = apply(key, before, first, last)
  end
  if changed or first < last and before ~= '' and before ~= ARGV[first + 1] then
    redis.call('PUBLISH', ARGV[3] .. 'wake:' .. string.sub(key, #ARGV[3] + 1), '')
  end
end, users)
if failure then
  error(failure)
end
return answers
