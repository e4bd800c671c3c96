-- text.lua - tables as text, sizes, shapes: what the files of seeing share.

local _, load = ...
local module = load "nn/module"

local ipairs, math_type, type = ipairs, math.type, type
local concat = table.concat
local max = math.max
local format, rep = string.format, string.rep
local len = utf8.len

local text = { raise = module.raise, options = module.options,
               described = module.described }

-- Rows of cells under their titles; the first `left` columns begin at the
-- left, the others end at the right.
function text.table (titles, rows, left)
  local width = {}
  for i, title in ipairs(titles) do
    width[i] = len(title)
    for _, row in ipairs(rows) do width[i] = max(width[i], len(row[i])) end
  end
  local lines = {}
  local function add (row)
    local cells = {}
    for i, cell in ipairs(row) do
      local room = rep(" ", width[i] - len(cell))
      cells[i] = i <= left and cell .. room or room .. cell
    end
    lines[#lines + 1] = (concat(cells, "  "):gsub("%s+$", ""))
  end
  add(titles)
  for _, row in ipairs(rows) do add(row) end
  return concat(lines, "\n")
end

function text.bytes (n)
  if n < 1e3 then return format("%d bytes", n) end
  if n < 1e6 then return format("%.1f KB", n / 1e3) end
  if n < 1e9 then return format("%.1f MB", n / 1e6) end
  return format("%.2f GB", n / 1e9)
end

function text.shape (shape)
  return "(" .. concat(shape, ", ") .. ")"
end

-- How many rows to show; nil: that is not said.
function text.count (what, n)
  if n ~= nil and math_type(n) ~= "integer" then
    module.raise("%s: expected a number of rows, an integer, got %s", what,
                 module.described(n))
  end
  return n
end

-- The paths of a model's Params: names[p].
function text.names (what, model)
  local names = {}
  if not model then return names end
  if module.core.kind(model) ~= "module" then
    module.raise("%s: expected a module, got %s", what,
                 type(model) == "table" and "a table" or
                 module.described(model))
  end
  for name, p in model:named_parameters() do names[p] = name end
  return names
end

return text
