local device = require "spec.support.device"
local fnn = require "fnn"
local nn = fnn.nn

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed) })
end

-- Results that share a graph, as one.
local function joined(...)
  local list = { ... }
  for i, s in ipairs(list) do list[i] = s:reshape(-1) end
  return fnn.cat(list, 1)
end

local gates = { rnn = 1, gru = 3, lstm = 4 }

describe("recurrent layers on cuda", function()
  if not device.there() then
    pending "there is no cuda device"
    return
  end

  for op, count in pairs(gates) do
    local two = op == "lstm"

    -- All that x, the weights and the states give.
    local function inputs(batch, steps, n, hidden)
      local wide = count * hidden
      return { numbers(1, batch, steps, n), numbers(2, wide, n) * 0.3,
               numbers(3, wide, hidden) * 0.3, numbers(4, wide),
               numbers(5, wide), numbers(6, batch, hidden),
               two and numbers(7, batch, hidden) or nil }
    end

    local function all(options)
      return function(x, w, u, b, d, h, c)
        local o = { h = h, c = c, reverse = options.reverse,
                    lengths = options.lengths,
                    nonlinearity = options.nonlinearity }
        return joined(x[op](x, w, u, b, d, o))
      end
    end

    it(op .. " has the CPU's values and gradients", function()
      for _, s in ipairs { { 1, 1, 1, 1 }, { 2, 5, 3, 4 }, { 33, 3, 5, 17 },
                           { 3, 4, 40, 65 } } do
        -- Rounded states go round and round.
        local most = { bf16 = 0.06 }
        device.all(op, all {}, inputs(table.unpack(s)), most)
        device.all(op, all { reverse = true }, inputs(table.unpack(s)), most)
      end
    end)

    it(op .. " goes to each length and starts back from there", function()
      for _, reverse in ipairs { false, true } do
        device.all(op, all { reverse = reverse, lengths = { 3, 0, 5, 1 } },
                   inputs(4, 5, 3, 6))
      end
    end)

    it(op .. " does without biases and states, and with no sequence", function()
      for _, batch in ipairs { 3, 0 } do
        device.all(op, function(x, w, u)
          return joined(x[op](x, w, u, { reverse = true }))
        end, { numbers(8, batch, 4, 3), numbers(9, count * 5, 3),
               numbers(10, count * 5, 5) })
      end
    end)

    it(op .. " is recorded once and replayed", function()
      local kind = op:upper()
      local model = nn[kind](3, 4, { layers = 2, bidirectional = true,
                                     device = "cuda",
                                     generator = fnn.Generator(11) })
      local lengths = fnn.tensor({ 5, 2 }, { dtype = "i64", device = "cuda" })
      local x = numbers(12, 2, 5, 3):to "cuda"
      local function once(v)
        model:zero_grad()
        local y, h = model(v, { lengths = lengths })
        local loss = y:square():sum() + h:sum()
        loss:backward()
        local list = { loss }
        for i, p in ipairs(model:parameters()) do list[i + 1] = p:grad() end
        return table.unpack(list)
      end
      local step = fnn.graph_step(once, { device = "cuda", warmup = 1 })
      for k = 1, 5 do
        local v = x * k
        local want, got = { once(v) }, { step(v) }
        assert.equal(#want, #got)
        for i, w in ipairs(want) do
          local scale = w:abs():max():item() + 1
          assert.near(0, (w - got[i]):abs():max():item(), 1e-5 * scale)
        end
      end
    end)
  end

  it("rnn has relu", function()
    device.all("rnn", function(x, w, u)
      return joined(x:rnn(w, u, { nonlinearity = "relu" }))
    end, { numbers(13, 3, 4, 3), numbers(14, 5, 3), numbers(15, 5, 5) * 0.3 })
  end)

  it("finds lengths out of range later", function()
    local x = numbers(16, 2, 4, 3):to "cuda"
    local w, u = numbers(17, 8, 3):to "cuda", numbers(18, 8, 2):to "cuda"
    local y = x:lstm(w, u, { lengths = { 2, 5 } })
    assert.error_matches(function() y:to "cpu" end,
                         "lstm.* out of range for 5 lengths")
  end)

  it("takes 16-bit products under autocast", function()
    local p = fnn.Param(numbers(19, 16, 3):to "cuda")
    local x, u = numbers(20, 2, 6, 3):to "cuda", numbers(21, 16, 4):to "cuda"
    local want = x:lstm(p, u)
    local y = fnn.autocast(function() return (x:lstm(p, u)) end,
                           { dtype = "bf16" })
    assert.equal("bf16", y:dtype())
    assert.near(0, (y:to("f32") - want):abs():max():item(), 0.05)
    y:to("f32"):sum():backward()
    assert.equal("f32", p:grad():dtype())
  end)
end)
