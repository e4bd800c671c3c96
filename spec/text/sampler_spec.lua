-- sampler_spec.lua - fnn.text.Sampler: hand cases, distributions and ids beside
-- spec/support/sampling.lua, and errors.

local fnn = require "fnn"
local sampling = require "spec.support.sampling"
local Sampler = fnn.text.Sampler
local inf, nan = math.huge, 0 / 0

local function draws(sampler, x, n, history)
  local found = {}
  for i = 1, n do found[i] = sampler(x, history) end
  return found
end

local function all(id, n)
  local list = {}
  for i = 1, n do list[i] = id end
  return list
end

describe("Sampler", function()
  it("chooses the largest at temperature 0, of equal ones the lowest",
     function()
    local s = Sampler { temperature = 0 }
    assert.equal(2, s(fnn.tensor { 0.5, -1, 3, 3, 2 }))
    assert.equal(0, s(fnn.tensor { -0.0, 0.0 }))
    assert.equal(1, s(fnn.tensor { -inf, -5, -inf }))
    assert.equal(70, s(fnn.arange(71)))
    assert.equal(0, s(fnn.zeros(1000)))
  end)

  it("tells f64 logits apart that f32 does not", function()
    local x = fnn.tensor({ 1, 1 + 1e-12, 1 }, { dtype = "f64" })
    assert.equal(1, Sampler { temperature = 0 } (x))
    assert.equal(1, Sampler { top_k = 1 } (x))
    assert.equal(1, Sampler { top_p = 1e-9 } (x))
  end)

  it("is greedy with top_k 1 and with a tiny top_p, at any temperature",
     function()
    local x = fnn.tensor { 1, 1.5, 1.5, 0 }
    for _, o in ipairs { { top_k = 1, temperature = 50 },
                         { top_p = 1e-6, temperature = 50 },
                         { min_p = 1, temperature = 0.001, top_k = 2,
                           top_p = 0.4 } } do
      assert.same(all(1, 20), draws(Sampler(o), x, 20))
    end
  end)

  it("takes the fewest whose probability is p", function()
    -- 4 equal ones: half of the probability is the first two
    local seen = {}
    local s = Sampler { top_p = 0.5, seed = 1 }
    for _, id in ipairs(draws(s, fnn.zeros(4), 200)) do seen[id] = true end
    assert.same({ [0] = true, [1] = true }, seen)
    -- after top_k: of the 2 left each has a half
    s = Sampler { top_k = 2, top_p = 0.5, seed = 1 }
    assert.same(all(0, 50), draws(s, fnn.zeros(4), 50))
  end)

  it("takes the lowest ids among equal logits at the k-th place", function()
    local seen = {}
    local s = Sampler { top_k = 3, seed = 1 }
    local x = fnn.tensor { 0, 1, 0, 0, 2, 0 }
    for _, id in ipairs(draws(s, x, 300)) do seen[id] = true end
    assert.same({ [0] = true, [1] = true, [4] = true }, seen)
  end)

  it("penalizes an id of the history once", function()
    local x = fnn.tensor { 1.0, 1.2 }
    local function choice(o, history)
      o.temperature = 0
      return Sampler(o)(x, history)
    end
    assert.equal(1, choice({ repetition_penalty = 2 }))
    assert.equal(0, choice({ repetition_penalty = 2 }, { 1 }))
    -- 1.2 / 1.1 is above 1.0, 1.2 / 1.1^3 is not
    assert.equal(1, choice({ repetition_penalty = 1.1 }, { 1, 1, 1 }))
    -- a negative logit is multiplied
    x = fnn.tensor { -1.0, -0.8 }
    assert.equal(0, choice({ repetition_penalty = 2 }, { 1 }))
    assert.equal(1, choice({ repetition_penalty = 1.2 }, { 1, 1, 1 }))
  end)

  it("counts what frequency_penalty takes off, not presence_penalty",
     function()
    local x = fnn.tensor { 1.0, 1.5 }
    local function choice(o, history)
      o.temperature = 0
      return Sampler(o)(x, history)
    end
    assert.equal(1, choice({ frequency_penalty = 0.2 }, { 1, 1 }))
    assert.equal(0, choice({ frequency_penalty = 0.2 }, { 1, 0, 1, 1, 1 }))
    assert.equal(1, choice({ presence_penalty = 0.2 }, { 1, 1, 1, 1 }))
    assert.equal(0, choice({ presence_penalty = 0.6 }, { 1 }))
    assert.equal(0, choice({ frequency_penalty = -1 }, { 0 }))
  end)

  it("leaves the logits as they were", function()
    local x = fnn.tensor { 1.0, 2.0 }
    Sampler { repetition_penalty = 2, min_p = 0.9, top_p = 0.5 } (x, { 0, 1 })
    assert.same({ 1, 2 }, x:totable())
  end)

  it("gives the same ids for the same seed", function()
    local x = fnn.randn(50)
    local o = { seed = 7, temperature = 1.3, top_p = 0.95 }
    local first = draws(Sampler(o), x, 10)
    assert.same(first, draws(Sampler(o), x, 10))
    o.seed = 8
    assert.not_same(first, draws(Sampler(o), x, 10))
    local g = fnn.Generator(7)
    assert.same(first, draws(Sampler { generator = g, temperature = 1.3,
                                       top_p = 0.95 }, x, 10))
    fnn.manual_seed(7)
    assert.same(first, draws(Sampler { temperature = 1.3, top_p = 0.95 }, x,
                             10))
  end)

  it("draws nothing where it is greedy", function()
    local g = fnn.Generator(1)
    draws(Sampler { temperature = 0, generator = g }, fnn.zeros(3), 5)
    assert.equal(fnn.rand(1, { generator = fnn.Generator(1) }):item(),
                 fnn.rand(1, { generator = g }):item())
  end)

  it("works with a generator of kind torch", function()
    local function ids(seed)
      local g = fnn.Generator(seed, { kind = "torch" })
      return draws(Sampler { generator = g }, fnn.zeros(100), 10)
    end
    assert.same(ids(1), ids(1))
    assert.not_same(ids(1), ids(2))
  end)
end)

