-- holders.lua - who holds the memory: fnn.memory_holders.
--
-- Nothing is counted while a program runs.  When asked, what nothing reaches is
-- collected, all that Lua reaches is walked through, and all graphs from there;
-- each storage goes to the first that claims it: weights, gradients, states of
-- optimizers, buffers, graphs, variables.

local fnn, load, internals = ...
local text = load "seeing/text"
local watch = internals.watch
local core = internals.nn

local collectgarbage, ipairs, next = collectgarbage, ipairs, next
local setmetatable, type = setmetatable, type
local sort = table.sort
local format = string.format

local Holders = { __name = "fnn.Holders" }
Holders.__index = Holders

local kinds = { tensor = true, param = true, module = true }

-- What Lua reaches, by kind: lists of { value, name }.
local function reachable ()
  local found = { tensor = {}, param = {}, module = {}, other = {} }
  local list = watch.reachable()
  for i = 1, #list, 2 do
    local kind = core.kind(list[i])
    local at = found[kinds[kind] and kind or "other"]
    at[#at + 1] = { list[i], list[i + 1] }
  end
  return found
end

-- A ledger: claim(group, name, storage, count) counts each storage once.
local function ledger (device)
  local rows, at, taken, sum = {}, {}, {}, 0
  local function add (group, name, bytes)
    local key = group .. "\0" .. name
    local row = at[key]
    if not row then
      row = { group = group, name = name, bytes = 0, count = 0 }
      at[key] = row
      rows[#rows + 1] = row
    end
    row.bytes = row.bytes + bytes
    row.count = row.count + 1
    sum = sum + bytes
  end
  local function claim (group, name, storage)
    if storage[3] ~= device or taken[storage[1]] then return end
    taken[storage[1]] = true
    add(group, name, storage[2])
  end
  return rows, add, claim, function () return sum end
end

-- Paths of the Params of all modules: of the model given, else of those that
-- are in no other.
local function name_params (found, model)
  local names = text.names("memory_holders", model)
  if model then return names end
  local inside = {}
  for _, m in ipairs(found.module) do
    for _, child in m[1]:named_children() do inside[child] = true end
  end
  for _, m in ipairs(found.module) do
    if not inside[m[1]] then
      for name, p in m[1]:named_parameters() do
        names[p] = names[p] or name
      end
    end
  end
  return names
end

-- All Params: of modules, of variables, and of graphs; a list without any
-- twice.
local function params_of (found, nodes)
  local list, seen = {}, {}
  local function add (p)
    if not seen[p] then
      seen[p] = true
      list[#list + 1] = p
    end
  end
  for _, m in ipairs(found.module) do
    for _, p in m[1]:named_parameters() do add(p) end
  end
  for _, p in ipairs(found.param) do add(p[1]) end
  for _, node in ipairs(nodes) do
    for _, source in ipairs(node.inputs) do
      if type(source) == "userdata" then add(source) end
    end
  end
  return list
end

local function claim_params (params, names, claim)
  local states = {}
  for _, p in ipairs(params) do
    local name = names[p] or text.shape(p:shape())
    claim("parameters", name, watch.storage(p))
    states[#states + 1] = { name, watch.states(p) }
  end
  for _, s in ipairs(states) do
    if s[2][1] then claim("gradients", s[1], s[2][1]) end
  end
  for _, s in ipairs(states) do
    for i = 2, #s[2] do claim("optimizer state", s[1], s[2][i]) end
  end
end

local function claim_buffers (found, claim)
  for _, m in ipairs(found.module) do
    for name, x in m[1]:named_buffers() do
      claim("buffers", name, watch.storage(x))
    end
  end
end

local function claim_graph (nodes, claim)
  for _, node in ipairs(nodes) do
    for _, s in ipairs(node.saved) do claim("graph", node.op, s) end
  end
end

local order = { "group", "bytes", "count", "name" }

-- fnn.memory_holders { model =, device = }
local function memory_holders (options)
  local o = text.options("memory_holders", options,
                         { model = false, device = false })
  local device = fnn.device(o.device or fnn.default_device())
  if collectgarbage "isrunning" then collectgarbage() end
  local found = reachable()
  local tensors = {}
  for i, x in ipairs(found.tensor) do tensors[i] = x[1] end
  local nodes = watch.graph(tensors)
  local rows, add, claim, sum = ledger(device)
  claim_params(params_of(found, nodes), name_params(found, o.model or nil),
               claim)
  claim_buffers(found, claim)
  claim_graph(nodes, claim)
  for _, x in ipairs(found.tensor) do
    claim("variables", x[2] == "" and "?" or x[2], watch.storage(x[1]))
  end
  local live = fnn.memory(device).live
  if device == "cpu" then add("engine", "headers of objects", watch.own()) end
  if live > sum() then add("other", "not reached from Lua", live - sum()) end
  sort(rows, function (a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.group .. a.name < b.group .. b.name
  end)
  local h = { rows = rows, live = live, device = device, groups = {} }
  for _, c in ipairs(order) do
    h[c] = {}
    for i, row in ipairs(rows) do h[c][i] = row[c] end
  end
  for _, row in ipairs(rows) do
    h.groups[row.group] = (h.groups[row.group] or 0) + row.bytes
  end
  return setmetatable(h, Holders)
end

-- h:table(n): groups, and of each the n largest, as text
function Holders:table (n)
  n = text.count("Holders:table", n) or 5
  local groups, cells = {}, {}
  for name, bytes in next, self.groups do
    groups[#groups + 1] = { name, bytes }
  end
  sort(groups, function (a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  local function add (name, bytes)
    local share = self.live > 0 and 100 * bytes / self.live or 0
    cells[#cells + 1] = { name, text.bytes(bytes), format("%.1f%%", share) }
  end
  for _, g in ipairs(groups) do
    local shown, rest, more = 0, 0, 0
    add(g[1], g[2])
    for _, row in ipairs(self.rows) do
      if row.group == g[1] and shown < n then
        shown = shown + 1
        add("  " .. row.name, row.bytes)
      elseif row.group == g[1] then
        rest, more = rest + row.bytes, more + 1
      end
    end
    if more > 0 then add(format("  %d more", more), rest) end
  end
  add("live on " .. self.device, self.live)
  return text.table({ "holder", "bytes", "share" }, cells, 1)
end

function Holders:__tostring () return self:table() end

return { memory_holders = memory_holders }
