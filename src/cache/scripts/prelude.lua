-- Shared by every script; each is this text followed by its own.
--
-- One hash is one user's entry. Fields of the protocol (all others are parts, packed as packing.rs says, which no script looks into):
--   !r  revision that the parts show
--   !e  epoch in which they were filled
--   !d  dirty: '1', or '2' once !w outgrew a listpack value, so that the hash is to be written again
--   !g  fill token, with the epoch of its reader, and when it dies: 'token:epoch:expiry_ms'
--   !w  writers inside: 'token=expiry_ms;token=expiry_ms', by this server's clock
--   !s  tainted: one abandoned the entry, or died, while others were inside. It may have committed after any of those, so that none of
--       them knows the newest state: they leave it to the next fill. Over once they are gone, for anyone who enters later commits later.

-- Most users whom a write reaches have no entry, and nothing is kept for them. The hash 'writers' has the writers of
-- missing entries: by the entry's key, in the form of '!w'. While one is inside, no reader is given a token. So the
-- entry stays missing, and there is nothing to apply to it. On a cluster, where no key is beside all others, such an
-- entry is a hash with '!d' and '!w'.

-- A second hash, for a look-up of many, has the user's facts: what the user and others are to each other, as a number by the other's id. One who is
-- not in it is nothing to the user. It obeys the same protocol at one revision, FACTS, which tells nothing of what is missing: so a write that begins
-- on dirty facts makes them show nothing, and no write lets them live for longer.

local LISTPACK_VALUE_BYTES = 64
local FACTS = '-1'
local FIELDS_AT_ONCE = 1000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The unexpired writers without `own`, as !w holds them ('' for none); whether `own` is among the unexpired; whether others expired.
local function others(writers, own, now)
  if not writers then
    return '', false, false
  end
  -- Nearly always nobody else is inside.
  local only, ends = string.match(writers, '^([^;]+)=(%d+)$')
  if only == own then
    return '', tonumber(ends) > now, false
  end
  local kept, present, died = {}, false, false
  for token, expiry in string.gmatch(writers, '([^=;]+)=(%d+)') do
    if tonumber(expiry) > now then
      if token == own then
        present = true
      else
        kept[#kept + 1] = token .. '=' .. expiry
      end
    elseif token ~= own then
      died = true
    end
  end
  return table.concat(kept, ';'), present, died
end

-- Takes a writer out of an entry, which stays dirty; anyone who holds a fill token may have read too early. An entry that shows nothing and has nobody inside is
-- as good as none.
local function abandon(key, kept, dirt, shown)
  if kept == '' and not shown then
    redis.call('DEL', key)
    return
  end
  if not dirt then
    redis.call('HSET', key, '!d', '1')
  end
  if kept == '' then
    redis.call('HDEL', key, '!g', '!w', '!s')
  else
    redis.call('HSET', key, '!w', kept, '!s', '1')
    redis.call('HDEL', key, '!g')
  end
end

-- Takes a writer out of an entry in which it has applied nothing.
local function abandon_writer(key, own, now)
  local found = redis.call('HMGET', key, '!w', '!d', '!r')
  abandon(key, (others(found[1], own, now)), found[2], found[3])
end

-- Takes a writer out of the missing ones of the first `users` entries.
-- Sets `left[number of the key]` where it was inside.
local function take_out(left, users, own, now)
  local key, inside, gone, stay = KEYS[users + 1], {}, {}, {}
  local found, last, kept, present = redis.call('HMGET', key, unpack(KEYS, 1, users))
  for at = 1, users do
    local writers = found[at]
    if writers then
      -- Writers that began together have the same text.
      if writers ~= last then
        last, kept, present = writers, others(writers, own, now)
      end
      if present then
        left[at] = true
        inside[#inside + 1] = KEYS[at]
      end
      if kept == '' then
        gone[#gone + 1] = KEYS[at]
      else
        stay[#stay + 1] = KEYS[at]
        stay[#stay + 1] = kept
      end
    end
  end
  -- A Redis that is full takes the second one only after the first.
  if #gone > 0 then
    redis.call('HDEL', key, unpack(gone))
  end
  if #stay > 0 then
    redis.call('HSET', key, unpack(stay))
  end
  -- A node of version 0.1.0 does not know of this list, and may have given a reader a token.
  if #inside > 0 and redis.call('EXISTS', unpack(inside)) > 0 then
    for at in pairs(left) do
      left[at] = redis.call('EXISTS', KEYS[at]) == 0
    end
  end
end

-- The same. Returns `left`, or an empty table and the failure. Then the caller ends the writer in each entry by itself.
local function leave_absent(users, own, now)
  local left = {}
  if not KEYS[users + 1] then
    return left
  end
  local done, failure = pcall(take_out, left, users, own, now)
  if done then
    return left
  end
  return {}, failure
end

-- Sets list[first], list[first + 1] and so on to list[last] (or the end), as field and value; in portions, for Lua's stack is bounded.
local function set_fields(key, list, first, last)
  last = last or #list
  for from = first, last, FIELDS_AT_ONCE do
    redis.call('HSET', key, unpack(list, from, math.min(from + FIELDS_AT_ONCE - 1, last)))
  end
end

-- Does something to each key, up to the last one. One with which it cannot be done (it is no hash) keeps no other from it, and is told in the end.
local function each_key(what, last)
  local failure
  for at = 1, last or #KEYS do
    local done, problem = pcall(what, KEYS[at], at)
    if not done then
      failure = failure or problem
    end
  end
  if failure then
    error(failure)
  end
end
