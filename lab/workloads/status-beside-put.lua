-- PUT of random keys with values of 12 bytes, and the status in one request of ten: is it as fast
-- as without writes?
-- Arguments: KEYS (1000000), SEED (1).
-- Store: any.

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
  if math.random() < 0.1 then
    return wrk.format("GET", "/v0/status")
  end
  local value = string.format("value-%06d", math.random(0, 999999))
  return wrk.format("PUT", "/v0/entity?id=" .. key(math.random(0, keys - 1)), nil, value)
end
