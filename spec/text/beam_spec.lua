-- beam_spec.lua - fnn.text.BeamSearch: cases by hand, and all sequences of
-- small models.

local fnn = require "fnn"
local BeamSearch = fnn.text.BeamSearch
local inf, nan, log = math.huge, 0 / 0, math.log

-- A model of probabilities by the ids behind the prompt {9}: "1,0" -> row.
local function of_table(rows)
  return function(ids)
    assert.equal(9, ids[1])
    local row = assert(rows[table.concat(ids, ",", 2)] or rows.other)
    local logits = {}
    for i, p in ipairs(row) do logits[i] = p > 0 and log(p) or -inf end
    return logits
  end
end

-- The first id is 0 (0.6) or 1 (0.4); behind 0 all are as probable, behind 1
-- it is 0 nearly always.
local garden = of_table {
  [""] = { 0.6, 0.4, 0 }, ["0"] = { 0.4, 0.3, 0.3 }, ["1"] = { 0.9, 0.1, 0 },
}

describe("BeamSearch", function()
  it("finds at width 2 what the first choice hides", function()
    local ids, score = BeamSearch { width = 2, max_tokens = 2 } (garden, { 9 })
    assert.same({ 1, 0 }, ids)
    assert.near(log(0.4 * 0.9) / 2, score, 1e-12)
  end)

  it("is greedy at width 1", function()
    local ids, score = BeamSearch { width = 1, max_tokens = 2 } (garden, { 9 })
    assert.same({ 0, 0 }, ids)
    assert.near(log(0.6 * 0.4) / 2, score, 1e-12)
  end)

  it("gives nothing where the end is best at once", function()
    local step = of_table { [""] = { 0.1, 0.1, 0.8 }, ["0"] = { 0.5, 0.5, 0 },
                            ["1"] = { 0.5, 0.5, 0 } }
    local ids, score = BeamSearch { width = 3, eos = 2, max_tokens = 2 }
      (step, { 9 })
    assert.same({}, ids)
    assert.near(log(0.8), score, 1e-12)
  end)

  it("keeps finished beams among the others, without the end", function()
    -- "1,0,1" and the end: log(.5 .9 .9 .9) / 3; "0" and the end: log(.5 .6)
    local step = of_table {
      [""] = { 0.5, 0.5, 0 }, ["0"] = { 0.2, 0.2, 0.6 },
      ["1"] = { 0.9, 0.05, 0.05 }, ["1,0"] = { 0.05, 0.9, 0.05 },
      ["1,0,1"] = { 0.05, 0.05, 0.9 }, other = { 0.4, 0.4, 0.2 },
    }
    local ids, score = BeamSearch { width = 2, eos = 2, max_tokens = 5 }
      (step, { 9 })
    assert.same({ 1, 0, 1 }, ids)
    assert.near(log(0.5 * 0.9 ^ 3) / 3, score, 1e-12)
  end)

  it("divides by the length to the power of length_penalty", function()
    -- "0" and the end: log(.5 .8) = -0.92; "1,1": log(.5 .7) = -1.05
    local step = of_table { [""] = { 0.5, 0.5, 0 }, ["0"] = { 0.1, 0.1, 0.8 },
                            ["1"] = { 0.1, 0.7, 0.2 } }
    local function best(p)
      return BeamSearch { width = 3, eos = 2, max_tokens = 2,
                          length_penalty = p } (step, { 9 })
    end
    assert.same({ 0 }, best(0))
    assert.same({ 1, 1 }, best(1))
    assert.same({ 0 }, best(-1))
  end)

  it("takes -inf for what may not follow", function()
    local step = of_table { [""] = { 0, 1, 0 }, ["1"] = { 0, 0, 1 },
                            ["1,2"] = { 1, 0, 0 } }
    assert.same({ 1, 2, 0 }, (BeamSearch { width = 4, max_tokens = 3 }
      (step, { 9 })))
    assert.error_matches(function()
      BeamSearch() (function() return { -inf, -inf } end, { 1, 2 })
    end, "all logits are %-inf: no id may follow any sequence")
    -- Behind 0, the likelier, nothing may follow: the other goes on.
    local ids = BeamSearch { width = 2, max_tokens = 2 } (of_table {
      [""] = { 0.6, 0.4 }, ["0"] = { 0, 0 }, ["1"] = { 0.9, 0.1 },
    }, { 9 })
    assert.same({ 1, 0 }, ids)
    assert.error_matches(function()
      BeamSearch() (function() return { 0, nan } end, { 1, 2 })
    end, "the logits behind {1, 2} are not numbers")
  end)

  it("gives the same where beams are asked for at once", function()
    local w = fnn.randn(6, 6, { generator = fnn.Generator(3) })
    local function one(ids) return w[ids[#ids] + 1] end
    local sizes = {}
    local function batch(ids)
      assert.equal("i64", ids:dtype())
      sizes[#sizes + 1] = ids:shape()[1]
      return w:index_select(1, ids:select(2, -1))
    end
    local o = { width = 3, max_tokens = 4, eos = 5 }
    local ids, score = BeamSearch(o)(one, { 2, 1 })
    o.batched = true
    local others, other_score = BeamSearch(o)(batch, { 2, 1 })
    assert.same(ids, others)
    assert.near(score, other_score, 1e-12)
    assert.equal(1, sizes[1])
    assert.is_true(sizes[2] > 1)
  end)

  it("takes logits of any float dtype, and makes no graph", function()
    local p = fnn.Param(fnn.tensor { 0, 2, 1 })
    local step = function()
      assert.is_false(fnn.is_grad_enabled())
      return p:value():to("f16")
    end
    assert.same({ 1, 1 }, (BeamSearch { max_tokens = 2 } (step, { 0 })))
  end)

  it("gives nothing for max_tokens 0, and takes an empty prompt", function()
    assert.same({}, (BeamSearch { max_tokens = 0 } (garden, { 9 })))
    local step = function(ids) return { #ids == 0 and 1 or 0, 0.5 } end
    assert.same({ 0, 1 }, (BeamSearch { max_tokens = 2 } (step, {})))
  end)
end)

-- ---------------------------------------------------------------------------
-- All sequences
-- ---------------------------------------------------------------------------

-- log p of each id behind ids, by a model of random logits.
local function random_model(seed, vocabulary)
  local rows = {}
  return function(ids)
    local key = table.concat(ids, ",")
    if not rows[key] then
      local n = seed
      for _, id in ipairs(ids) do n = (n * 31 + id + 1) % 1000003 end
      local g = fnn.Generator(n)
      rows[key] = (fnn.randn(vocabulary, { generator = g, dtype = "f64" }) * 2)
        :totable()
    end
    return rows[key]
  end
end

local function log_softmax(row)
  local sum, list = 0, {}
  for _, x in ipairs(row) do sum = sum + math.exp(x) end
  for i, x in ipairs(row) do list[i] = x - log(sum) end
  return list
end

-- The best of all sequences: those that end, and those of full length.
local function best_of_all(step, prompt, eos, most, penalty)
  local best, best_score
  local function visit(ids, logp, length)
    local function consider(p)
      local score = p / math.max(1, length) ^ penalty
      if not best or score > best_score then
        best, best_score = { table.unpack(ids, #prompt + 1) }, score
      end
    end
    if length == most then return consider(logp) end
    for i, p in ipairs(log_softmax(step(ids))) do
      if i - 1 == eos then
        consider(logp + p)
      else
        ids[#ids + 1] = i - 1
        visit(ids, logp + p, length + 1)
        ids[#ids] = nil
      end
    end
  end
  visit({ table.unpack(prompt) }, 0, 0)
  return best, best_score
end

describe("BeamSearch, as wide as there are sequences,", function()
  for _, penalty in ipairs { 0, 1, 0.7, -0.5, 2 } do
    it("finds the best of all, length_penalty " .. penalty, function()
      for seed = 1, 12 do
        local step = random_model(seed, 4)
        local ids, score = best_of_all(step, { 3 }, 2, 3, penalty)
        local found, found_score = BeamSearch {
          width = 64, eos = 2, max_tokens = 3, length_penalty = penalty,
        } (step, { 3 })
        assert.same(ids, found)
        assert.near(score, found_score, 1e-9)
      end
    end)
  end
end)

describe("BeamSearch of width 1", function()
  it("follows the largest logits", function()
    for seed = 1, 10 do
      local step, ids, expected = random_model(seed, 7), { 1 }, {}
      for i = 1, 5 do
        local row, best = step(ids), 1
        for k, x in ipairs(row) do if x > row[best] then best = k end end
        expected[i] = best - 1
        ids[#ids + 1] = best - 1
      end
      assert.same(expected, (BeamSearch { width = 1, max_tokens = 5 }
        (step, { 1 })))
    end
  end)
end)

describe("A mistake in a beam search", function()
  local function fails(message, o, step, prompt)
    assert.error_matches(function() BeamSearch(o)(step, prompt or { 1 }) end,
                         message)
  end

  it("is named", function()
    local step = function() return { 0, 1 } end
    fails("BeamSearch: unknown option 'widht' %(did you mean 'width'%?%)",
          { widht = 1 }, step)
    fails("option 'width': expected an integer of 1 or more, got 0",
          { width = 0 }, step)
    fails("option 'width': .* got nan", { width = nan }, step)
    fails("option 'eos': expected an integer of 0 or more", { eos = -1 }, step)
    fails("option 'length_penalty': expected a finite number, got nan",
          { length_penalty = nan }, step)
    fails("expected a function of ids, got a number", {}, 5)
    fails("element 1 of the ids", {}, step, { "x" })
    fails("the function returned nil", {}, function() end)
    fails("logits of shape %(1, 1, 2%) %(expected %(vocabulary%)%)", {},
          function() return fnn.zeros(1, 1, 2) end)
    fails("logits of shape %(2%) %(expected %(2, vocabulary%)%)",
          { batched = true }, function(ids)
            local n = ids:shape()[1]
            return n == 1 and fnn.zeros(1, 2) or fnn.zeros(2)
          end)
  end)
end)
