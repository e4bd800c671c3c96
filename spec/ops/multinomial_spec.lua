-- multinomial_spec.lua - draws by weights: their laws, and what is no weight.

local fnn = require "fnn"
local tensor = fnn.tensor

local function generator(seed) return { generator = fnn.Generator(seed) } end

local function options(seed, replacement)
  return { generator = fnn.Generator(seed), replacement = replacement }
end

local function raises(text, ...)
  local ok, message = pcall(fnn.multinomial, ...)
  assert.is_false(ok)
  assert.is_truthy(message:find("multinomial: " .. text, 1, true), message)
end

-- How often each of k ids is in the list.
local function counts(ids, k)
  local n = {}
  for i = 1, k do n[i] = 0 end
  for _, id in ipairs(ids) do n[id + 1] = n[id + 1] + 1 end
  return n
end

-- One row with replacement, number by number.
local function fall(weights, numbers)
  local ids, total = {}, 0
  for _, w in ipairs(weights) do total = total + w end
  for i, u in ipairs(numbers) do
    local sum, id = 0, -1
    repeat
      id = id + 1
      sum = sum + weights[id + 1]
    until sum > u * total
    ids[i] = id
  end
  return ids
end

describe("fnn.multinomial", function()
  it("with replacement, is where uniform numbers fall", function()
    local w = { { 0, 2, 0, 1, 8, 0 }, { 4, 0, 0, 4, 0, 8 } }
    local ids = fnn.multinomial(tensor(w), 500, options(3, true))
    local u = fnn.rand({ 2, 500 }, { dtype = "f64",
                                     generator = fnn.Generator(3) })
    assert.are.same({ 2, 500 }, ids:shape())
    assert.are.equal("i64", ids:dtype())
    for row = 1, 2 do
      assert.are.same(fall(w[row], u[row]:totable()), ids[row]:totable())
    end
  end)

  it("with replacement, has the frequencies of the weights", function()
    local w, n = { 1, 0, 3, 6 }, 20000
    local ids = fnn.multinomial(tensor(w), n, options(5, true))
    assert.are.same({ n }, ids:shape())
    local seen, chi = counts(ids:totable(), 4), 0
    assert.are.equal(0, seen[2])
    for i, v in ipairs(w) do
      local due = n * v / 10
      if due > 0 then chi = chi + (seen[i] - due) ^ 2 / due end
    end
    assert.is_true(chi < 13.8, chi)  -- 1 in 1000 for 2 degrees of freedom
  end)

  it("without, draws one after another", function()
    -- The law of pairs: w_i / 10 * w_j / (10 - w_i).
    local w, rows = { 1, 0, 3, 6 }, 20000
    local ids = fnn.multinomial(tensor(w):expand(rows, 4), 2, generator(6))
    assert.are.same({ rows, 2 }, ids:shape())
    local seen = counts((ids:select(2, 1) * 4 + ids:select(2, 2)):totable(), 16)
    local chi = 0
    for i, a in ipairs(w) do
      for j, b in ipairs(w) do
        local due = i ~= j and rows * a / 10 * b / (10 - a) or 0
        local got = seen[(i - 1) * 4 + j]
        if due == 0 then assert.are.equal(0, got)
        else chi = chi + (got - due) ^ 2 / due end
      end
    end
    assert.is_true(chi < 20.5, chi)  -- 1 in 1000 for 5
  end)

  it("without, draws each id once", function()
    local w = tensor({ 1e-300, 5, 0, 1e300 }, { dtype = "f64" })
    local ids = fnn.multinomial(w, 3, generator(1))
    local list = ids:totable()
    table.sort(list)
    assert.are.same({ 0, 1, 3 }, list)
  end)

  it("is the same for any number of threads and dtype", function()
    local n = fnn.threads()
    local w = fnn.uniform(0, 1, 30, 700, generator(7))
    w = w:to("bf16"):to("f32")
    for _, again in ipairs { true, false } do
      fnn.threads(1)
      local a = fnn.multinomial(w, 300, options(8, again))
      fnn.threads(3)
      local b = fnn.multinomial(w:to("bf16"), 300, options(8, again))
      fnn.threads(n)
      assert.is_true(a:eq(b):all():item())
    end
  end)

  it("takes counts, views and Params, huge and tiny weights", function()
    for _, again in ipairs { true, false } do
      local function draw(w) return fnn.multinomial(w, 1, options(2, again)) end
      assert.are.same({ 1 }, draw(tensor({ 0, 7 }, { dtype = "i64" }))
                             :totable())
      assert.are.same({ { 1 }, { 0 } },
                      draw(tensor { { 0, 2 }, { 3, 0 } }:t()):totable())
      assert.are.same({ 2 }, draw(fnn.Param(tensor { 0, 0, 1e-45 })):totable())
      local huge = tensor({ 0, 1.7e308, 1.7e308 }, { dtype = "f64" })
      assert.is_true(draw(huge):item() > 0)
      assert.are.same({ 0, 1 }, draw(fnn.zeros(0, 5)):shape())
    end
  end)

  it("says what is no weight, and where", function()
    raises("expected a tensor of weights, got a table", { 1, 2 }, 1)
    raises("expected weights of shape (classes) or (rows, classes), of a " ..
           "class or more, got (1, 1, 2)", fnn.ones(1, 1, 2), 1)
    raises("expected weights of shape (classes) or (rows, classes), of a " ..
           "class or more, got (0)", fnn.ones(0), 1)
    raises("expected how many to draw, an integer of 1 or more, got 0",
           fnn.ones(3), 0)
    raises("expected how many to draw, an integer of 1 or more, got nil",
           fnn.ones(3))
    raises("unknown option 'replace' (expected generator, replacement)",
           fnn.ones(3), 1, { replace = true })
    raises("expected finite weights of 0 or more, got -0.5 at place 2",
           tensor { 1, -0.5 }, 1)
    raises("expected finite weights of 0 or more, got nan of row 2 at place 1",
           tensor { { 1, 1 }, { 0 / 0, 1 } }, 1)
    raises("expected finite weights of 0 or more, got inf at place 1",
           tensor { 1 / 0, 1 }, 1)
    raises("all weights of row 2 are 0: there is nothing to draw",
           tensor { { 1, 1 }, { 0, 0 } }, 1, { replacement = true })
    raises("2 weights of row 1 are above 0, and 3 ids were to be drawn " ..
           "(option 'replacement' draws one more often)",
           tensor { { 1, 0, 1 }, { 1, 1, 1 } }, 3)
    raises("expected at most 3 arguments, got 4", fnn.ones(3), 1, {}, 2)
  end)
end)
