-- dot.lua - graphs as text for Graphviz: fnn.graph.dot.

local _, load, internals = ...
local text = load "seeing/text"
local watch = internals.watch

local ipairs, math_type, tostring = ipairs, math.type, tostring
local concat, sort = table.concat, table.sort
local format = string.format
local is_tensor = (...).is_tensor
local raise = text.raise

-- A label of these lines, in quotes.
local function quoted (lines)
  local s = concat(lines, "\n"):gsub("[\"\\]", "\\%0"):gsub("\n", "\\n")
  return '"' .. s .. '"'
end

-- Bytes of storages, of each once.
local function saved_bytes (node)
  local seen, bytes = {}, 0
  for _, s in ipairs(node.saved) do
    if not seen[s[1]] then
      seen[s[1]] = true
      bytes = bytes + s[2]
    end
  end
  return bytes
end

local function op_lines (node)
  local lines = { node.op, text.shape(node.shape) .. " " .. node.dtype }
  local bytes = saved_bytes(node)
  if bytes > 0 then lines[3] = "saved " .. text.bytes(bytes) end
  if node.spent then lines[#lines + 1] = "spent" end
  return lines
end

local function param_lines (p, names)
  return { names[p] or "parameter",
           text.shape(p:shape()) .. " " .. p:dtype() }
end

-- fnn.graph.dot(x [, { names = model, direction = "TB" }])
local function dot (x, options)
  if not is_tensor(x) then
    raise("graph.dot: expected a tensor, got %s", text.described(x))
  end
  local o = text.options("graph.dot", options,
                         { names = false, direction = "BT" })
  local directions = { BT = true, TB = true, LR = true, RL = true }
  if not directions[o.direction] then
    raise("graph.dot: option 'direction': expected BT, TB, LR or RL, got '%s'",
          tostring(o.direction))
  end
  local names = text.names("graph.dot", o.names)
  local out = { "digraph fnn {", "  rankdir=" .. o.direction .. ";",
                '  node [fontname="Helvetica", fontsize=10];' }
  local ids, count = {}, 0
  local function param (p)
    if not ids[p] then
      count = count + 1
      ids[p] = "p" .. count
      out[#out + 1] = format('  %s [shape=ellipse, style=filled, ' ..
                             'fillcolor="#cfe2f3", label=%s];', ids[p],
                             quoted(param_lines(p, names)))
    end
    return ids[p]
  end
  local nodes = watch.graph { x }
  sort(nodes, function (a, b) return a.id < b.id end)
  for _, node in ipairs(nodes) do
    out[#out + 1] = format('  n%d [shape=box, label=%s];', node.id,
                           quoted(op_lines(node)))
  end
  for _, node in ipairs(nodes) do
    for i, source in ipairs(node.inputs) do
      local from = source and (math_type(source) and "n" .. source or
                               param(source))
      local label = #node.inputs > 1 and format(" [label=%d, fontsize=8]", i)
      if from then
        out[#out + 1] = format("  %s -> n%d%s;", from, node.id, label or "")
      end
    end
  end
  local source = watch.source(x)
  local lines = { "result", text.shape(x:shape()) .. " " .. x:dtype() }
  out[#out + 1] = format('  result [shape=box, style="rounded,filled", ' ..
                         'fillcolor="#fff2cc", label=%s];', quoted(lines))
  if source then
    local from = math_type(source) and "n" .. source or param(source)
    out[#out + 1] = format("  %s -> result;", from)
  end
  out[#out + 1] = "}"
  return concat(out, "\n") .. "\n"
end

return { dot = dot }
