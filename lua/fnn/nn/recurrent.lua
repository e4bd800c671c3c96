-- recurrent.lua - networks that go through a sequence step by step: RNN, LSTM,
-- GRU, and the same for one step. Layers and directions are put together here;
-- one layer in one direction is one op, x:lstm(...).
--
-- Weights are named as PyTorch names them: weight_ih_l0, weight_hh_l0,
-- bias_ih_l0, bias_hh_l0, with _reverse for the way back.

local fnn, load = ...
local nn = fnn.nn
local module = load "nn/module"

local ipairs, pairs, tostring, type = ipairs, pairs, tostring, type
local math_type, sqrt = math.type, math.sqrt
local concat, pack, unpack = table.concat, table.pack, table.unpack
local raise, described = module.raise, module.described
local no_more, kind_of = module.no_more, module.core.kind

-- {======================================================
-- Weights
-- =======================================================

local shared = { bias = true, dtype = false, device = false, generator = false }

-- Of each class: its method, how many gates it has, and what it is called with.
local kinds = {
  RNN = { op = "rnn", gates = 1, states = { "h" } },
  GRU = { op = "gru", gates = 3, states = { "h" } },
  LSTM = { op = "lstm", gates = 4, states = { "h", "c" } },
}

local function check_size (class, name, v)
  if math_type(v) ~= "integer" or v < 1 then
    raise("%s: %s: expected a whole number of at least 1, got %s", class, name,
          math_type(v) and tostring(v) or described(v))
  end
end

local function check_boolean (class, name, v)
  if type(v) ~= "boolean" then
    raise("%s: option '%s': expected true or false, got %s", class, name,
          described(v))
  end
end

local function check_options (class, o)
  for _, name in ipairs { "bias", "bidirectional" } do
    if o[name] ~= nil then check_boolean(class, name, o[name]) end
  end
  if o.layers then check_size(class, "option 'layers'", o.layers) end
  local p = o.dropout
  if p and (type(p) ~= "number" or not (p >= 0 and p <= 1)) then
    raise("%s: option 'dropout': expected a probability from 0 to 1, got %s",
          class, type(p) == "number" and tostring(p) or described(p))
  end
  local f = o.nonlinearity
  if f and f ~= "tanh" and f ~= "relu" then
    raise("%s: option 'nonlinearity': expected 'tanh' or 'relu', got %s",
          class, type(f) == "string" and "'" .. f .. "'" or described(f))
  end
end

-- The weights of one layer and direction as fields of m, uniform within
-- 1 / sqrt(hidden).
local function add_weights (m, kind, inputs, suffix, o)
  local law = { dtype = o.dtype or nil, device = o.device or nil,
                generator = o.generator or nil }
  local wide, bound = kind.gates * m.hidden, 1 / sqrt(m.hidden)
  local function add (name, shape)
    m[name .. suffix] = fnn.Param(fnn.uniform(-bound, bound, shape, law))
  end
  add("weight_ih", { wide, inputs })
  add("weight_hh", { wide, m.hidden })
  if o.bias then
    add("bias_ih", { wide })
    add("bias_hh", { wide })
  end
end

-- x through one layer in one direction: its result and final states.
local function run (m, kind, x, suffix, options)
  options.nonlinearity = m.nonlinearity
  if not m.bias then
    return x[kind.op](x, m["weight_ih" .. suffix], m["weight_hh" .. suffix],
                      options)
  end
  return x[kind.op](x, m["weight_ih" .. suffix], m["weight_hh" .. suffix],
                    m["bias_ih" .. suffix], m["bias_hh" .. suffix], options)
end

-- "3, 4, { layers = 2 }": the options that are not the usual ones.
local function describe (m, names, usual)
  local list = {}
  for _, name in ipairs(names) do
    local v = m[name]
    if v ~= nil and v ~= usual[name] then
      if type(v) == "string" then v = "'" .. v .. "'" end
      list[#list + 1] = name .. " = " .. tostring(v)
    end
  end
  local sizes = m.inputs .. ", " .. m.hidden
  if #list == 0 then return sizes end
  return sizes .. ", { " .. concat(list, ", ") .. " }"
end

-- }======================================================

-- {======================================================
-- Arguments
-- =======================================================

local tensors = { tensor = true, param = true }

local function is_options (v)
  return type(v) == "table" and kind_of(v) == nil
end

local function shape_text (shape) return "(" .. concat(shape, ", ") .. ")" end

local function is_shape (x, want)
  local have = x:shape()
  for i = 1, #want do if have[i] ~= want[i] then return false end end
  return #have == #want
end

-- The states at the front of the arguments, by name, or none, and what follows
-- them.
local function states_of (m, kind, shape, ...)
  local args = pack(...)
  local count, states = #kind.states, {}
  if args[1] == nil or is_options(args[1]) then
    local at = 1
    while at <= count and args[at] == nil do at = at + 1 end
    if at <= count and not is_options(args[at]) then
      raise("%s: state %s without the state %s", m.__name, kind.states[at],
            kind.states[1])
    end
    return states, unpack(args, at, args.n)
  end
  for i, name in ipairs(kind.states) do
    local s = args[i]
    if not tensors[kind_of(s)] then
      raise("%s: the state %s: expected a tensor, got %s", m.__name, name,
            described(s))
    end
    if not is_shape(s, shape) then
      raise("%s: the state %s has shape %s (expected %s)", m.__name, name,
            shape_text(s:shape()), shape_text(shape))
    end
    states[name] = s
  end
  return states, unpack(args, count + 1, args.n)
end

local function check_input (m, x, most)
  if not tensors[kind_of(x)] then
    raise("%s: expected a tensor, got %s", m.__name, described(x))
  end
  local shape = x:shape()
  local n = #shape
  if n ~= most and n ~= most - 1 or shape[n] ~= m.inputs then
    raise("%s: x %s (expected (%s%d), or the same without the batch)",
          m.__name, shape_text(shape), most == 3 and "batch, steps, " or
          "batch, ", m.inputs)
  end
  return n == most
end

-- The option lengths, as ids on x's device.
local function lengths_of (m, x, options, ...)
  no_more(m.__name, 2 + #kinds[m.kind].states, ...)
  local o = module.options(m.__name, options, { lengths = false })
  local lengths = o.lengths
  if type(lengths) == "table" and kind_of(lengths) == nil then
    for i, n in ipairs(lengths) do
      if math_type(n) ~= "integer" then
        raise("%s: length %d: expected a whole number, got %s", m.__name, i,
              math_type(n) and tostring(n) or described(n))
      end
    end
    return fnn.tensor(lengths, { dtype = "i64", device = x:device() })
  end
  return lengths or nil
end

-- }======================================================

-- {======================================================
-- Layers
-- =======================================================

local names = { "layers", "bidirectional", "dropout", "bias", "nonlinearity" }
local usual = { layers = 1, bidirectional = false, dropout = 0, bias = true,
                nonlinearity = "tanh" }

-- The suffixes of the names of layer i's weights, counted from 0.
local function directions (m, i)
  local suffix = "_l" .. i
  return m.bidirectional and { suffix, suffix .. "_reverse" } or { suffix }
end

local function init (m, inputs, hidden, options, ...)
  local class = m.__name
  no_more(class, 3, ...)
  check_size(class, "inputs", inputs)
  check_size(class, "hidden", hidden)
  local known = { layers = 1, bidirectional = false, dropout = 0 }
  for k, v in pairs(shared) do known[k] = v end
  if m.kind == "RNN" then known.nonlinearity = "tanh" end
  local o = module.options(class, options, known)
  check_options(class, o)
  m.inputs, m.hidden, m.bias = inputs, hidden, o.bias
  m.layers, m.bidirectional, m.dropout = o.layers, o.bidirectional, o.dropout
  m.nonlinearity, m.generator = o.nonlinearity, o.generator or nil
  for i = 0, o.layers - 1 do
    for _, suffix in ipairs(directions(m, i)) do
      add_weights(m, kinds[m.kind], inputs, suffix, o)
    end
    inputs = (o.bidirectional and 2 or 1) * hidden
  end
end

-- Rows of the states, one a layer and direction, as one tensor.
local function gathered (list)
  return #list == 1 and list[1]:unsqueeze(1) or fnn.stack(list, 1)
end

-- x (batch, steps, inputs) through all layers; the final states, a list of each
-- kind.
local function through (m, kind, x, states, lengths)
  local finals, at = {}, 0
  for i in ipairs(kind.states) do finals[i] = {} end
  for layer = 0, m.layers - 1 do
    local results = {}
    if layer > 0 and m.training and m.dropout > 0 then
      x = x:dropout(m.dropout, { generator = m.generator })
    end
    for k, suffix in ipairs(directions(m, layer)) do
      at = at + 1
      local options = { reverse = k == 2, lengths = lengths }
      for _, name in ipairs(kind.states) do
        options[name] = states[name] and states[name]:select(1, at)
      end
      local all = pack(run(m, kind, x, suffix, options))
      results[k] = all[1]
      for i in ipairs(kind.states) do finals[i][at] = all[i + 1] end
    end
    x = #results == 1 and results[1] or fnn.cat(results, -1)
  end
  return x, finals
end

local function forward (m, x, ...)
  local kind = kinds[m.kind]
  local batched = check_input(m, x, 3)
  local rows = m.layers * (m.bidirectional and 2 or 1)
  local shape = batched and { rows, x:size(1), m.hidden } or
                { rows, m.hidden }
  local function rest (states, ...)
    return states, lengths_of(m, x, ...)
  end
  local states, lengths = rest(states_of(m, kind, shape, ...))
  if not batched then
    x = x:unsqueeze(1)
    for name, s in pairs(states) do states[name] = s:unsqueeze(2) end
  end
  local y, finals = through(m, kind, x, states, lengths)
  for i, list in ipairs(finals) do
    finals[i] = gathered(list)
    if not batched then finals[i] = finals[i]:squeeze(2) end
  end
  return batched and y or y:squeeze(1), unpack(finals)
end

for _, name in ipairs { "RNN", "LSTM", "GRU" } do
  local class = nn.module(name)
  class.kind, class.init, class.forward = name, init, forward
  function class:describe () return describe(self, names, usual) end
  nn[name] = class
end

-- }======================================================

-- {======================================================
-- Cells: one step
-- =======================================================

local function init_cell (m, inputs, hidden, options, ...)
  local class = m.__name
  no_more(class, 3, ...)
  check_size(class, "inputs", inputs)
  check_size(class, "hidden", hidden)
  local known = {}
  for k, v in pairs(shared) do known[k] = v end
  if m.kind == "RNN" then known.nonlinearity = "tanh" end
  local o = module.options(class, options, known)
  check_options(class, o)
  m.inputs, m.hidden, m.bias = inputs, hidden, o.bias
  m.nonlinearity = o.nonlinearity
  add_weights(m, kinds[m.kind], inputs, "", o)
end

local function forward_cell (m, x, ...)
  local kind = kinds[m.kind]
  local batched = check_input(m, x, 2)
  local shape = batched and { x:size(1), m.hidden } or { m.hidden }
  local function rest (states, ...)
    no_more(m.__name, 1 + #kind.states, ...)
    return states
  end
  local states = rest(states_of(m, kind, shape, ...))
  x = batched and x:unsqueeze(2) or x:unsqueeze(1):unsqueeze(1)
  if not batched then
    for name, s in pairs(states) do states[name] = s:unsqueeze(1) end
  end
  local all = pack(run(m, kind, x, "", states))
  for i = 2, all.n do
    if not batched then all[i] = all[i]:squeeze(1) end
  end
  return unpack(all, 2, all.n)
end

for _, kind in ipairs { "RNN", "LSTM", "GRU" } do
  local class = nn.module(kind .. "Cell")
  class.kind, class.init, class.forward = kind, init_cell, forward_cell
  function class:describe () return describe(self, names, usual) end
  nn[kind .. "Cell"] = class
end

-- }======================================================

return true
