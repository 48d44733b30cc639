-- One operation over a shuffled list of keys: wrk -s workload.lua URL -- OPERATION KEYS_FILE ROUND
--
-- Requests are built before the clock starts, so that the generator's work for each is one table
-- read. `status` sets no request function, so that wrk repeats one buffer.

local requests = {}
local at = 0

local function head(method, id, rest)
  return method .. " /v0/entity?id=" .. id .. " HTTP/1.1\r\nHost: 127.0.0.1\r\n" .. (rest or "\r\n")
end

local builders = {
  get = function(key) return head("GET", key) end,
  -- Between two existing keys, so that no key range excludes it.
  absent = function(key) return head("GET", key .. "x") end,
  put = function(key, round)
    return head("PUT", key, string.format("Content-Length: 12\r\n\r\nput%02d%07d", round % 100, key))
  end,
  delete = function(key) return head("DELETE", key) end,
}

function init(args)
  local operation, keys_file, round = args[1], args[2], tonumber(args[3])
  if operation == "status" then return end
  local build = builders[operation]
  for key in io.lines(keys_file) do
    requests[#requests + 1] = build(key, round)
  end
  -- wrk requests one before it connects and discards it: make that the last of the list.
  at = #requests - 1
  request = next_request
  wrk.request = next_request
end

function next_request()
  at = at + 1
  if at > #requests then at = 1 end
  return requests[at]
end

-- A line for load.py.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    "kvant-bench requests=%d duration_us=%d p50_us=%d p99_us=%d connect=%d read=%d write=%d timeout=%d status=%d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.timeout, errors.status))
end
