-- PUTs with a counter in the key, built by wrk.format, for wrk, wrk2 and kvant load.

local counter = 0

request = function()
  counter = counter + 1
  return wrk.format("PUT", "/v0/entity?id=" .. counter, nil, "value" .. counter)
end
