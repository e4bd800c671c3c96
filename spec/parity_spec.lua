-- parity_spec.lua - fnn beside PyTorch: every family of spec/fixtures/parity,
-- in f64 and f32; and that nothing goes without.

local fnn = require "fnn"
local gradcases = require "spec.support.gradcases"
local parity = require "spec.support.parity"

local families = parity.families()

parity.specs("parity", describe, it, assert)

-- {======================================================
-- Coverage
-- =======================================================

local function words (text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

-- Random, or nothing that PyTorch has: their specs hold them.
local elsewhere = {
  op = words "dropout dropout1d dropout2d record to",
  module = words [[Dropout Dropout1d Dropout2d Hardsigmoid Identity ModuleList
                   ModuleDict]],
  optimizer = {}, loss = {},
}

-- The names of a library's classes that have a method.
local function classes (library, method)
  local names = {}
  for name, value in pairs(library) do
    if name:find "^%u" and not name:find "Loss$" and
       type(value) == "table" and value[method] then
      names[name] = true
    end
  end
  return names
end

-- The functions of the classes of losses.
local function losses ()
  local names = {}
  for name, class in pairs(fnn.nn) do
    if name:find "Loss$" then names[class.loss] = true end
  end
  return names
end

-- What takes Params and can step, or is a class that can.
local function optimizers ()
  local names = {}
  for name, make in pairs(fnn.optim) do
    local _, made = pcall(make, { fnn.Param(fnn.ones(2, 2)) })
    local able = type(make) == "table" and make.step or
                 type(made) == "userdata" and made.zero_grad
    if name:find "^%u" and able then names[name] = true end
  end
  return names
end

local function ops ()
  local names, others = {}, losses()
  for _, case in ipairs(gradcases.cases) do
    if not others[case.op] then names[case.op] = true end
  end
  return names
end

-- Those of names that no family has a case for.
local function missing (kind, names)
  local have, list = {}, {}
  for _, family in ipairs(families) do
    for _, case in ipairs(family.cases) do
      if case[kind] then have[case[kind]] = true end
    end
  end
  for name in pairs(names) do
    if not have[name] and not elsewhere[kind][name] then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  return table.concat(list, ", ")
end

describe("the parity table", function ()
  it("has every op with a derivative", function ()
    assert.equal("", missing("op", ops()))
  end)

  it("would miss one that is planted", function ()
    assert.equal("planted", missing("op", { planted = true, softmax = true }))
    assert.equal("Planted", missing("module", { Planted = true }))
    assert.equal("planted", missing("loss", { planted = true, mse = true }))
    assert.equal("Planted", missing("optimizer", { Planted = true,
                                                   Adam = true }))
  end)

  it("has every loss", function ()
    assert.is_true(losses().ctc)
    assert.equal("", missing("loss", losses()))
  end)

  it("has every optimizer", function ()
    assert.is_true(optimizers().Adam and optimizers().LBFGS)
    assert.equal("", missing("optimizer", optimizers()))
  end)

  it("has every module", function ()
    assert.equal("", missing("module", classes(fnn.nn, "forward")))
  end)
end)

-- }======================================================
