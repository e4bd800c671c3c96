-- recurrent.lua - gradient checks of recurrent layers: of the states of all
-- steps and the final ones, as one vector.

local cases = {}

local fnn = require "fnn"

local function joined(...)
  local list = { ... }
  for i, s in ipairs(list) do list[i] = s:reshape(-1) end
  return fnn.cat(list, 1)
end

local function add(op, options, inputs, empty, f)
  cases[#cases + 1] = { op = op, options = options, inputs = inputs, f = f,
                        empty = empty }
end

local gates = { rnn = 1, gru = 3, lstm = 4 }

for _, op in ipairs { "rnn", "gru", "lstm" } do
  local wide = 2 * gates[op]
  local two = op == "lstm"
  local function shapes(batch, state)
    local list = { { batch, 4, 3 }, { wide, 3 }, { wide, 2 } }
    if state then
      list[4], list[5] = { wide }, { wide }
      list[6] = { batch, 2 }
      list[7] = two and { batch, 2 } or nil
    end
    return list
  end
  local function case(options, state, f)
    add(op, options, shapes(2, state), shapes(0, state), f)
  end
  case("weights alone", false, function(x, w, u)
    return joined(x[op](x, w, u))
  end)
  case("biases and states", true, function(x, w, u, b, d, h, c)
    return joined(x[op](x, w, u, b, d, { h = h, c = c }))
  end)
  case("reverse", true, function(x, w, u, b, d, h, c)
    return joined(x[op](x, w, u, b, d, { h = h, c = c, reverse = true }))
  end)
  for _, reverse in ipairs { false, true } do
    case("lengths" .. (reverse and ", reverse" or ""), true,
         function(x, w, u, b, d, h, c)
      local lengths = x:size(1) == 0 and {} or { 2, 4 }
      return joined(x[op](x, w, u, b, d, { h = h, c = c, reverse = reverse,
                                           lengths = lengths }))
    end)
  end
end
add("rnn", "relu", { { 2, 4, 3 }, { 2, 3 }, { 2, 2 } },
    { { 0, 4, 3 }, { 2, 3 }, { 2, 2 } }, function(x, w, u)
  return joined(x:rnn(w, u, { nonlinearity = "relu" }))
end)

return cases