describe("A row of a batch", function()
  it("is chosen from as alone", function()
    local x = fnn.randn(5, 33)
    local o = { seed = 3, temperature = 0.8, top_k = 9, top_p = 0.9 }
    local ids, s, alone = Sampler(o)(x), Sampler(o), {}
    for r = 1, 5 do alone[r] = s(x[r]) end
    assert.equal("i64", ids:dtype())
    assert.same(alone, ids:totable())
  end)

  it("has its own history: lists, tensors of i64 and i32", function()
    local x = fnn.tensor { { 1.0, 1.2, 0 }, { 1.0, 1.2, 0 }, { 1.0, 1.2, 1.1 } }
    local s = Sampler { temperature = 0, repetition_penalty = 2 }
    assert.same({ 0, 1, 2 }, s(x, { { 1 }, {}, { 0, 1, 1 } }):totable())
    for _, dtype in ipairs { "i64", "i32" } do
      local h = fnn.tensor({ { 1, 1 }, { 0, 0 }, { 0, 1 } }, { dtype = dtype })
      assert.same({ 0, 1, 2 }, s(x, h):totable())
      assert.equal(2, s(x[3], h[3]))
    end
    local none = fnn.zeros(3, 0, { dtype = "i64" })
    assert.same({ 1, 1, 1 }, s(x, none):totable())
  end)

  it("may be of no batch at all", function()
    assert.same({ 0 }, Sampler()(fnn.zeros(0, 4)):shape())
  end)

  it("may have any strides and any float dtype", function()
    local x = fnn.tensor { { 0, 5 }, { 7, 1 }, { 2, 9 } }
    local s = Sampler { temperature = 0 }
    assert.same({ 1, 2 }, s(x:transpose(1, 2)):totable())
    for _, dtype in ipairs { "f16", "bf16", "f64" } do
      assert.same({ 1, 0, 1 }, s(x:to(dtype)):totable())
    end
  end)
end)

-- ---------------------------------------------------------------------------
-- Beside the slow reference
-- ---------------------------------------------------------------------------

-- With ties: multiples of 1/4, among which several are equal.
local tied = { 1, 0.25, 2, -1, 2, 0.25, 0.25, -3, 1, 1.5, 0, 0.25, -0.5, 1,
               -inf, 0.75, 2, 0.25, -1, 0.5 }
local past = { 2, 4, 4, 9, 7, 13, 13, 13, 14 }

local cases = {
  temperature = { temperature = 0.7 },
  top_k = { top_k = 7 },
  top_p = { top_p = 0.8, temperature = 1.5 },
  min_p = { min_p = 0.2 },
  penalties = { repetition_penalty = 2, frequency_penalty = 0.25,
                presence_penalty = 0.5 },
  everything = { temperature = 1.25, top_k = 12, top_p = 0.9, min_p = 0.15,
                 repetition_penalty = 2, frequency_penalty = 0.25,
                 presence_penalty = 0.5 },
}

