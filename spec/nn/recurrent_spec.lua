local fnn = require "fnn"
local nn = fnn.nn

-- Values and gradients beside PyTorch's are in spec/fixtures/parity.

local function numbers(seed, ...)
  return fnn.randn({ ... }, { generator = fnn.Generator(seed),
                              dtype = "f64" })
end

local kinds = { "RNN", "LSTM", "GRU" }

-- The largest difference of two tensors.
local function apart(a, b)
  assert.same(a:shape(), b:shape())
  return (a - b):abs():max():item()
end

local function sigmoid(x) return (-x):exp():add(1):pow(-1) end

-- One step by definition: gates of x and h, in f64.
local steps = {
  RNN = function(m, x, h)
    return (x:linear(m.weight_ih_l0, m.bias_ih_l0) +
            h:linear(m.weight_hh_l0, m.bias_hh_l0)):tanh()
  end,
  LSTM = function(m, x, h, c)
    local a = x:linear(m.weight_ih_l0, m.bias_ih_l0) +
              h:linear(m.weight_hh_l0, m.bias_hh_l0)
    local i, f, g, o = table.unpack(a:chunk(4, -1))
    c = sigmoid(f) * c + sigmoid(i) * g:tanh()
    return sigmoid(o) * c:tanh(), c
  end,
  GRU = function(m, x, h)
    local a = x:linear(m.weight_ih_l0, m.bias_ih_l0):chunk(3, -1)
    local u = h:linear(m.weight_hh_l0, m.bias_hh_l0):chunk(3, -1)
    local r, z = sigmoid(a[1] + u[1]), sigmoid(a[2] + u[2])
    local n = (a[3] + r * u[3]):tanh()
    return (1 - z) * n + z * h
  end,
}

