-- PUT of random keys with values of 1 to 10,000 bytes.
-- Arguments: KEYS (1000000), SEED (1).
-- Store: any.

-- Values and keys are slices of one text, because random letters for each request would make the
-- generator the limit.
local text

local keys = 1000000
local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  keys = tonumber(args[1]) or keys
  math.randomseed((tonumber(args[2]) or 1) * 1000 + number)
  local letters = {}
  for i = 1, 65536 do
    letters[i] = string.char(string.byte("a") + math.random(0, 25))
  end
  text = table.concat(letters)
end

local function key(index)
  return string.format("%012d", index)
end

local function part(length)
  local first = math.random(1, #text - length + 1)
  return string.sub(text, first, first + length - 1)
end

function request()
  local value = part(math.random(1, 10000))
  return wrk.format("PUT", "/v0/entity?id=" .. key(math.random(0, keys - 1)), nil, value)
end
