-- A reader that did not find a clean entry looks again and asks for the right to fill it.
--
-- KEYS  1 the user's hash
-- ARGV  1 nonce (the token, if a new one is given)  2 ttl_ms of a new entry  3 epoch
-- Returns { 1, '', fields } if it is clean by now; else { 0, token or '' while a writer is inside, fields }, where fields are the
-- hash as it was, name and value in turn.
-- Example: EVALSHA <sha> 1 hm:{u:42} 77aa 60000 3  ->  { 0, '77aa', { '!r', '8', '!e', '3', '!d', '1', 'u', '812;c:mention 120 3' } }

local key = KEYS[1]
local fields = redis.call('HGETALL', key)
local found = {}
for at = 1, #fields, 2 do
  if string.byte(fields[at]) == 33 then
    found[fields[at]] = fields[at + 1]
  end
end
if found['!r'] and not found['!d'] and found['!e'] == ARGV[3] then
  return { 1, '', fields }
end
if not found['!d'] then
  redis.call('HSET', key, '!d', '1')
end
local token = ''
if others(found['!w'], '', now_ms()) == '' then
  -- A token of another epoch is not shared: its reader may have read before a commit that bypassed the cache.
  local theirs, epoch = string.match(found['!g'] or '', '^(.*):(.*)$')
  if epoch == ARGV[3] then
    token = theirs
  else
    token = ARGV[1]
    redis.call('HSET', key, '!g', token .. ':' .. ARGV[3])
  end
end
if #fields == 0 then
  redis.call('PEXPIRE', key, ARGV[2])
end
return { 0, token, fields }
