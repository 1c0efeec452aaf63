-- A reader that did not find a clean entry looks again and asks for the right to fill it.
--
-- KEYS  1 the user's hash  2 the writers of missing entries (none on a cluster)
-- ARGV  1 nonce (the token, if a new one is given)  2 ttl_ms of a new entry  3 epoch  4 '0' if the fields are not wanted  5 token_ms, the life of a token
-- Returns { 1, '', fields } if it is clean by now; else { 0, token or '' while a writer is inside, fields }, where fields are the
-- hash as it was, name and value in turn; none where they are not wanted, or where it was never filled.
-- Example: EVALSHA <sha> 2 hm:{u:42} hm:writers 77aa 60000 3 1 8000  ->  { 0, '77aa', { '!r', '8', '!e', '3', '!d', '1', 'u', '812;c:mention 120 3' } }

local key = KEYS[1]
local found = redis.call('HMGET', key, '!r', '!d', '!e', '!w', '!g')
local revision, dirt, epoch, writers, given = unpack(found, 1, 5)
-- An entry that was never filled has no fields to show.
local fields = revision and ARGV[4] ~= '0' and redis.call('HGETALL', key) or {}
if revision and not dirt and epoch == ARGV[3] then
  return { 1, '', fields }
end
local is_new = not (revision or dirt or writers or given)
local token, now = '', now_ms()
local absent = KEYS[2] and redis.call('HGET', KEYS[2], key)
if others(absent, '', now) ~= '' then
  return { 0, '', fields }
end
local changes = {}
if not dirt then
  changes = { '!d', '1' }
end
if others(writers, '', now) == '' then
  -- A token of another epoch is not shared: its reader may have read before a commit that bypassed the cache.
  local theirs, of_epoch, dies = string.match(given or '', '^(.*):(.*):(.*)$')
  if of_epoch == ARGV[3] and tonumber(dies) > now then
    token = theirs
  else
    token = ARGV[1]
    changes[#changes + 1] = '!g'
    changes[#changes + 1] = token .. ':' .. ARGV[3] .. ':' .. string.format('%.0f', now + ARGV[5])
  end
end
if #changes > 0 then
  redis.call('HSET', key, unpack(changes))
end
if is_new or redis.call('PTTL', key) < 0 then
  redis.call('PEXPIRE', key, ARGV[2])
end
return { 0, token, fields }
