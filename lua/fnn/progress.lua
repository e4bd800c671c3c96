-- progress.lua - fnn.progress over loops: for x, y in fnn.progress(loader).

local fnn, load, internals = ...
local module = load "nn/module"
local report = internals.progress  -- lua/lib.c: what, step, total

local getmetatable, pcall, setmetatable, tostring, type =
  getmetatable, pcall, setmetatable, tostring, type
local math_type = math.type
local raise, described = module.raise, module.described

-- {======================================================
-- Sources: what gives the next values, how many times, how often it has
-- =======================================================

local function numbers (n)
  local i = 0
  return function ()
    if i >= n then return nil end
    i = i + 1
    return i
  end, n, 0
end

local function elements (list)
  local i = 0
  return function ()
    i = i + 1
    local v = list[i]
    if v ~= nil then return i, v end
  end, #list, 0
end

-- Batches, of this epoch from where the cursor is; how many may be unknown.
local function batches (loader)
  local ok, total = pcall(function () return #loader end)
  local _, done = loader:cursor()
  return function () return loader() end, ok and total or nil, done
end

local function has_cursor (v)
  local ok, f = pcall(function () return v.cursor end)
  return ok and type(f) == "function"
end

local function source_of (v)
  if math_type(v) == "integer" and v >= 0 then return numbers(v) end
  if type(v) == "function" then return v, nil, 0 end
  if fnn.is_tensor(v) and v:ndim() > 0 then
    return elements(setmetatable({}, {
      __len = function () return #v end,
      __index = function (_, i) if i <= #v then return v[i] end end,
    }))
  end
  if type(v) == "table" or type(v) == "userdata" then
    local meta = getmetatable(v)
    if meta == nil then return elements(v) end
    if has_cursor(v) then return batches(v) end
    if type(meta) == "table" and meta.__call then return v, nil, 0 end
  end
  raise("progress: expected a loader, a list, an iterator, a count or the " ..
        "name of the work, got %s", v == nil and "nil" or
        type(v) == "number" and tostring(v) or described(v))
end

-- }======================================================

local function options_of (given, total)
  if type(given) == "string" then given = { what = given } end
  local o = module.options("progress", given, { what = "steps", total = false })
  if type(o.what) ~= "string" then
    raise("progress: option 'what': expected a text, got %s",
          described(o.what))
  end
  if o.total and (math_type(o.total) ~= "integer" or o.total < 0) then
    raise("progress: option 'total': expected an integer of 0 or more, got " ..
          "%s", tostring(o.total))
  end
  return o.what, o.total or total
end

-- The iterator, and what ends the bar when the loop is left early.
local function follow (source, given)
  local next_of, known, done = source_of(source)
  local what, total = options_of(given, known)
  local begun, told = false, false  -- told: the bar is this loop's

  local function show ()
    local all = total and done <= total and total or 0
    told = done ~= all
    report(what, done, all)
  end

  local function finish ()
    if told then report("", 0) end
    told = false
  end

  local function pass (first, ...)
    if first ~= nil then return first, ... end
    finish()
  end

  return function ()
    if begun then
      done = done + 1
      show()
    end
    begun = true
    return pass(next_of())
  end, nil, nil, setmetatable({}, { __close = function () pcall(finish) end })
end

-- fnn.progress(what, step [, total]), fnn.progress(source [, options])
local function progress (what, step, total)
  if type(what) ~= "string" then return follow(what, step) end
  if math_type(step) ~= "integer" then
    raise("progress: expected an integer as the step, got %s",
          type(step) == "number" and tostring(step) or described(step))
  end
  if total ~= nil and math_type(total) ~= "integer" then
    raise("progress: expected an integer as the total, got %s",
          type(total) == "number" and tostring(total) or described(total))
  end
  return report(what, step, total)
end

return { progress = progress }
