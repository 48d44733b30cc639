-- GET of random keys that do not exist and sort between those that do. All responses are 404.
-- Arguments: KEYS (1000000), SEED (1).
-- Store: filled with at least KEYS keys.

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
  return wrk.format("GET", "/v0/entity?id=" .. key(math.random(0, keys - 2)) .. "-")
end
