-- show.lua - a model as text: print(model), and fnn.summary(model, input),
-- which runs it.

local fnn, load = ...
local module = load "nn/module"
local tree = load "nn/tree"

local error, ipairs, pcall, rawset = error, ipairs, pcall, rawset
local setmetatable, type = setmetatable, type
local concat, pack, unpack = table.concat, table.pack, table.unpack
local max, min = math.max, math.min
local format, gsub = string.format, string.gsub
local rep, reverse = string.rep, string.reverse

local core, raise, parts, join = module.core, module.raise, module.parts,
                                 module.join
local fields, kind_of = core.fields, core.kind

-- 1234567 as "1,234,567".
local function grouped (n)
  local s = reverse(gsub(reverse(format("%d", n)), "(%d%d%d)", "%1,"))
  return (gsub(s, "^,", ""))
end

local function shape_text (x)
  return "(" .. concat(x:shape(), ", ") .. ")"
end

local function size_text (bytes)
  if bytes < 1e3 then return bytes .. " bytes" end
  if bytes < 1e6 then return format("%.1f KB", bytes / 1e3) end
  if bytes < 1e9 then return format("%.1f MB", bytes / 1e6) end
  return format("%.1f GB", bytes / 1e9)
end

-- What follows the class's name in parentheses; a class may have its own.
function module.methods:describe () return core.text(self) end

local function heading (m)
  return m.__name .. "(" .. m:describe() .. ")"
end