describe("100,000 draws", function()
  local n = 100000
  for name, o in pairs(cases) do
    it("have the distribution of the sorted reference: " .. name, function()
      local p = sampling.probabilities(tied, o, past)
      local x = fnn.tensor(tied):unsqueeze(1):expand(n, #tied)
      local h = fnn.tensor(past, { dtype = "i64" }):unsqueeze(1)
      local given = { seed = 11 }
      for key, v in pairs(o) do given[key] = v end
      local counts = {}
      for _, id in ipairs(Sampler(given)(x, h:expand(n, #past)):totable()) do
        counts[id] = (counts[id] or 0) + 1
      end
      local statistic, free = sampling.chi_squared(counts, p, n)
      assert.is_true(free >= 1)
      assert.is_true(statistic < sampling.critical(free),
                     ("%g, %d degrees of freedom"):format(statistic, free))
    end)
  end

  it("would not pass for another distribution", function()
    local p = sampling.probabilities(tied, { temperature = 0.72 })
    local x = fnn.tensor(tied):unsqueeze(1):expand(n, #tied)
    local counts = {}
    local s = Sampler { seed = 11, temperature = 0.7 }
    for _, id in ipairs(s(x):totable()) do
      counts[id] = (counts[id] or 0) + 1
    end
    local statistic, free = sampling.chi_squared(counts, p, n)
    assert.is_true(statistic > sampling.critical(free))
  end)
end)

-- A uniform number of f64 is made of the same bits of the generator as a draw,
-- so that the id is known.
describe("The id", function()
  local function options_of(n)
    local function pick(list) return list[math.random(#list)] end
    return {
      temperature = pick { 0.3, 1, 1, 2.5 },
      top_k = pick { false, false, 2, 40, n // 3 + 1, n, 10 * n } or nil,
      top_p = pick { false, false, 0.05, 0.5, 0.9, 0.999, 1 } or nil,
      min_p = pick { false, false, 0.01, 0.3, 1 } or nil,
      repetition_penalty = pick { false, 2 } or nil,
      frequency_penalty = pick { false, 0.5 } or nil,
      presence_penalty = pick { false, 0.25 } or nil,
    }
  end

  -- Multiples of 1/step: a small one has many ties, and f16 holds it.
  local function logits_of(n, step, spread)
    local list = {}
    for i = 1, n do
      local v = math.floor(step * spread * (math.random() + math.random() - 1))
      list[i] = math.random(40) == 1 and -inf or v / step
    end
    list[1] = 0
    return list
  end

  for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
    it("is the one of the sorted reference: " .. dtype, function()
      math.randomseed(5)
      for round = 1, 60 do
        local n = ({ 1, 2, 63, 64, 65, 130, 300, 700, 2000 })[round % 9 + 1]
        local exact = dtype == "f32" or dtype == "f64"
        local logits = logits_of(n, exact and round % 2 == 0 and 4096 or 4,
                                 ({ 2, 8 })[round % 2 + 1])
        local history, o = {}, options_of(n)
        for i = 1, round % 20 do history[i] = math.random(0, n - 1) end
        local p = sampling.probabilities(logits, o, history)
        local g = fnn.Generator(round)
        o.seed = round
        local s, x = Sampler(o), fnn.tensor(logits, { dtype = dtype })
        for _ = 1, 4 do
          local u = fnn.rand(1, { dtype = "f64", generator = g }):item()
          local expected = sampling.id_at(p, u)
          assert.equal(expected, s(x, history),
                       ("round %d, n %d, %s"):format(round, n, tostring(s)))
        end
      end
    end)
  end

  it("is that one in a large vocabulary, whatever the order of logits",
     function()
    local n = 20000
    local orders = {
      function(i) return i / 4096 end,
      function(i) return -i / 4096 end,
      function(i) return i % 7 / 4 end,
      function() return 0.5 end,
    }
    for k, f in ipairs(orders) do
      local logits = {}
      for i = 1, n do logits[i] = f(i) end
      for _, o in ipairs { { top_k = 50 }, { top_p = 0.9 },
                           { top_k = 5000, top_p = 0.5, min_p = 0.25 } } do
        local p = sampling.probabilities(logits, o)
        local g = fnn.Generator(k)
        o.seed = k
        local s, x = Sampler(o), fnn.tensor(logits)
        for _ = 1, 3 do
          local u = fnn.rand(1, { dtype = "f64", generator = g }):item()
          assert.equal(sampling.id_at(p, u), s(x), tostring(s))
        end
      end
    end
  end)
end)

-- ---------------------------------------------------------------------------
-- The callback
-- ---------------------------------------------------------------------------

describe("The callback", function()
  it("gets logits of its own and the history, and may edit them", function()
    local x, seen = fnn.tensor { 1.0, 2.0, 0.5 }, nil
    local s = Sampler { temperature = 0, callback = function(logits, ids)
      seen = ids
      logits[2] = -inf  -- place 2 is id 1
    end }
    local history = { 0, 1 }
    assert.equal(0, s(x, history))
    assert.equal(history, seen)
    assert.same({ 1, 2, 0.5 }, x:totable())
    assert.equal(0, s(x:to("f16")))
    s = Sampler { temperature = 0, callback = function(logits)
      logits:slice(2, 1, 1):fill_(-inf)
    end }
    assert.same({ 1, 1 }, s(fnn.tensor { { 3, 1 }, { 3, 2 } }):totable())
  end)

  it("may return others, of the same shape", function()
    local x = fnn.tensor { 1.0, 2.0 }
    local s = Sampler { temperature = 0, callback = function(v) return -v end }
    assert.equal(0, s(x))
    s = Sampler { callback = function() return fnn.zeros(3) end }
    assert.error_matches(function() s(x) end,
      "the callback returned logits of shape %(3%) %(expected %(2%)%)")
    s = Sampler { callback = function() return 5 end }
    assert.error_matches(function() s(x) end,
      "the callback returned a number %(expected logits, or nothing%)")
  end)

  it("comes before the penalties", function()
    local s = Sampler { temperature = 0, repetition_penalty = 4,
                        callback = function(v) v[1] = 3 end }
    assert.equal(1, s(fnn.tensor { 0.0, 1.0 }, { 0 }))
  end)

  it("may raise, and yield", function()
    local s = Sampler { callback = function() error "mine" end }
    assert.error_matches(function() s(fnn.zeros(2)) end, "mine")
    s = Sampler { temperature = 0, callback = function(v)
      coroutine.yield "between"
      return -v
    end }
    local co = coroutine.wrap(function() return s(fnn.tensor { 1.0, 2.0 }) end)
    assert.equal("between", co())
    assert.equal(0, co())
  end)

  it("may be anything that can be called", function()
    local f = setmetatable({}, { __call = function(_, v) return -v end })
    local s = Sampler { temperature = 0, callback = f }
    assert.equal(0, s(fnn.tensor { 1.0, 2.0 }))
    assert.equal(f, s:options().callback)
  end)
end)

-- ---------------------------------------------------------------------------
-- Errors and text
-- ---------------------------------------------------------------------------

describe("A mistake", function()
  local function raises(o, message)
    assert.error_matches(function() Sampler(o) end, message)
  end

  it("in an option is named", function()
    raises({ temprature = 1 }, "unknown option 'temprature' %(did you mean " ..
           "'temperature'%?%)")
    raises({ temperature = -1 }, "Sampler: option 'temperature': expected a " ..
           "finite number of 0 or more, got %-1")
    raises({ temperature = nan }, "'temperature': .* got nan")
    raises({ temperature = inf }, "'temperature': .* got inf")
    raises({ temperature = "1" }, "'temperature': expected a number, got str")
    raises({ top_k = 0 }, "'top_k': expected an integer of 1 or more, got 0")
    raises({ top_k = 2.5 }, "'top_k': expected an integer, got number")
    raises({ top_p = 0 }, "'top_p': expected a number above 0, at most 1, " ..
           "got 0")
    raises({ top_p = 1.5 }, "'top_p': .* got 1.5")
    raises({ top_p = nan }, "'top_p': .* got nan")
    raises({ min_p = -0.1 }, "'min_p': expected a number from 0 to 1, got %-0")
    raises({ min_p = nan }, "'min_p': .* got nan")
    raises({ repetition_penalty = 0.5 }, "'repetition_penalty': expected a " ..
           "finite number of 1 or more, got 0.5")
    raises({ frequency_penalty = inf }, "'frequency_penalty': expected a fin")
    raises({ presence_penalty = nan }, "'presence_penalty': .* got nan")
    raises({ seed = "x" }, "'seed': expected an integer")
    raises({ seed = 1, generator = fnn.Generator(1) }, "expected one of them")
    raises({ generator = 5 }, "'generator': expected a fnn.Generator")
    raises({ callback = 5 }, "'callback': expected a function, got number")
    raises({ 1 }, "options are a table of names")
  end)

  it("in logits is named", function()
    local s = Sampler()
    local function fails(x, message)
      assert.error_matches(function() s(x) end, message)
    end
    fails("x", "Sampler: expected logits, got string")
    fails(nil, "Sampler: expected logits, got nil")
    fails(fnn.tensor { 1.0, nan }, "the logit of id 1 is nan")
    fails(fnn.tensor { { 0, 1 }, { inf, 1 } },
          "the logit of id 0 %(row 2 of 2%) is inf")
    fails(fnn.tensor { -inf, -inf },
          "all 2 logits are %-inf: no id is left to choose")
    fails(fnn.zeros(0), "expected a vocabulary of 1 to %d+ ids")
    fails(fnn.zeros(1, 1, 3), "expected logits of shape %(vocabulary%) or " ..
          "%(rows, vocabulary%), got %(1, 1, 3%)")
    fails(fnn.zeros(3, { dtype = "i64" }), "expected logits of a float dtype")
    for _, o in ipairs { { temperature = 0 }, { top_k = 2 }, { top_p = 0.5 } }
    do
      for n = 1, 200, 13 do
        local x = fnn.zeros(200)
        x[n] = nan
        assert.error_matches(function() Sampler(o)(x) end,
                             "id " .. n - 1 .. " is nan")
      end
    end
  end)

  it("in a history is named", function()
    local s = Sampler { presence_penalty = 1 }
    local x, xs = fnn.zeros(5), fnn.zeros(2, 5)
    local function fails(logits, history, message)
      assert.error_matches(function() s(logits, history) end, message)
    end
    fails(x, { 1, 5 }, "id 5 in the history is out of range %(the " ..
          "vocabulary has 5; ids count from 0%)")
    fails(x, { -1 }, "id %-1 in the history")
    fails(x, { math.mininteger }, "id %-9223372036854775808 in the history")
    fails(xs, { { 1 }, { 9 } }, "id 9 in the history %(row 2 of 2%)")
    fails(x, { 1.5 }, "element 1 of the history: expected an integer, got num")
    fails(x, { "a" }, "expected an integer, got string")
    fails(x, 3, "expected a list or a tensor of ids, got number")
    fails(x, fnn.zeros(2), "expected a history of ids, i64 or i32, got f32")
    fails(x, fnn.zeros(1, 2, { dtype = "i64" }), "%(length%), got %(1, 2%)")
    fails(xs, { 1, 2 }, "expected a list or a tensor of ids, got number")
    fails(xs, { { 1 } }, "a list of as many histories")
    fails(xs, fnn.zeros(3, 2, { dtype = "i64" }),
          "%(2, length%), got %(3, 2%)")
    -- and the next call is as if nothing had been
    s = Sampler { temperature = 0, frequency_penalty = 1 }
    fails(x, { 4, 4, 7 }, "out of range")
    assert.equal(0, s(x, { 1 }))
  end)

  it("is returned by the try_ form", function()
    local s, message = fnn.text.try_Sampler { top_k = 0 }
    assert.is_nil(s)
    assert.matches("top_k", message)
  end)

  it("in huge options is none, and what is -inf is not chosen", function()
    local banned = fnn.full({ 50 }, -inf)
    banned[8], banned[30] = 1, 0
    local x = fnn.randn(50)
    for _, o in ipairs {
      { top_k = math.maxinteger }, { temperature = 1e300 },
      { temperature = 1e-300 }, { temperature = 5e-324 },
      { top_p = 1 - 2 ^ -53 }, { top_p = 5e-324 }, { min_p = 5e-324 },
      { repetition_penalty = 1e300 }, { presence_penalty = 1e300 },
      { frequency_penalty = 1e308 },
    } do
      local id = Sampler(o)(x, { 1, 2, 3, 3 })
      assert.is_true(id >= 0 and id < 50)
      id = Sampler(o)(banned, { 1, 2, 3, 3 })
      assert.is_true(id == 7 or id == 29)
      id = Sampler(o)(x:to("f64"), { 1, 2, 3, 3 })
      assert.is_true(id >= 0 and id < 50)
    end
  end)
end)

describe("A sampler", function()
  it("shows its options", function()
    local s = Sampler { temperature = 0.5, top_k = 40, callback = print }
    assert.equal("Sampler(temperature=0.5, top_k=40)", tostring(s))
    assert.same({ temperature = 0.5, top_k = 40, callback = print },
                s:options())
    assert.same(s:options(), Sampler(s:options()):options())
    assert.equal("Sampler()", tostring(Sampler()))
  end)

  it("can be released", function()
    local s = Sampler()
    s:release()
    assert.error_matches(function() s(fnn.zeros(2)) end,
                         "released fnn.Sampler")
  end)

  it("makes no tensors but its own", function()
    local s, x = Sampler { top_p = 0.9, presence_penalty = 1 }, fnn.randn(999)
    local history = { 1, 2, 3 }
    s(x, history)
    local before = fnn.memory().live
    for _ = 1, 100 do s(x, history) end
    assert.equal(before, fnn.memory().live)
  end)
end)