for _, kind in ipairs(kinds) do
  local gates = ({ RNN = 1, LSTM = 4, GRU = 3 })[kind]
  local two = kind == "LSTM"

  local function make(inputs, hidden, o)
    o = o or {}
    o.dtype, o.generator = o.dtype or "f64", fnn.Generator(3)
    return nn[kind](inputs, hidden, o)
  end

  describe("nn." .. kind, function()
    it("is its formula, step by step", function()
      -- 33 and 40: more than a vector and no multiple of it; 70: more than
      -- one tile's rows
      for _, size in ipairs { { 2, 5, 3, 4 }, { 70, 3, 5, 33 },
                              { 3, 2, 7, 40 } } do
        local batch, length, inputs, hidden = table.unpack(size)
        local m, x = make(inputs, hidden), numbers(1, batch, length, inputs)
        local h, c = numbers(2, batch, hidden), numbers(3, batch, hidden)
        local y, last, inner
        if two then y, last, inner = m(x, h:unsqueeze(1), c:unsqueeze(1))
        else y, last = m(x, h:unsqueeze(1)) end
        for t = 1, length do
          h, c = steps[kind](m, x:select(2, t), h, c)
          assert.is_true(apart(h, y:select(2, t)) < 1e-13)
        end
        assert.is_true(apart(h, last:squeeze(1)) < 1e-13)
        if two then assert.is_true(apart(c, inner:squeeze(1)) < 1e-13) end
      end
    end)

    it("has weights as PyTorch names and draws them", function()
      local m = make(3, 5, { layers = 2, bidirectional = true })
      local names = {}
      for name, p in m:named_parameters() do
        local suffix = name:match "_l.*$"
        local first = suffix:find "^_l0"
        local columns = name:find "^weight_ih" and (first and 3 or 10) or 5
        names[#names + 1] = name
        assert.same(name:find "^weight" and { gates * 5, columns } or
                    { gates * 5 }, p:shape())
        assert.is_true(p:abs():max():item() <= 1 / math.sqrt(5))
      end
      assert.equal("weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 " ..
                   "weight_ih_l0_reverse weight_hh_l0_reverse " ..
                   "bias_ih_l0_reverse bias_hh_l0_reverse " ..
                   "weight_ih_l1 weight_hh_l1 bias_ih_l1 bias_hh_l1 " ..
                   "weight_ih_l1_reverse weight_hh_l1_reverse " ..
                   "bias_ih_l1_reverse bias_hh_l1_reverse",
                   table.concat(names, " "))
      local large = nn[kind](3, 100)
      assert.near(0.1 / math.sqrt(3), large.weight_hh_l0:std():item(), 2e-3)
    end)

    it("gives each sequence what it gives it alone", function()
      local m = make(3, 4, { layers = 2, bidirectional = true })
      local x, lengths = numbers(4, 4, 6, 3), { 6, 1, 0, 4 }
      local h, c = numbers(5, 4, 4, 4), two and numbers(6, 4, 4, 4) or nil
      local args = two and { h, c } or { h }
      args[#args + 1] = { lengths = lengths }
      local all = { m(x, table.unpack(args)) }
      for b, n in ipairs(lengths) do
        local rest = all[1]:select(1, b):narrow(1, n + 1, 6 - n)
        assert.equal(0, rest:abs():sum():item())
        if n > 0 then
          local own = { m(x:narrow(1, b, 1):narrow(2, 1, n),
                          h:narrow(2, b, 1), two and c:narrow(2, b, 1) or nil) }
          assert.is_true(apart(own[1],
                               all[1]:narrow(1, b, 1):narrow(2, 1, n)) < 1e-13)
          for i = 2, #own do
            assert.is_true(apart(own[i], all[i]:narrow(2, b, 1)) < 1e-13)
          end
        else
          assert.equal(0, apart(h:select(2, b), all[2]:select(2, b)))
        end
      end
    end)

    it("sends no gradient beyond a length", function()
      local m = make(3, 4, { bidirectional = true })
      local x = fnn.Param(numbers(7, 3, 5, 3))
      local y = m(x, { lengths = fnn.tensor({ 2, 5, 0 }, { dtype = "i32" }) })
      y:sum():backward()
      local g = x:grad():abs():sum(3):totable()
      for b, n in ipairs { 2, 5, 0 } do
        for t = 1, 5 do assert.equal(t <= n, g[b][t] > 0) end
      end
    end)

    it("takes its results as states of the next steps", function()
      local m, x = make(3, 4, { layers = 2 }), numbers(8, 2, 9, 3)
      local y = m(x)
      local s = { m(x:narrow(2, 1, 4)) }
      local rest = m(x:narrow(2, 5, 5), s[2], s[3])
      assert.is_true(apart(rest, y:narrow(2, 5, 5)) < 1e-13)
    end)

    it("does without a batch", function()
      local m, x = make(3, 4, { layers = 2 }), numbers(9, 5, 3)
      local all, alone = { m(x:unsqueeze(1)) }, { m(x) }
      assert.same({ 5, 4 }, alone[1]:shape())
      assert.same({ 2, 4 }, alone[2]:shape())
      assert.equal(0, apart(all[1]:squeeze(1), alone[1]))
      for i = 2, #all do assert.equal(0, apart(all[i]:squeeze(2), alone[i])) end
      assert.equal(0, apart(m(x, alone[2], alone[3]),
                            m(x:unsqueeze(1), all[2], all[3]):squeeze(1)))
    end)

    it("drops out between layers, in training alone", function()
      local m = make(3, 8, { layers = 2, dropout = 0.5 })
      local x = numbers(10, 2, 4, 3)
      assert.is_true(apart(m(x), m(x)) > 0)
      m:eval()
      assert.equal(0, apart(m(x), m(x)))
      local single = make(3, 8, { dropout = 0.5 })
      assert.equal(0, apart(single(x), single(x)))
    end)

    it("has the same bits with any number of threads", function()
      local width = fnn.threads()
      local results = {}
      for _, n in ipairs { 1, 2, 3, 7 } do
        fnn.threads(n)
        for i, batch in ipairs { 1, 2, 37 } do
          local m = make(70, 90, { dtype = "f32" })
          local x = fnn.Param(numbers(11, batch, 6, 70):to("f32"))
          -- large enough that threads share a step
          local wide = nn[kind](4, 700, { dtype = "f32",
                                          generator = fnn.Generator(5) })
          local y, z = m(x), wide(x:narrow(3, 1, 4))
          local loss = y:sum() + z:sum()
          loss:backward()
          local bits = { y, z, x:grad(), m.weight_hh_l0:grad(),
                         wide.weight_hh_l0:grad() }
          results[i] = results[i] or bits
          for k, v in ipairs(bits) do
            assert.is_true(v:eq(results[i][k]):all():item())
          end
        end
      end
      fnn.threads(width)
    end)

    it("loses nothing over 10,000 steps", function()
      local m = make(2, 4, { dtype = "f32" })
      local opt = fnn.optim.Adam(m:parameters(), { lr = 0.01 })
      local x = fnn.randn({ 1, 10000, 2 }, { generator = fnn.Generator(12) })
      local want, first, last = x:cumsum(2):tanh():mean(3), nil, nil
      collectgarbage()
      local before = fnn.memory().nodes
      for _ = 1, 4 do
        opt:zero_grad()
        local loss = nn.mse(m(x):mean(3), want)
        loss:backward()
        opt:step()
        first, last = first or loss:item(), loss:item()
        loss:release()
      end
      assert.is_true(last < first)
      assert.is_true(m.weight_hh_l0:grad():isfinite():all():item())
      collectgarbage()
      assert.equal(before, fnn.memory().nodes)
    end)

    it("leaves nothing behind when it raises", function()
      local m, x = make(3, 4), numbers(13, 2, 5, 3)
      local function wrong()
        return pcall(m, x, { lengths = { 1, 6 } })
      end
      wrong()
      collectgarbage()
      local before = fnn.memory().objects
      assert.is_false(wrong())
      collectgarbage()
      assert.equal(before, fnn.memory().objects)
    end)

    it("says what does not fit", function()
      local m, x = make(3, 4, { layers = 2 }), numbers(14, 2, 5, 3)
      local h = numbers(15, 2, 2, 4)
      local function says(text, ...)
        local ok, message = pcall(m, ...)
        assert.is_false(ok)
        assert.truthy(message:find(text, 1, true), message)
      end
      says(kind .. ": x (2, 5, 2) (expected (batch, steps, 3)",
           x:narrow(3, 1, 2))
      says(kind .. ": x (3) (expected (batch, steps, 3)", x:select(1, 1)
           :select(1, 1))
      says(kind .. ": expected a tensor, got a number", 3)
      says(kind .. ": the state h has shape (1, 2, 4) (expected (2, 2, 4))",
           x, h:narrow(1, 1, 1), two and h or nil)
      says(kind .. ": the state h: expected a tensor, got a number", x, 7)
      if two then
        says("LSTM: the state c: expected a tensor, got nil", x, h)
        says("LSTM: state c without the state h", x, nil, h)
      end
      says("length 6 of sequence 2 (expected 0 to 5, the steps of x (2, 5, 3)",
           x, { lengths = { 5, 6 } })
      says("length -1 of sequence 1", x, { lengths = { -1, 6 } })
      says("lengths (3) for x (2, 5, 3) (expected (2))", x,
           { lengths = { 1, 2, 3 } })
      says(kind .. ": length 2: expected a whole number, got 1.5", x,
           { lengths = { 1, 1.5 } })
      says("unknown option 'length' (did you mean 'lengths'?)", x,
           { length = { 1, 2 } })
      says("expected (batch, steps, inputs), of 1 step", x:narrow(2, 1, 0))
      for text, f in pairs {
        ["inputs: expected a whole number of at least 1, got 0"] =
          function() return nn[kind](0, 4) end,
        ["hidden: expected a whole number of at least 1, got nil"] =
          function() return nn[kind](3) end,
        ["option 'layers': expected a whole number of at least 1, got 0"] =
          function() return nn[kind](3, 4, { layers = 0 }) end,
        ["option 'dropout': expected a probability from 0 to 1, got 1.5"] =
          function() return nn[kind](3, 4, { dropout = 1.5 }) end,
        ["unknown option 'layer' (did you mean 'layers'?)"] =
          function() return nn[kind](3, 4, { layer = 2 }) end,
        ["option 'bidirectional': expected true or false, got a number"] =
          function() return nn[kind](3, 4, { bidirectional = 2 }) end,
      } do
        local ok, message = pcall(f)
        assert.is_false(ok)
        assert.truthy(message:find(text, 1, true), message)
      end
    end)

    it("is printed, summed up, saved and loaded", function()
      local m = make(3, 4, { layers = 2, bidirectional = true, bias = false })
      assert.truthy(tostring(m):find(
        kind .. "(3, 4, { layers = 2, bidirectional = true, bias = false })",
        1, true))
      assert.truthy(tostring(nn.Sequential(make(3, 4))):find(
        "0: " .. kind .. "(3, 4)", 1, true))
      assert.equal("(2, 5, 8), (4, 2, 4)" .. (two and ", (4, 2, 4)" or ""),
                   fnn.summary(m, numbers(16, 2, 5, 3))[1].output)
      local path = os.tmpname()
      local other = nn[kind](3, 4, { layers = 2, bidirectional = true,
                                     bias = false, dtype = "f64" })
      m:save(path)
      other:load(path)
      os.remove(path)
      local x = numbers(17, 2, 5, 3)
      assert.equal(0, apart(m(x), other(x)))
    end)
  end)

  describe("nn." .. kind .. "Cell", function()
    it("is one step of the layer", function()
      local cell = nn[kind .. "Cell"](3, 4, { dtype = "f64" })
      local m, x = make(3, 4), numbers(18, 2, 3)
      for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih",
                              "bias_hh" } do
        m[name .. "_l0"]:set(cell[name])
      end
      local h, c = numbers(19, 2, 4), two and numbers(20, 2, 4) or nil
      local function run(...)
        if two then return cell(...) end
        return cell((...), (select(2, ...)))
      end
      local got = { run(x, h, c) }
      local want = { m(x:unsqueeze(2), h:unsqueeze(1),
                       c and c:unsqueeze(1)) }
      assert.equal(two and 2 or 1, #got)
      for i, s in ipairs(got) do
        assert.equal(0, apart(s, want[i + 1]:squeeze(1)))
      end
      local alone = run(x:select(1, 1), h:select(1, 1), c and c:select(1, 1))
      assert.equal(0, apart(alone, got[1]:select(1, 1)))
      assert.truthy(tostring(cell):find(kind .. "Cell(3, 4)", 1, true))
      assert.error_matches(function() cell(x:unsqueeze(1)) end,
                           kind .. "Cell: x %(1, 2, 3%) %(expected %(batch, 3")
    end)
  end)
end

describe("x:lstm", function()
  local x, w, u = numbers(21, 2, 5, 3), numbers(22, 16, 3), numbers(23, 16, 4)
  local b, h = numbers(24, 16), numbers(25, 2, 4)

  it("says what does not fit", function()
    for text, f in pairs {
      ["lstm: x (2, 5) (expected (batch, steps, inputs)"] =
        function() return x:select(3, 1):lstm(w, u) end,
      ["lstm: w_hh (12, 4) (expected (4 hidden, hidden), for 4 gates)"] =
        function() return x:lstm(w, u:narrow(1, 1, 12)) end,
      ["lstm: w_ih (12, 3) for x (2, 5, 3) and w_hh (16, 4) " ..
       "(expected (16, 3))"] =
        function() return x:lstm(w:narrow(1, 1, 12), u) end,
      ["lstm: b_hh (15) for x (2, 5, 3) and w_hh (16, 4) (expected (16))"] =
        function() return x:lstm(w, u, b, b:narrow(1, 1, 15)) end,
      ["lstm: the state h (1, 4) for x (2, 5, 3) and w_hh (16, 4) " ..
       "(expected (2, 4))"] =
        function() return x:lstm(w, u, { h = h:narrow(1, 1, 1), c = h }) end,
      ["lstm: one state of two (expected h and c)"] =
        function() return x:lstm(w, u, { h = h }) end,
      ["lstm: one bias of two (expected both, or none)"] =
        function() return x:lstm(w, u, b) end,
      ["unknown option 'nonlinearity'"] =
        function() return x:lstm(w, u, { nonlinearity = "relu" }) end,
      ["option 'lengths': expected a table of integers or a tensor"] =
        function() return x:lstm(w, u, { lengths = 3 }) end,
    } do
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
    end
    assert.error_matches(function()
      x:rnn(w:narrow(1, 1, 4), u:narrow(1, 1, 4), { nonlinearity = "gelu" })
    end, "option 'nonlinearity': expected 'tanh' or 'relu', got 'gelu'")
    assert.error_matches(function() x:gru(w, u) end,
                         "gru: w_hh %(16, 4%) %(expected %(3 hidden, hidden")
  end)

  it("takes f16 on the CPU as f32, and gives autocast its numbers", function()
    local want = x:to("f16"):to("f32"):lstm(w:to("f16"):to("f32"),
                                            u:to("f16"):to("f32"))
    local y = x:to("f16"):lstm(w:to("f16"), u:to("f16"))
    assert.equal("f32", y:dtype())
    assert.equal(0, apart(want, y))
    local p = fnn.Param(w:to("f32"))
    local z = fnn.autocast(function()
      return (x:to("f32"):lstm(p, u:to("f32")))
    end, { dtype = "f16" })
    assert.equal(0, apart(want, z))
    z:sum():backward()
    assert.equal("f32", p:grad():dtype())
  end)
end)
