-- The interface for scripts: the table `wrk`, and the entries through which the generator calls a
-- script.
--
-- Runs once in each state with the parameters of the run and returns the entries. Names of fields
-- and functions and their side effects (which tables are modified, which values stay) are those of
-- wrk and wrk2.
--
-- `wrk.format` runs for nearly every request. It is written without loops, so that LuaJIT compiles
-- it as one trace: a loop would be a trace of its own, which the caller's trace cannot contain. It
-- caches nothing between calls, so that scripts may modify their tables of headers. Headers have
-- the order of `next`, which differs from state to state.

local run = ...
local next, type, tostring = next, type, tostring

local wrk = {
  scheme = run.scheme,
  host = run.host,
  port = run.port,
  method = "GET",
  path = run.path,
  headers = run.headers,
  lookup = run.lookup,
  connect = run.connect,
  time_us = run.time_us,
  addrs = run.addrs,
  thread_id = run.thread_id,
  threads = run.threads,
}
_G.wrk = wrk
package.loaded.wrk = wrk

-- The last result of `wrk.format`: one request, which needs no parsing.
local made

-- Up to so many headers are written without a loop.
local HEADERS_UNROLLED = 12

local function join_many(method, path, headers, body)
  local lines = { method .. " " .. path .. " HTTP/1.1" }
  for name, value in next, headers do
    lines[#lines + 1] = tostring(name) .. ": " .. tostring(value)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = body
  return table.concat(lines, "\r\n")
end

-- Generates a function that takes the headers one by one from `next` and then makes the text with
-- one concatenation.
local function join_unrolled()
  local code = { "local next, type, tostring, join_many = ...", "return function(method, path, headers, body)" }
  local function add(line) code[#code + 1] = line end
  local text, key = [[method .. " " .. path .. " HTTP/1.1\r\n"]], ""
  for i = 1, HEADERS_UNROLLED + 1 do
    add(("local k%d, v%d = next(headers%s)"):format(i, i, key))
    add(([[if k%d == nil then return %s .. "\r\n" .. body end]]):format(i, text))
    add(("local n%d = k%d"):format(i, i))
    add(("if type(n%d) ~= 'string' then n%d = tostring(n%d) end"):format(i, i, i))
    add(("if type(v%d) ~= 'string' then v%d = tostring(v%d) end"):format(i, i, i))
    text = text .. ([[ .. n%d .. ": " .. v%d .. "\r\n"]]):format(i, i)
    key = ", k" .. i
  end
  add("return join_many(method, path, headers, body)")
  add("end")
  return loadstring(table.concat(code, "\n"), "=[wrk]")(next, type, tostring, join_many)
end
local join = join_unrolled()

local function check_text(what, value)
  if type(value) == "number" then
    return tostring(value)
  end
  error("wrk.format: the " .. what .. " is a " .. type(value) .. ", not a string", 3)
end

function wrk.format(method, path, headers, body)
  method = method or wrk.method
  path = path or wrk.path
  headers = headers or wrk.headers
  body = body or wrk.body
  if type(method) ~= "string" then method = check_text("method", method) end
  if type(path) ~= "string" then path = check_text("path", path) end
  if type(headers) ~= "table" then error("wrk.format: the headers are a " .. type(headers) .. ", not a table", 2) end
  if body and type(body) ~= "string" then body = check_text("body", body) end

  if not headers.Host then
    headers.Host = wrk.headers.Host
  end
  headers["Content-Length"] = body and #body or nil
  made = join(method, path, headers, body or "")
  return made
end

-- The request of scripts without `request()`; set by `wrk.init`.
local prebuilt
local function request_prebuilt()
  return prebuilt
end

function wrk.resolve(host, service)
  local addrs = wrk.lookup(host, service)
  for index = #addrs, 1, -1 do
    if not wrk.connect(addrs[index]) then
      table.remove(addrs, index)
    end
  end
  wrk.addrs = addrs
end
local resolve = wrk.resolve

function wrk.setup(thread)
  thread.addr = wrk.addrs[1]
  if type(setup) == "function" then
    setup(thread)
  end
end

function wrk.init(args)
  if not wrk.headers.Host then
    local host = wrk.host
    host = host:find(":", 1, true) and ("[" .. host .. "]") or host
    wrk.headers.Host = wrk.port and (host .. ":" .. wrk.port) or host
  end
  if type(init) == "function" then
    init(args)
  end
  prebuilt = wrk.format()
  wrk.request = request_prebuilt
end

-- Scripts that never seed are warned about. The function records its argument, so that calls
-- through other names count too; it is not called per request.
local randomseed = math.randomseed
local seed_of_script
if run.seed then
  randomseed(run.seed)
end
function math.randomseed(...)
  seed_of_script = ...
  return randomseed(...)
end

-- The numbers of the values of `wrk.tag`.
local tags, tag_count = {}, 0

local function number_tag(tag)
  if type(tag) ~= "string" then
    error("wrk.tag is a " .. type(tag) .. ", not a string", 0)
  end
  local number = run.intern(tag)
  if tag_count < 256 then
    tag_count = tag_count + 1
    tags[tag] = number
  end
  return number
end

local function check_request(value)
  if type(value) == "number" then
    return tostring(value)
  end
  error("request() returned a " .. type(value) .. " value, not the text of a request", 0)
end

local entries = {}

-- The next request and a code: twice the number of its tag, if any, plus 1 if the text is the last
-- result of wrk.format.
function entries.request()
  local make = request
  if type(make) ~= "function" then
    make = wrk.request
  end
  local text = make()
  if type(text) ~= "string" then
    text = check_request(text)
  end
  local code = text == made and 1 or 0
  local tag = wrk.tag
  if tag ~= nil then
    code = code + 2 * (tags[tag] or number_tag(tag))
  end
  return text, code
end

function entries.response(status, headers, body)
  return response(status, headers, body)
end

-- The same with up to seven headers as arguments: compiled code makes the table here.
function entries.response_of_few(status, body, n1, v1, n2, v2, n3, v3, n4, v4, n5, v5, n6, v6, n7, v7)
  local headers = {}
  if n1 then headers[n1] = v1 end
  if n2 then headers[n2] = v2 end
  if n3 then headers[n3] = v3 end
  if n4 then headers[n4] = v4 end
  if n5 then headers[n5] = v5 end
  if n6 then headers[n6] = v6 end
  if n7 then headers[n7] = v7 end
  return response(status, headers, body)
end

function entries.delay()
  local delay_ms = delay()
  if type(delay_ms) ~= "number" then
    delay_ms = tonumber(delay_ms) or error("delay() returned a " .. type(delay_ms) .. " value, not milliseconds", 0)
  end
  return delay_ms
end

function entries.resolve(host, service)
  -- Targets are resolved and probed before scripts are loaded.
  if wrk.resolve ~= resolve then
    wrk.resolve(host, service)
  end
end

function entries.setup(thread)
  wrk.setup(thread)
end

function entries.init(thread, args)
  wrk.thread = thread
  wrk.init(args)
end

function entries.done(summary, latency, requests)
  done(summary, latency, requests)
end

function entries.defines(name)
  return type(_G[name]) == "function"
end

-- Before requests to another target: updates the fields that still have the value of the previous
-- one.
function entries.retarget(from, to)
  for _, field in next, { "scheme", "host", "port", "path" } do
    if wrk[field] == from[field] then
      wrk[field] = to[field]
    end
  end
  if wrk.headers.Host == from.authority then
    wrk.headers.Host = to.authority
  end
  if wrk.request == request_prebuilt then
    prebuilt = wrk.format()
  end
end

function entries.seed_of_script()
  return seed_of_script
end

function entries.flush()
  io.stdout:flush()
end

function entries.tune_collector(live_max_kib, pause, step_multiplier)
  collectgarbage("collect")
  if collectgarbage("count") <= live_max_kib then
    collectgarbage("setpause", pause)
    collectgarbage("setstepmul", step_multiplier)
  end
end

if run.directory then
  package.path = package.path .. ";" .. run.directory .. "/?.lua"
end

return entries