-- {======================================================
-- print(model)
-- =======================================================

-- "weight (2, 3), bias (2,)": the Params and buffers of m alone.
local function own_tensors (m, path, seen)
  local list = {}
  for key, v, kind in parts(m) do
    local name = join("", key)
    if kind ~= "module" and seen[v] then
      list[#list + 1] = name .. " = " .. seen[v]
    elseif kind ~= "module" then
      seen[v] = join(path, key)
      local text = name .. " " .. shape_text(v)
      if kind == "tensor" then text = "buffer " .. text
      elseif v:is_frozen() then text = text .. " frozen" end
      list[#list + 1] = text
    end
  end
  return concat(list, ", ")
end

-- Rows of { text, tensors } of a tree, each part once.
local function rows_of (root)
  local rows, seen = {}, {}
  local function visit (m, path, label, depth)
    local text = rep("  ", depth) .. label .. heading(m)
    seen[m] = path == "" and "the model" or path
    rows[#rows + 1] = { text, own_tensors(m, path, seen) }
    for key, v, kind in parts(m) do
      if kind == "module" then
        local name = join("", key) .. ": "
        if seen[v] then
          rows[#rows + 1] = { rep("  ", depth + 1) .. name .. "the same as " ..
                              seen[v], "" }
        else
          visit(v, join(path, key), name, depth + 1)
        end
      end
    end
  end
  visit(root, "", "", 0)
  return rows
end

local function totals (m)
  local all, trainable = m:parameter_count()
  local bytes = 0
  for _, e in ipairs(tree.survey(m).tensors) do
    bytes = bytes + core.bytes(e.value)
  end
  local text = grouped(all) .. (all == 1 and " parameter" or " parameters")
  if trainable < all then
    text = text .. ", " .. grouped(all - trainable) .. " frozen"
  end
  return text .. ", " .. size_text(bytes)
end

core.metamethods {
  __tostring = function (m)
    local rows, wide = rows_of(m), 0
    for _, row in ipairs(rows) do
      if row[2] ~= "" then wide = max(wide, min(#row[1], 44)) end
    end
    local lines = {}
    for i, row in ipairs(rows) do
      lines[i] = row[2] == "" and row[1] or
                 row[1] .. rep(" ", wide - #row[1]) .. "  " .. row[2]
    end
    lines[#lines + 1] = totals(m)
    return concat(lines, "\n")
  end,
}

-- }======================================================

-- {======================================================
-- Summary
-- =======================================================

-- What a forward gave, as text.
local function output_text (v)
  if kind_of(v) == "tensor" then return shape_text(v) end
  if type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = output_text(x) end
    return "{ " .. concat(list, ", ") .. " }"
  end
  return type(v)
end

local function outputs_text (results)
  local list = {}
  for i = 1, results.n do list[i] = output_text(results[i]) end
  return concat(list, ", ")
end

-- Lets f run with each module's forward watched: see(m, results).
local function watched (modules, see, f)
  for _, m in ipairs(modules) do
    local forward = m.forward
    if forward then
      rawset(fields(m), "forward", function (...)
        local results = pack(forward(...))
        see(m, results)
        return unpack(results, 1, results.n)
      end)
    end
  end
  local ok, message = pcall(f)
  for _, m in ipairs(modules) do rawset(fields(m), "forward", nil) end
  if not ok then error(message, 0) end
end

-- Runs f with the model in evaluation and the graph off.
local function quietly (modules, f)
  local modes = {}
  for i, m in ipairs(modules) do
    modes[i] = m.training
    m.training = false
  end
  local ok, message = pcall(fnn.no_grad, f)
  for i, m in ipairs(modules) do m.training = modes[i] end
  if not ok then error(message, 0) end
end

local Summary = { __name = "fnn.Summary" }

function Summary:__tostring ()
  local wide = { 6, 4, 6 }
  local lines = { { "module", "type", "output", "parameters" } }
  for _, row in ipairs(self) do
    lines[#lines + 1] = { row.name == "" and "(model)" or row.name, row.type,
                          row.output or "not run", grouped(row.parameters) }
  end
  for _, line in ipairs(lines) do
    for i = 1, 3 do wide[i] = max(wide[i], #line[i]) end
  end
  local text = {}
  local layout = format("%%-%ds  %%-%ds  %%-%ds  %%12s", unpack(wide))
  for i, line in ipairs(lines) do text[i] = format(layout, unpack(line)) end
  text[#text + 1] = self.totals
  return concat(text, "\n")
end

-- Modules that hold others and are not called themselves.
local function is_list (m)
  return m.__name == "ModuleList" or m.__name == "ModuleDict"
end

-- The input: a tensor, or the shape of one of zeros, which are where the first
-- of the model's tensors is.
local function as_input (v, first)
  if type(v) == "table" then
    return fnn.zeros(v, first and { device = first.value:device() })
  end
  if kind_of(v) ~= "tensor" then
    raise("summary: expected a tensor or a shape as the input, got %s",
          module.described(v))
  end
  return v
end

-- fnn.summary(model, input ...): a row a module with the shape of its output
-- and the parameters of its own; text for print.
function fnn.summary (model, ...)
  if kind_of(model) ~= "module" then
    raise("summary: expected a module, got %s", module.described(model))
  end
  local inputs = pack(...)
  if inputs.n == 0 then raise("summary: expected an input for the model") end
  local entries = tree.survey(model)
  for i = 1, inputs.n do
    inputs[i] = as_input(inputs[i], entries.tensors[1])
  end
  local modules, output, own = model:modules(), {}, {}
  for _, e in ipairs(entries.tensors) do
    local n = e.kind == "param" and e.value:numel() or 0
    own[e.owner] = (own[e.owner] or 0) + n
  end
  quietly(modules, function ()
    watched(modules, function (m, results)
      output[m] = outputs_text(results)
    end, function () model(unpack(inputs, 1, inputs.n)) end)
  end)
  local rows = setmetatable({ totals = totals(model) }, Summary)
  for i, e in ipairs(entries.modules) do
    rows[i] = { name = e.name, type = e.value.__name,
                output = output[e.value] or is_list(e.value) and "" or nil,
                parameters = own[e.value] or 0 }
  end
  return rows
end

module.methods.summary = fnn.summary

-- }======================================================

return true
