-- GET of ranges of 100 records that start at random keys.
-- Arguments: KEYS (1000000), SEED (1).
-- Store: filled with at least KEYS keys, which must be 100 or more.

local keys = 1000000
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  keys = tonumber(args[1]) or keys
  math.randomseed((tonumber(args[2]) or 1) * 1000 + number)
end

local function key(index)
  return string.format("%012d", index)
end

function request()
  local first = math.random(0, keys - 100)
  return wrk.format("GET", "/v0/entities?start=" .. key(first) .. "&end=" .. key(first + 100))
end
