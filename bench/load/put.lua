-- A PUT a request, as the reports that this project started from made theirs: a counter in the key, wrk.format for the rest.
-- wrk, wrk2 and kvant load run it.

local counter = 0

request = function()
  counter = counter + 1
  return wrk.format("PUT", "/v0/entity?id=" .. counter, nil, "value" .. counter)
end
