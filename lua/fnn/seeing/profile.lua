-- profile.lua - where the time of a function goes: fnn.profile.
--
-- The engine counts (src/core/watch.c): a row for each op, pass and module.
-- Here rows are added up by op or by module, and shown.

local fnn, load, internals = ...
local json = load "json"
local text = load "seeing/text"
local watch = internals.watch

local ipairs, next, setmetatable, tostring, type = ipairs, next, setmetatable,
                                                   tostring, type
local pack, sort, unpack = table.pack, table.sort, table.unpack
local format = string.format
local raise = text.raise

local Profile = { __name = "fnn.Profile" }
Profile.__index = Profile

local sums = { "calls", "kernels", "ms", "bytes", "made", "flops" }
local columns = { "op", "module", "pass", "calls", "kernels", "ms", "us",
                  "share", "bytes", "made", "flops", "gflops" }

-- What the other columns tell.
local function complete (row, total)
  row.us = row.calls > 0 and 1e3 * row.ms / row.calls or 0
  row.share = total > 0 and row.ms / total or 0
  row.gflops = row.ms > 0 and row.flops / row.ms * 1e-6 or 0
  return row
end

-- The rows of the engine with one key added up, the longest first.
local function add_up (raw, key, other)
  local rows, found = {}, {}
  for _, r in ipairs(raw) do
    local name = r[key] or other
    local at = name .. "\0" .. r.pass
    local row = found[at]
    if not row then
      row = { [key] = name, pass = r.pass }
      for _, sum in ipairs(sums) do row[sum] = 0 end
      found[at] = row
      rows[#rows + 1] = row
    end
    for _, sum in ipairs(sums) do row[sum] = row[sum] + r[sum] end
  end
  sort(rows, function (a, b)
    if a.ms ~= b.ms then return a.ms > b.ms end
    return a[key] .. a.pass < b[key] .. b.pass
  end)
  return rows
end

-- Fills p with the rows by "op" or "module", and their columns.
local function arrange (p, by)
  local other = by == "module" and "no module" or "?"
  local rows = add_up(p.raw, by, other)
  local outside = { [by] = "outside ops", pass = "" }
  for _, sum in ipairs(sums) do outside[sum] = 0 end
  outside.ms = p.outside
  rows[#rows + 1] = outside
  p.by, p.rows = by, rows
  for _, c in ipairs(columns) do p[c] = {} end
  for i, row in ipairs(rows) do
    complete(row, p.total)
    for _, c in ipairs(columns) do p[c][i] = row[c] end
  end
  return p
end

local function check_by (by)
  if by ~= "op" and by ~= "module" then
    raise("profile: by: expected 'op' or 'module', got '%s'", tostring(by))
  end
  return by
end

-- The same profile by "op" or by "module".
function Profile:sorted_by (by)
  local p = { raw = self.raw, total = self.total, outside = self.outside }
  return arrange(setmetatable(p, Profile), check_by(by))
end

-- p:table(n): the n rows that take longest, all without n, as text
function Profile:table (n)
  text.count("Profile:table", n)
  local cells = {}
  for i, r in ipairs(self.rows) do
    if not n or i <= n or i == #self.rows then
      cells[#cells + 1] = {
        r[self.by], r.pass, r.calls > 0 and format("%d", r.calls) or "",
        format("%.3f", r.ms), r.calls > 0 and format("%.1f", r.us) or "",
        format("%.1f%%", 100 * r.share),
        r.bytes > 0 and text.bytes(r.bytes) or "-",
        r.made > 0 and text.bytes(r.made) or "-",
        r.gflops > 0 and format("%.1f", r.gflops) or "-",
      }
    end
  end
  cells[#cells + 1] = { "all", "", "", format("%.3f", self.total), "",
                        "100.0%", "", "", "" }
  return text.table({ self.by, "pass", "calls", "ms", "us each", "share",
                      "moved", "made", "GFLOP/s" }, cells, 2)
end

function Profile:__tostring () return self:table() end

-- Chrome's trace events, which ui.perfetto.dev shows: a line for each pass.
local function write_trace (path, raw)
  local line = { forward = 1, backward = 2, step = 3 }
  local list = {}
  for pass, id in next, line do
    list[#list + 1] = { name = "thread_name", ph = "M", pid = 1, tid = id,
                        args = { name = pass } }
  end
  for _, e in ipairs(watch.events()) do
    local r = raw[e[1]]
    list[#list + 1] = { name = r.op, cat = r.pass, ph = "X", pid = 1,
                        tid = line[r.pass], ts = e[2], dur = e[3],
                        args = { module = r.module or "" } }
  end
  fnn.io.write_text(path, json.encode { traceEvents = list })
end

local function profile (f, options)
  if type(f) ~= "function" then
    raise("profile: expected a function, got %s", text.described(f))
  end
  local o = text.options("profile", options, { by = "op", trace = false })
  check_by(o.by)
  if o.trace and type(o.trace) ~= "string" then
    raise("profile: option 'trace': expected a path, got %s",
          text.described(o.trace))
  end
  local results = pack(watch.profile(f, o.trace ~= false))
  local raw, total, own = watch.rows()
  local p = { raw = raw, total = total - own }
  p.outside = p.total
  for _, r in ipairs(raw) do p.outside = p.outside - r.ms end
  if o.trace then write_trace(o.trace, raw) end
  return arrange(setmetatable(p, Profile), o.by), unpack(results, 1, results.n)
end

return { profile = profile }
