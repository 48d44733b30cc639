-- What scripts find when they start: the table `wrk`, and how the generator calls them.
--
-- Called once for each state with what the run was told. Returns the entries that the generator keeps. The names of fields and
-- functions, and what they do to each other (which tables are changed, what stays), are those of wrk and wrk2.
--
-- `wrk.format` is called for nearly every request, so it is written to be compiled as one trace: it compares the headers with
-- those of the last call and formats them anew only when one has changed. The walk is a `while` over `next` because the loop of a
-- `for` would be a trace of its own, which the trace of the caller cannot contain.

local run = ...
local next, type, tostring, rawequal = next, type, tostring, rawequal
local concat = table.concat

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

-- Headers as they were formatted last, without Content-Length: names[1..formatted], their values, and the text, which begins
-- after the path.
local names, values = {}, {}
local formatted = -1
local text_of_headers
-- What `wrk.format` returned last: one request, whose end needs no looking for.
local made

local function is_plain(value)
  local kind = type(value)
  return kind == "string" or kind == "number" or kind == "boolean"
end

local function format_headers(headers)
  local lines, count, cacheable = { " HTTP/1.1" }, 0, true
  for name, value in next, headers do
    if name ~= "Content-Length" then
      count = count + 1
      names[count], values[count] = name, value
      lines[count + 1] = tostring(name) .. ": " .. tostring(value)
      -- What another value turns into may change while it stays the same.
      cacheable = cacheable and is_plain(name) and is_plain(value)
    end
  end
  lines[count + 2] = ""
  text_of_headers = concat(lines, "\r\n")
  formatted = cacheable and count or -1
end

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
  local length = body and #body or nil
  headers["Content-Length"] = length

  local count = 0
  local name, value = next(headers)
  while name ~= nil do
    if name ~= "Content-Length" then
      count = count + 1
      if names[count] ~= name or values[count] ~= value then
        count = -2
        break
      end
    end
    name, value = next(headers, name)
  end
  if count ~= formatted then
    format_headers(headers)
  end

  if length then
    made = method .. " " .. path .. text_of_headers .. "Content-Length: " .. length .. "\r\n\r\n" .. body
  else
    made = method .. " " .. path .. text_of_headers .. "\r\n"
  end
  return made
end

-- The request of scripts that make none of their own; known since `wrk.init`.
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

-- Scripts that use the default seed are told; so that they do not have to be searched for calls through other names, the
-- function itself takes notes. It is no function of the loop: nobody seeds a generator for each request and means it.
local randomseed = math.randomseed
local seed_of_script
if run.seed then
  randomseed(run.seed)
end
function math.randomseed(...)
  seed_of_script = ...
  return randomseed(...)
end

-- Names that `wrk.tag` had, with their numbers.
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

-- The next request and a number: odd when it is what wrk.format returned last, and above that the number of its tag, if any.
function entries.request()
  local make = request
  if type(make) ~= "function" then
    make = wrk.request
  end
  local text = make()
  if type(text) ~= "string" then
    text = check_request(text)
  end
  local code = rawequal(text, made) and 1 or 0
  local tag = wrk.tag
  if tag ~= nil then
    code = code + 2 * (tags[tag] or number_tag(tag))
  end
  return text, code
end

function entries.response(status, headers, body)
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
  -- Targets are resolved before scripts are loaded, and whether they answer shows when they are used.
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

-- The next requests go to another target: follow with what still has the value of the last one.
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

function package.preload.ffi()
  error("ffi is not available: scripts run without direct access to memory", 0)
end

if run.directory then
  package.path = package.path .. ";" .. run.directory .. "/?.lua"
end

return entries
