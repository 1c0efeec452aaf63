-- wrk's part of the bench: wrk … -s wrk.lua URL -- FILE random|each TURN TURNS THREADS
-- Reads whole requests from FILE (each after its length, on a line), hands them out, and at the end says what came of it. With "each" every
-- turn, and in it every thread, begins at a place of its own, so that no request is sent twice.
local requests, place, order = {}, 0, "random"
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

-- Once in each thread.
function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local length = file:read("*n")
    if not length then break end
    file:read(1)
    requests[#requests + 1] = file:read(length)
  end
  order = args[2]
  local share, shares = args[3] + number / args[5], args[4]
  math.randomseed(share * 1000 + 1)
  place = math.floor(#requests * share / shares)
end

function request()
  if order == "random" then return requests[math.random(#requests)] end
  place = place % #requests + 1
  return requests[place]
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("bench: %d requests %d us %d errors\n",
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout))
end
